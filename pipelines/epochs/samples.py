"""The buckets of a campaign's sample: free ones of its layer, and those that it had before (docs/adr/0050)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.parts import BUCKETS, SamplePart
from hushcount.errors import UsageError
from hushcount.formats.models import explain


def widened(before: SamplePart | None, layer: str, share: float, taken: Sequence[SamplePart]) -> SamplePart:
    """Return a sample of a share of all clients: what the campaign had before, and the lowest free buckets.

    Args:
        before: sample of the epoch before; None: the campaign's first.
        share: in (0, 1], a whole number of 10,000th parts.
        taken: samples of the other campaigns of the layer.

    Raises:
        UsageError: the share is out of range or below that of `before`, the layer is another one, or too few buckets
            are free.
    """
    wanted = round(share * BUCKETS)
    if not 1 <= wanted <= BUCKETS or abs(wanted - share * BUCKETS) > 1e-6:
        raise UsageError(f"sample is {share:.6%}, must be from 0.01% to 100%, in steps of 0.01%")
    if before is not None and (before.layer != layer or wanted < round(before.share * BUCKETS)):
        raise UsageError(
            f"sample is {share:.2%} in layer {layer}, was {before.share:.2%} in layer {before.layer}: an epoch keeps "
            "the layer, and asks as many clients or more"
        )
    own = set() if before is None else {one for one in range(BUCKETS) if before.has(one)}
    free = [one for one in range(BUCKETS) if one not in own and not any(sample.has(one) for sample in taken)]
    if len(own) + len(free) < wanted:
        raise UsageError(
            f"sample is {share:.2%}, but only {(len(own) + len(free)) / BUCKETS:.2%} of layer {layer} is free: give a "
            "smaller share, or another --layer"
        )
    chosen = {*own, *free[: wanted - len(own)]}
    # A range begins where the bucket before is not chosen.
    begins = [one for one in sorted(chosen) if one - 1 not in chosen]
    ends = [one + 1 for one in sorted(chosen) if one + 1 not in chosen]
    try:
        return SamplePart(layer=layer, buckets=tuple(zip(begins, ends, strict=True)))
    except ValidationError as error:
        raise UsageError(f"this sample would be invalid: {explain(error)}") from None


@dataclass(frozen=True)
class Share:
    """What a campaign has of its layer: `share` of all clients, in (0, 1], and its ranges of buckets as text."""

    layer: str
    campaign: str
    share: float
    ranges: str


def shares(files: Iterable[Campaign]) -> list[Share]:
    """Return what each campaign has of its layer, by layer and first bucket; the widest sample of all its epochs."""
    widest: dict[str, SamplePart] = {}
    for one in files:
        if one.sample is not None and (one.id not in widest or one.sample.widens(widest[one.id])):
            widest[one.id] = one.sample
    return [
        Share(sample.layer, name, sample.share, ", ".join(f"{first}-{end - 1}" for first, end in sample.buckets))
        for name, sample in sorted(widest.items(), key=lambda item: (item[1].layer, item[1].buckets))
    ]
