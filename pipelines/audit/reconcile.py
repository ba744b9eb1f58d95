"""What became of every report, by number: each hop's counts, and every place where two of them do not agree."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

from hushcount.formats.reading import parse_object
from hushcount.reasons import DAMAGE
from pipelines.audit.store_check import manifest_differences, output_differences, segment_differences
from pipelines.audit.view import View
from pipelines.batches.hops import CHAIN, READERS
from pipelines.batches.rows import made_batches
from pipelines.batches.waiting import Waiting, waiting_of


@dataclass(frozen=True)
class WindowCounts:
    """What the collectors stored of one window's stream, and where it is now.

    Attributes:
        window: name.
        stream: reports or discovery.
        received: reports that were acknowledged.
        states: their number by the state of their segment.
    """

    window: str
    stream: str
    received: int
    states: dict[str, int]


@dataclass(frozen=True)
class StreamRow:
    """What one job counted of one batch's stream; `rejected` by reason."""

    batch: str
    hop: str
    stream: str
    received: int
    accepted: int
    rejected: dict[str, int]


@dataclass(frozen=True)
class Account:
    """The reports of one campaign, by number.

    Attributes:
        campaign: id.
        windows: what was collected.
        hops: what the jobs counted.
        refused: what collectors refused at the door, by window and reason.
        waiting: what no batch has taken yet though its window has closed, and when it is dropped.
        differences: a sentence for each place where the numbers, or the files, do not agree; it names the file.
    """

    campaign: str
    windows: list[WindowCounts] = field(default_factory=list)
    hops: list[StreamRow] = field(default_factory=list)
    refused: dict[str, dict[str, int]] = field(default_factory=dict)
    waiting: list[Waiting] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)


def account_of(view: View, *, digests: bool = False) -> Account:
    """Return the account of a campaign: what was counted, and every place where the numbers and files do not agree.

    Args:
        view: of the campaign.
        digests: whether all that was handed on is read and compared with what was signed, not only what is new.
    """
    checks = (
        hop_differences(view), manifest_differences(view), segment_differences(view),
        output_differences(view, digests=digests),
    )  # fmt: skip
    return Account(view.campaign, _windows(view), _hops(view), _refused(view), waiting_in(view), list(chain(*checks)))


def waiting_in(view: View) -> list[Waiting]:
    """Return what waits; where the shuffler does not run, that is nothing."""
    files = view.epochs.campaigns
    return waiting_of(view.state, view.campaign, files, view.deployment.windows, view.now) if view.shuffles else []


def _windows(view: View) -> list[WindowCounts]:
    places: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for row in sorted(view.sums, key=lambda row: row.state):
        places[row.window, row.stream][row.state] += int(row.records)
    return [WindowCounts(*place, states.total(), dict(states)) for place, states in sorted(places.items())]


def _hops(view: View) -> list[StreamRow]:
    return [
        StreamRow(batch, hop, stream, counts["received"], counts["accepted"], counts["rejected"])
        for batch, hops in view.counts.items()
        for hop in CHAIN
        for stream, counts in hops.get(hop, {}).items()
    ]


def _refused(view: View) -> dict[str, dict[str, int]]:
    refused: dict[str, Counter[str]] = defaultdict(Counter)
    for row in view.manifests:
        if told := parse_object(row.refused.encode(), "state"):
            refused[row.window].update(told)
    return {window: dict(reasons) for window, reasons in refused.items()}


def hop_differences(view: View) -> Iterator[str]:
    """Yield a sentence for every loss of a hop, and for every two numbers of a batch that do not agree."""
    for one in _hops(view):
        rejected, at = sum(one.rejected.values()), f"{one.batch} {one.hop}: "
        if lost := sum(one.rejected.get(reason, 0) for reason in DAMAGE):
            yield f"{at}{lost:,} {one.stream} were lost in damaged blocks or cut files"
        if one.received != one.accepted + rejected:
            sums = f"accepted {one.accepted:,} and rejected {rejected:,}"
            yield f"{at}{one.stream} received {one.received:,} is not {sums}"
    collected: dict[str, Counter[str]] = defaultdict(Counter)
    for row in view.sums:
        if row.state == "batched":
            collected[row.batch][row.stream] += int(row.records)
    # A party that has no state of segments knows the hops alone.
    for batch in (batch.name for batch in made_batches(view.state, view.campaign)):
        hops = view.counts.get(batch, {})
        if (shuffled := hops.get("shuffle")) is not None:
            for stream in sorted(shuffled.keys() | collected[batch].keys()):
                received, stored = shuffled.get(stream, {"received": 0})["received"], collected[batch][stream]
                if received != stored:
                    yield f"{batch}: {stream} shuffled: {received:,} received, {stored:,} collected"
            for stream, hop in READERS.items():
                if stream in hops.get(hop, {}) and stream in shuffled:
                    received, forwarded = hops[hop][stream]["received"], shuffled[stream]["accepted"]
                    if received != forwarded:
                        yield f"{batch}: {stream} of {hop}: {received:,} received, {forwarded:,} forwarded"
