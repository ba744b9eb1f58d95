"""The entries of a log: each is one decision of a party about one campaign, numbered, and never changed.

If a decision is too long for an entry, such as a list of many segments, a file beside the log holds the decision, and
the entry holds the file's digest.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, Field

from hushcount.campaigns.campaign import Stream
from hushcount.campaigns.parts import Identifier
from hushcount.collection.manifests import MOST_SECONDS, CollectorName, Refused, SegmentPart, WindowName, WindowSeconds
from hushcount.collection.tilings import Tiling
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
CalendarText = Annotated[str, Field(max_length=100), AfterValidator(lambda text: str(Tiling.read(text)))]
Reasons = Annotated[dict[SegmentText, Text], Field(max_length=4 * MOST_SEGMENTS)]
"""A reason for each of some segments, by the segment's path."""


def whole_second(moment: datetime) -> datetime:
    """Return a moment as entries state it, in UTC and rounded down to the second; ValueError without a time zone."""
    if moment.tzinfo is None:
        raise ValueError("must have a time zone")
    return moment.astimezone(timezone.utc).replace(microsecond=0)


Moment = Annotated[datetime, AfterValidator(whole_second)]


class TakenManifest(Part):
    """A manifest as it was when a window took it on closing.

    Attributes:
        path: relative to the folder of segments.
        written: when the store received the manifest, by the store's clock.
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
    """An output that the old log lacks, although its summary is in the store, so that others may have read it.

    Attributes:
        digest: of the summary.
        summary: the counts in the output's summary, its charge, and its input.
    """

    batch: BatchName
    hop: HopName
    seconds: WindowSeconds = Field(description="length of the batch's window, as far as it is known")
    folder: Folder
    digest: Hex32
    summary: dict[str, Any]


class Held(Part):
    """An output that others have read, as their receipts say, but that is neither in the old log nor in the store.

    Attributes:
        summary: digest of the output's summary that the others read.
    """

    batch: BatchName
    hop: HopName
    seconds: WindowSeconds = Field(description="length of the batch's window, as far as it is known")
    summary: Hex32


class Restored(Part):
    """A log was lost, or restored from an older copy; this log replaces it, and states which facts are unknown.

    A segment is given up, so that it is never counted again, if the lost entries may have counted it. The segments
    given up are: segments that the old log has in no finished batch, segments of `manifests`, and segments of any older
    manifest that is seen later. An output that others have read is not made again.

    Attributes:
        generation, number, entry: the last entry of the old log; number 0: no entry of the old log was left.
        lost: number of the newest entry of the old log that any other file names.
        through: a time; every window that ended by this time is closed.
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
    """The first entry of a log: its party and campaign, and the log that it replaces."""

    kind: Literal["opened"] = "opened"
    party: Party
    campaign: Identifier
    restored: Restored | None = None


class Settings(Part):
    """Windows have this length and this grace from a moment `begins` on.

    Attributes:
        begins: when the first of these windows begins, which is where the window before ends; None if these are the
            first windows.
    """

    kind: Literal["settings"] = "settings"
    begins: Moment | None
    seconds: WindowSeconds
    grace: int = Field(ge=1, le=MOST_SECONDS, description="in seconds")

    @property
    def tiling(self) -> Tiling:
        """How time is cut into windows."""
        return Tiling(timedelta(seconds=self.seconds))


class CalendarSettings(Part):
    """Windows follow this calendar, and have this grace, from a moment on; `begins` is as in `Settings`."""

    kind: Literal["calendar"] = "calendar"
    begins: Moment | None
    calendar: CalendarText = Field(description="as in day Europe/Berlin or week Europe/Berlin monday")
    grace: int = Field(ge=1, le=MOST_SECONDS, description="in seconds")

    @property
    def tiling(self) -> Tiling:
        """How time is cut into windows."""
        return Tiling.read(self.calendar)


def settings_of(begins: datetime | None, tiling: Tiling, grace: timedelta) -> Settings | CalendarSettings:
    """Return the entry that states a tiling and a grace."""
    late = int(grace.total_seconds())
    if isinstance(tiling.length, timedelta):
        return Settings(begins=begins, seconds=int(tiling.length.total_seconds()), grace=late)
    return CalendarSettings(begins=begins, calendar=str(tiling), grace=late)


class Closed(Part):
    """A window is closed, and so is every window that ended before it, so the input of these windows is final.

    Attributes:
        manifests: the manifests that the window takes. The segments of these manifests wait until a batch takes them,
            or they are dropped.
        batches: paths of segments, by campaign file and stream.
        aside: segments that differ from their manifests; they wait until they match again, or are dropped.
        dropped: segments that this window drops, so that no batch takes them.
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
    """From this entry on, this party charges in the ledger of this id, and in no other ledger."""

    kind: Literal["charging"] = "charging"
    ledger: Id


class Finished(Part):
    """A hop of a batch is done: this attempt, and no other attempt, is the output of the hop.

    Attributes:
        folder, summary: None if the batch lacks the stream that the hop reads, so that the hop wrote nothing.
    """

    kind: Literal["done"] = "done"
    batch: BatchName
    hop: HopName
    folder: Folder | None = None
    summary: dict[str, Any] | None = None


class GivenBack(Part):
    """A batch is given back: too few reports can be forwarded, or segments are faulty.

    The batch's segments wait again.
    """

    kind: Literal["given_back"] = "given_back"
    batch: BatchName
    aside: Reasons = Field(default_factory=dict)


class Gone(Part):
    """The files of an output are missing, although retention did not delete them."""

    kind: Literal["gone"] = "gone"
    batch: BatchName
    hop: HopName


class Received(Part):
    """A party elsewhere left receipts of a hop's outputs for these batches, so it has complete copies of them."""

    kind: Literal["received"] = "received"
    party: Party
    hop: HopName
    batches: tuple[BatchName, ...] = Field(max_length=MOST_SEGMENTS)


class Deleting(Part):
    """Outputs, or folders inside outputs, are being deleted from this entry on, and are not written again."""

    kind: Literal["deleting"] = "deleting"
    folder: Text
    batches: tuple[BatchName, ...] = Field(max_length=MOST_SEGMENTS)
    unreceived: tuple[BatchName, ...] = Field(
        default=(), max_length=MOST_SEGMENTS, description="the batches that lack the receipt of a recipient"
    )


class Deleted(Part):
    """Outputs of batches, or windows' folders of segments, are completely deleted."""

    kind: Literal["deleted"] = "deleted"
    folder: Text
    batches: tuple[BatchName, ...] = Field(default=(), max_length=MOST_SEGMENTS)
    windows: tuple[WindowFolder, ...] = Field(default=(), max_length=MOST_SEGMENTS)


class Confirmed(Part):
    """The clock is right.

    The operator said so, or the clock agreed with all witnesses while no other entry was put for long.
    """

    kind: Literal["confirmed"] = "confirmed"


class Told(Part):
    """A receiver accepted an alert on the changes in a window.

    Attributes:
        up: for each item or group, by a digest of its name, whether its share rose.
    """

    kind: Literal["told"] = "told"
    window: WindowName
    up: Annotated[dict[Text, bool], Field(min_length=1, max_length=_MOST_CHANGES)]


Decision: TypeAlias = (
    Opened
    | Settings
    | CalendarSettings
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
