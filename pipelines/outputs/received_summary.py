"""summary.json as another party may have written it: what of it the next hop counts on."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field, StringConstraints, model_validator

from hushcount.campaigns.campaign import GREATEST_EPOCH, Identifier, Stream
from hushcount.formats.models import Hex32, Part
from hushcount.formats.reading import parse_object, validated
from pipelines.files import storage
from pipelines.outputs.summary import Summary, brief

Count = Annotated[int, Field(ge=0, le=1 << 40)]


class _Counts(Part):
    received: Count
    accepted: Count
    rejected: dict[str, Count]

    @model_validator(mode="after")
    def _check(self) -> _Counts:
        if self.received != self.accepted + sum(self.rejected.values()):
            raise ValueError("received is not accepted and rejected together")
        return self


class _Hop(BaseModel):
    """What of a hop's summary the next hop counts on; it may say more."""

    hop: Annotated[str, StringConstraints(pattern=r"^[a-z]{1,16}$")]
    received: Count
    accepted: Count
    rejected: dict[str, Count]
    streams: dict[Stream, _Counts]

    @model_validator(mode="after")
    def _check(self) -> _Hop:
        if self.hop in ("release", "discover") and "discovery" not in self.streams:
            raise ValueError("streams.discovery is missing")
        return self


class _Bins(Part):
    """What became of the bins that the auxiliary server kept."""

    kept: Count
    found: Count
    rejected: dict[str, Count]


class _SummaryFile(_Hop):
    campaign: Identifier
    epoch: int = Field(default=1, ge=1, le=GREATEST_EPOCH)
    fingerprint: Hex32
    upstream: tuple[_Hop, ...] = Field(max_length=8)
    released: Count | None = None
    left_out: dict[Stream, _Counts] = {}
    bins: _Bins | None = None
    made_from: Hex32 | None = None

    @model_validator(mode="after")
    def _check_release(self) -> _SummaryFile:
        if self.hop == "release" and self.released is None:
            raise ValueError("released is missing")
        if self.hop == "discover" and (self.bins is None or "release" not in {hop.hop for hop in self.upstream}):
            raise ValueError("bins, or the release before them, is missing")
        return self


def read_summary(path: str) -> Summary:
    """Read a summary, which another party may have written.

    Raises:
        UsageError: missing, or no summary of a hop whose counts add up.
    """
    return _checked(storage.read_json(path), path)


def read_counts(path: str) -> Summary:
    """Return what a hop counted, of a file that says at least that.

    Raises:
        UsageError: missing, or no counts of a hop that add up.
    """
    data = storage.read_json(path)
    validated(_Hop, data, path, "does not say what a hop counted")
    return brief(data)


def parse_summary(raw: bytes, path: str) -> Summary:
    """Return the summary in a file's bytes; raises as `read_summary`."""
    return _checked(parse_object(raw, path), path)


def _checked(data: Summary, path: str) -> Summary:
    validated(_SummaryFile, data, path, "is no summary of a hop")
    return data
