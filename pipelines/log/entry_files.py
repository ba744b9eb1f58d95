"""The bytes of entries: how a new entry's file is written, and how an entry's file is checked when it is read."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, get_args

from pydantic import Field, RootModel

from hushcount.collection.windows import window_start
from hushcount.errors import FormatError, UsageError
from hushcount.formats.models import Hex32, Part
from hushcount.formats.reading import parse_object, validated
from pipelines.log.entries import MOST_NUMBER, Closed, Decision, Id, Moment

FORMAT = 1
ENTRY_BYTES = 1 << 18
"""The most bytes of an entry, which any store can write in one request."""
BESIDE_BYTES = 1 << 27
"""The most bytes of a file beside the log; after years, a restored log adopts tens of thousands of outputs."""
_Body = RootModel[Annotated[Decision, Field(discriminator="kind")]]
_KINDS = {kind.model_fields["kind"].default for kind in get_args(Decision)}


class _Header(Part):
    """The form in which an entry is written to its file.

    Attributes:
        before: digest of the entry before this one; None for the first entry.
        decision: the decision; None if it is in the file beside the log that has the digest `elsewhere`.
    """

    format: int = Field(ge=1)
    number: int = Field(ge=1, le=MOST_NUMBER)
    id: Id
    before: Hex32 | None
    at: Moment
    decision: dict[str, Any] | None = None
    elsewhere: Hex32 | None = None


@dataclass(frozen=True)
class Entry:
    """One entry of a log.

    Attributes:
        id: a random id, by which a run that put an entry recognizes that the entry is its own.
        before: digest of the entry before this one; None for the first entry.
        at: when the entry was put, by a clock that was trusted then.
        digest: BLAKE2b-256 of the entry's bytes.
    """

    number: int
    id: str
    before: str | None
    at: datetime
    decision: Decision
    digest: str


@dataclass(frozen=True)
class Written:
    """The bytes of a new entry, and of the file beside the log if the entry names such a file."""

    id: str
    data: bytes
    beside: bytes | None


def write_entry(number: int, before: str | None, at: datetime, decision: Decision) -> Written:
    """Return the bytes of a new entry with a random id; raises FormatError if the decision is too long."""
    body = decision.model_dump(mode="json", exclude_defaults=True) | {"kind": decision.kind}
    header = _Header(format=FORMAT, number=number, id=secrets.token_hex(8), before=before, at=at, decision=body)
    data = _bytes(header)
    if len(data) <= ENTRY_BYTES:
        return Written(header.id, data, None)
    beside = _json(body)
    if len(beside) > BESIDE_BYTES:
        raise FormatError(f"a decision has {len(beside):,} bytes, must have at most {BESIDE_BYTES:,}: report this bug")
    outside = header.model_copy(update={"decision": None, "elsewhere": digest_of(beside)})
    return Written(header.id, _bytes(outside), beside)


def digest_of(data: bytes) -> str:
    """Return the BLAKE2b-256 of bytes, in hexadecimal digits."""
    return hashlib.blake2b(data, digest_size=32).hexdigest()


def read_entry(data: bytes, path: str, beside: Callable[[str], bytes]) -> Entry:
    """Return the entry in a file's bytes.

    Args:
        beside: takes a digest, and returns the bytes of the file beside the log with that digest.

    Raises:
        FormatError: the bytes are no entry, or the file beside the log that the entry names has another content.
        UsageError: a newer version wrote the entry.
    """
    fields = parse_object(data, path)
    version = fields.get("format")
    if isinstance(version, int) and version > FORMAT:
        raise UsageError(f"{path} is of version {version}, this is version {FORMAT}: use the newer hushcount")
    header = validated(_Header, fields, path, "is no entry of a log")
    body = header.decision
    if header.elsewhere is not None:
        more = beside(header.elsewhere)
        if digest_of(more) != header.elsewhere:
            raise FormatError(f"{path} names a file beside it with another content: restore that file")
        body = parse_object(more, path)
    kind = None if body is None else body.get("kind")
    if not isinstance(kind, str):
        raise FormatError(f"{path} holds no decision: restore it")
    if kind not in _KINDS:
        raise UsageError(f"{path} is of kind {kind!a}, which a newer hushcount wrote: use that one")
    decision: Decision = validated(_Body, body, path, "is no entry of a log").root
    if isinstance(decision, Closed):
        try:
            for name in (decision.window, *(one.window for one in decision.manifests)):
                window_start(name)
        except ValueError as error:
            raise FormatError(f"{path}: {error}") from None
    return Entry(header.number, header.id, header.before, header.at, decision, digest_of(data))


def _bytes(header: _Header) -> bytes:
    return _json(header.model_dump(mode="json", exclude_none=True) | {"before": header.before})


def _json(fields: Mapping[str, Any]) -> bytes:
    return json.dumps(fields, sort_keys=True, separators=(",", ":")).encode() + b"\n"
