"""The entries of a log: each is one decision of a party about one campaign, numbered, and never changed.

A decision that is too long for an entry, such as a list of many segments, is a file beside it that its digest names.
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, Field

from hushcount.campaigns.campaign import Stream
from hushcount.campaigns.parts import Identifier
from hushcount.collection.manifests import MOST_SECONDS, CollectorName, Refused, SegmentPart, WindowName, WindowSeconds
from hushcount.formats.models import Hex8, Hex32, Part, text_of
from hushcount.formats.reading import MOST_SEGMENTS
from hushcount.senders import Authentication
from pipelines.deployment.settings import Party
from pipelines.handover.batch_file import BatchName, SegmentText
from pipelines.handover.hops import HopName
from pipelines.outputs.summary import RUN_FOLDER

MOST_NUMBER = 9_999_999_999
_MOST_GENERATIONS = 999_999
_MOST_MANIFESTS = 1 << 14
_MOST_OUTPUTS = 1 << 16
_MOST_CHANGES = 1 << 12
Id = Hex8
Folder = Annotated[str, text_of(f"^{RUN_FOLDER}$", "must be the name of an attempt's folder")]
FileName = Annotated[str, text_of(r"^[0-9]{6,}-[0-9a-f]{16}$", "must name a campaign file: EPOCH-FINGERPRINT")]
WindowFolder = Annotated[str, text_of(r"^[A-Za-z0-9._/-]{1,255}$", "must be a folder of segments")]
Text = Annotated[str, Field(max_length=1000)]
Reasons = Annotated[dict[SegmentText, Text], Field(max_length=4 * MOST_SEGMENTS)]
"""Reason by the path of a segment."""


def whole_second(moment: datetime) -> datetime:
    """Return a moment in UTC as entries have it: rounded down to the second; ValueError: it has no time zone."""
    if moment.tzinfo is None:
        raise ValueError("must have a time zone")
    return moment.astimezone(timezone.utc).replace(microsecond=0)


Moment = Annotated[datetime, AfterValidator(whole_second)]


class TakenManifest(Part):
    """A manifest as it was when a closing window took it in.

    Attributes:
        path: relative to the folder of segments.
        written: when the store had it, by the store's clock.
    """

    path: Annotated[str, Field(max_length=255)]
    written: Moment
    epoch: int
    fingerprint: Hex32
    collector: CollectorName
    window: WindowName
    seconds: WindowSeconds
    authentication: Authentication
    segments: dict[Stream, Annotated[tuple[SegmentPart, ...], Field(max_length=MOST_SEGMENTS)]]
    refused: Refused
    damaged: int = Field(ge=0)


class Adopted(Part):
    """An output that the old log lacks, and whose summary is in the store: others may have read it.

    Attributes:
        digest: of the summary.
        summary: what it says of counts, of the charge, and of what it was made from.
    """

    batch: BatchName
    hop: HopName
    seconds: WindowSeconds = Field(description="length of the batch's window, as far as it is known")
    folder: Folder
    digest: Hex32
    summary: dict[str, Any]


class Held(Part):
    """An output that the old log lacks and the store too, but others have it: they left a receipt.

    Attributes:
        summary: digest of the summary that they read.
    """

    batch: BatchName
    hop: HopName
    seconds: WindowSeconds = Field(description="length of the batch's window, as far as it is known")
    summary: Hex32


class Restored(Part):
    """A log was lost, or restored to an older copy: this one replaces it, and says what cannot be known.

    Every segment that the old log has in no finished batch is given up, with those of the manifests here, and of any
    older one that comes to light: the lost entries may have counted it. Nothing that others hold is made anew.

    Attributes:
        generation, number, entry: where the old log ended; number 0: nothing of it was left.
        lost: number of the newest entry of the old log of which anything speaks.
        through: every window that ended by then is closed.
    """

    generation: int = Field(ge=1, le=_MOST_GENERATIONS)
    number: int = Field(ge=0, le=MOST_NUMBER)
    entry: Hex32 | None
    lost: int = Field(ge=0, le=MOST_NUMBER)
    through: Moment
    manifests: Annotated[tuple[TakenManifest, ...], Field(max_length=_MOST_MANIFESTS)] = ()
    adopted: Annotated[tuple[Adopted, ...], Field(max_length=_MOST_OUTPUTS)] = ()
    held: Annotated[tuple[Held, ...], Field(max_length=_MOST_OUTPUTS)] = ()


class Opened(Part):
    """The first entry of a log: whose it is, and what it replaces."""

    kind: Literal["opened"] = "opened"
    party: Party
    campaign: Identifier
    restored: Restored | None = None


class Settings(Part):
    """Windows have this length and this grace from a moment on.

    Attributes:
        begins: when the first of them does, where the last one before them ends; None: there were none before.
    """

    kind: Literal["settings"] = "settings"
    begins: Moment | None
    seconds: WindowSeconds
    grace: int = Field(ge=1, le=MOST_SECONDS, description="in seconds")


class Closed(Part):
    """A window is closed, and every window that ended before it: this is its input, for good.

    Attributes:
        manifests: that are taken in; their segments wait until a batch takes them, or they are dropped.
        batches: paths of segments, by campaign file and stream.
        aside: segments that are not as their manifests say; they wait until they are, or are dropped.
        dropped: segments that no window takes any more.
    """

    kind: Literal["closed"] = "closed"
    window: WindowName
    seconds: WindowSeconds
    manifests: Annotated[tuple[TakenManifest, ...], Field(max_length=_MOST_MANIFESTS)] = ()
    batches: dict[FileName, dict[Stream, Annotated[tuple[SegmentText, ...], Field(max_length=MOST_SEGMENTS)]]] = Field(
        default_factory=dict
    )
    aside: Reasons = Field(default_factory=dict)
    dropped: Reasons = Field(default_factory=dict)


class Charging(Part):
    """From now on this party charges in the ledger of this id, and in no other."""

    kind: Literal["charging"] = "charging"
    ledger: Id


class Finished(Part):
    """A hop of a batch is done: this attempt, and no other, is its output.

    Attributes:
        folder, summary: None: the batch lacks what the hop reads, and it wrote nothing.
    """

    kind: Literal["done"] = "done"
    batch: BatchName
    hop: HopName
    folder: Folder | None = None
    summary: dict[str, Any] | None = None


class GivenBack(Part):
    """Too few reports of a batch can be forwarded, or segments of it are not there: its segments wait again."""

    kind: Literal["given_back"] = "given_back"
    batch: BatchName
    aside: Reasons = Field(default_factory=dict)


class Gone(Part):
    """The files of an output are not where they were written, and nobody here deleted them."""

    kind: Literal["gone"] = "gone"
    batch: BatchName
    hop: HopName


class Received(Part):
    """A party elsewhere left receipts of what a hop handed on of these batches: its copies are whole."""

    kind: Literal["received"] = "received"
    party: Party
    hop: HopName
    batches: tuple[BatchName, ...] = Field(max_length=MOST_SEGMENTS)


class Deleting(Part):
    """Outputs, or what lies below them, are being deleted from now on: nothing of them is written again."""

    kind: Literal["deleting"] = "deleting"
    folder: Text
    batches: tuple[BatchName, ...] = Field(max_length=MOST_SEGMENTS)
    unreceived: tuple[BatchName, ...] = Field(
        default=(), max_length=MOST_SEGMENTS, description="those of which a recipient left no receipt"
    )


class Deleted(Part):
    """Nothing of these is left: outputs of batches, or windows' folders of segments."""

    kind: Literal["deleted"] = "deleted"
    folder: Text
    batches: tuple[BatchName, ...] = Field(default=(), max_length=MOST_SEGMENTS)
    windows: tuple[WindowFolder, ...] = Field(default=(), max_length=MOST_SEGMENTS)


class Confirmed(Part):
    """The clock is right: the operator said so, or it kept step with all else while nothing was decided."""

    kind: Literal["confirmed"] = "confirmed"


class Told(Part):
    """A receiver took an alert: it was told what changed in a window.

    Attributes:
        up: whether it rose, by a digest of its name.
    """

    kind: Literal["told"] = "told"
    window: WindowName
    up: Annotated[dict[Text, bool], Field(min_length=1, max_length=_MOST_CHANGES)]


Decision: TypeAlias = (
    Opened
    | Settings
    | Closed
    | Charging
    | Finished
    | GivenBack
    | Gone
    | Received
    | Deleting
    | Deleted
    | Confirmed
    | Told
)
