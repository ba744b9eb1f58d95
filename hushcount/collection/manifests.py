"""Manifests: a manifest lists the segments of one closed window of one campaign file at one collector (docs/adr/0014).

A manifest is named COLLECTOR-ID.manifest.json. The id is drawn at random for each window of a journal. Because of the
random id, two collectors with the same name never overwrite each other's manifests, and a collector that lost its disk
never overwrites its earlier manifests.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from hushcount.campaigns.campaign import GREATEST_EPOCH, Stream
from hushcount.campaigns.parts import Identifier
from hushcount.collection.windows import LONGEST, window_start
from hushcount.formats.models import Hex32, Part, text_of
from hushcount.formats.reading import MOST_SEGMENTS, parse_model
from hushcount.senders import WEAKEST, Authentication

CollectorName = Annotated[
    str, text_of(r"^[a-z0-9][a-z0-9-]{0,31}$", "must be 1 to 32 of a-z, 0-9 and '-', not '-' first")
]
SUFFIX = ".manifest.json"
ID = re.compile(r"[0-9a-f]{16}")
_NAME = re.compile(rf"(?P<collector>.+?)(-{ID.pattern})?{re.escape(SUFFIX)}")
# Limits on the numbers in a manifest, because a manifest comes from another machine, and a database stores and adds its
# numbers.
_MOST_DAMAGED = (1 << 31) - 1
_MOST = 1 << 40
_MOST_REASONS = 256
MOST_SECONDS = int(LONGEST.total_seconds())
Reason = Annotated[str, StringConstraints(pattern=r"^[a-z0-9_]{1,64}$")]
Count = Annotated[int, Field(ge=0, le=_MOST)]
Refused = Annotated[dict[Reason, Count], Field(max_length=_MOST_REASONS)]
WindowName = Annotated[str, text_of(r"^[0-9]{8}T[0-9]{6}Z$", "must be a window's start, as in 20261121T000000Z")]
"""Readers of a window's name must also call `window_start`, because not every text that matches is a time."""
WindowSeconds = Annotated[int, Field(ge=1, le=MOST_SECONDS)]


class SegmentPart(Part):
    """One segment, which is a block file of envelopes."""

    name: Annotated[
        str, text_of(r"^[a-z0-9][a-z0-9-]{0,95}\.blocks$", "must be the name of a segment, ending in .blocks")
    ]
    records: int = Field(ge=1, le=_MOST)
    bytes: int = Field(ge=1, le=_MOST)
    digest: Hex32 = Field(description="BLAKE2b-256 of the file")


class Manifest(Part):
    """All segments of one collector in one window for one campaign file; there may be no segment."""

    format: Literal[1] = 1
    collector: CollectorName
    campaign: Identifier
    epoch: int = Field(ge=1, le=GREATEST_EPOCH)
    fingerprint: Hex32
    window: WindowName
    seconds: WindowSeconds = Field(description="length of the window, which a deployment may change")
    authentication: Authentication = Field(default=WEAKEST, description="the weakest way that told senders apart")
    segments: dict[Stream, Annotated[tuple[SegmentPart, ...], Field(max_length=MOST_SEGMENTS)]] = Field(
        default_factory=dict
    )
    refused: Refused = Field(default_factory=dict, description="requests refused at the door, by reason")
    damaged: int = Field(
        default=0, ge=0, le=_MOST_DAMAGED, description="damaged frames or parts of journals: reports may be lost"
    )

    @model_validator(mode="after")
    def _check(self) -> Manifest:
        window_start(self.window)
        for stream, segments in self.segments.items():
            names = [segment.name for segment in segments]
            if len(set(names)) < len(names):
                raise ValueError(f"segments.{stream} names a segment twice")
        return self


def manifest_name(collector: str, id: str) -> str:
    """Return the name of a manifest's file; `id` is the manifest's id."""
    return f"{collector}-{id}{SUFFIX}"


def divided(
    segments: Mapping[Stream, Sequence[SegmentPart]], id: str
) -> list[tuple[str, dict[Stream, tuple[SegmentPart, ...]]]]:
    """Divide a window's segments into manifests; return each one's id and segments. The first manifest gets `id`."""
    parts = max([1, *(-(-len(listed) // MOST_SEGMENTS) for listed in segments.values())])
    return [
        (
            f"{(int(id, 16) + part) % (1 << 64):016x}",
            {
                stream: tuple(listed[part * MOST_SEGMENTS : (part + 1) * MOST_SEGMENTS])
                for stream, listed in segments.items()
                if len(listed) > part * MOST_SEGMENTS
            },
        )
        for part in range(parts)
    ]


def collector_of(name: str) -> str | None:
    """Return the collector's name in the name of a manifest; None if `name` is not the name of a manifest."""
    match = _NAME.fullmatch(name)
    return None if match is None else match["collector"]


def read_manifest(data: bytes, name: str) -> Manifest:
    """Read a manifest of this version, or raise FormatError, which names the file."""
    return parse_model(Manifest, data, name, "is no manifest of a collector")
