"""The entries of a log: each is one decision of a party about one campaign, numbered, and never changed.

An entry is small. What is long, such as a list of segments or a summary, is a file beside the log that its digest names.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, Field, TypeAdapter

from hushcount.campaigns.campaign import Stream
from hushcount.collection.manifests import WindowName, WindowSeconds
from hushcount.errors import UsageError
from hushcount.formats.models import Hex32, Part, text_of
from hushcount.formats.reading import parse_object, validated
from pipelines.handover.names import BATCH_NAME

FORMAT = 1
ENTRY_BYTES = 1 << 18
"""Longest entry: one request of any store puts it."""
_MOST_NUMBER = 9_999_999_999
_MOST_TEXT = 1000
Id = Annotated[str, text_of(r"^[0-9a-f]{16}$", "must be 16 hexadecimal digits")]
Folder = Annotated[str, text_of(r"^[0-9a-f]{32}$", "must be the name of a folder, 32 hexadecimal digits")]
BatchName = Annotated[str, text_of(f"^{BATCH_NAME}$", "must be the name of a batch: WINDOW-EPOCH-FINGERPRINT")]
HopName = Literal["shuffle", "release", "discover", "analyze"]
Text = Annotated[str, Field(max_length=_MOST_TEXT)]


def _whole_second(moment: datetime) -> datetime:
    if moment.tzinfo is None or moment.microsecond:
        raise ValueError("must be a whole second with a time zone")
    return moment.astimezone(timezone.utc)


Moment = Annotated[datetime, AfterValidator(_whole_second)]


class Opened(Part):
    """The first entry of a log: whose it is."""

    kind: Literal["opened"] = "opened"
    party: Literal["shuffler", "aux-server", "analyzer"]
    campaign: str
    ledger: Id | None = Field(default=None, description="id of the ledger in which this party charges")


class Closed(Part):
    """Every window that ended by `through` is closed; the listing says which manifests, batches and drops that makes."""

    kind: Literal["closed"] = "closed"
    window: WindowName
    seconds: WindowSeconds
    through: Moment
    listing: Hex32


class Finished(Part):
    """A hop of a batch is done: this attempt, and no other, is its output."""

    kind: Literal["done"] = "done"
    batch: BatchName
    hop: HopName
    folder: Folder | None = Field(description="null: the hop had nothing to read, and wrote nothing")
    summary: Hex32 | None
    charge: Mapping[str, Any] | None = None


class GivenBack(Part):
    """Too few reports of a batch can be forwarded: its segments wait again."""

    kind: Literal["given_back"] = "given_back"
    batch: BatchName


class GivenUp(Part):
    """No result of a batch will be made."""

    kind: Literal["given_up"] = "given_up"
    batch: BatchName
    reports: dict[Stream, int]
    reason: Text


class Deleting(Part):
    """What lies there of a batch or window is being deleted."""

    kind: Literal["deleting"] = "deleting"
    what: Text


class Deleted(Part):
    """What lay there is gone."""

    kind: Literal["deleted"] = "deleted"
    what: Text


class Gone(Part):
    """The files of an output are not where they were written, and nobody of ours deleted them."""

    kind: Literal["gone"] = "gone"
    batch: BatchName
    hop: HopName


class Confirmed(Part):
    """The operator said that the clock is right."""

    kind: Literal["confirmed"] = "confirmed"
    moment: Moment


Decision: TypeAlias = Annotated[
    Opened | Closed | Finished | GivenBack | GivenUp | Deleting | Deleted | Gone | Confirmed,
    Field(discriminator="kind"),
]
_DECISION: TypeAdapter[Decision] = TypeAdapter(Decision)
