"""Who is asked: the bucket of an installation in a layer, by a random id of its own (docs/adr/0050)."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Annotated, Literal

import mmh3
from pydantic import Field

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.parts import BUCKETS, MOST_LAYERS, Identifier
from hushcount.errors import HushcountError
from hushcount.formats.client_files import KeptValue
from hushcount.formats.models import Part, text_of
from hushcount.newest import Untrusted
from hushcount.randomness import SystemWords

_LASTS = timedelta(days=365)
_WORDS = 2
"""Words of 64 bits in an id."""


class NotAsked(HushcountError):
    """The campaign's sample does not contain this installation, so it makes no report."""


def bucket_of(id_: str, layer: str) -> int:
    """Return the bucket of an installation in a layer, in 0..BUCKETS - 1.

    The law is uniform over random ids, up to 2e-6 of a bucket's probability. The hash is public and resists nobody: it
    is for an even split of honest ids, and forgers choose ids with any bucket.

    Args:
        id_: 32 hexadecimal digits, in lower case.
    """
    return int(mmh3.hash(f"{layer}:{id_}", 0, signed=False) % BUCKETS)


@dataclass(frozen=True, eq=False)
class Installation:
    """The random id of one installation, and the layers in which its campaigns ask; threads may share this object.

    Privacy: the id is never sent. Whoever reads the file knows which campaigns ask this installation, and nothing of
        its values. The id is drawn anew after a year, and after it is lost: then other campaigns of a layer may ask
        this person too, and the person's budget pays for each.
    Randomness: the operating system's cryptographic generator.

    Args:
        path: file of mode 0600 that keeps the id. The first campaign with a sample makes it, and beside it a file
            `.lock`, if the system can lock files. None: the id is lost when the process ends.
    """

    path: Path | None = None
    _kept: KeptValue[_Kept] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        cure = "restore it; if you remove it, this installation is drawn anew, and may pay for other campaigns too"
        object.__setattr__(self, "_kept", KeptValue(_Kept(), self.path, "installation", cure))

    def is_asked(self, campaign: Campaign, now: datetime) -> bool:
        """Return whether the campaign asks this installation: the same for a whole epoch, until the id is drawn anew.

        Raises:
            Untrusted: the campaign had another layer before, or this installation is in MOST_LAYERS other layers.
            FormatError, UsageError, HushcountError: the file is damaged, or cannot be read or written.
        """
        if campaign.sample is None:
            return True
        sample = campaign.sample
        id_ = self._kept.change(lambda kept: _in_layer(kept, campaign.id, sample.layer, now.date()))
        return sample.has(bucket_of(id_, sample.layer))


class _Kept(Part):
    """The content of an installation's file: its id ("" before the first sample), and the layer of each campaign."""

    format: Literal[1] = 1
    id: Annotated[str, text_of(r"^([0-9a-f]{32})?$", "must be 32 hexadecimal digits, in lower case")] = ""
    drawn: date = date.min
    layers: dict[Identifier, Identifier] = Field(default_factory=dict)


def _in_layer(kept: _Kept, campaign: str, layer: str, today: date) -> tuple[_Kept, str]:
    """Return what is kept once the campaign asks in this layer, and the id."""
    before, others = kept.layers.get(campaign, layer), set(kept.layers.values()) - {layer}
    if before != layer:
        raise Untrusted(f"layer of campaign {campaign} is {layer}, was {before}: a campaign keeps its layer")
    if len(others) >= MOST_LAYERS:
        raise Untrusted(
            f"layer of campaign {campaign} is {layer}, but this installation is in {len(others)} layers already "
            f"({', '.join(sorted(others))}), may be in {MOST_LAYERS}: give the campaign one of these layers"
        )
    if not kept.id or today - kept.drawn >= _LASTS:
        kept = kept.model_copy(update={"id": _drawn(), "drawn": today})
    if campaign not in kept.layers:
        kept = kept.model_copy(update={"layers": {**kept.layers, campaign: layer}})
    return kept, kept.id


def _drawn() -> str:
    return SystemWords().words(_WORDS).tobytes().hex()
