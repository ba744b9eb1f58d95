"""Account for every report in numbers, and find every place where two numbers, or a number and a file, disagree."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import get_args

from hushcount.campaigns.campaign import Stream
from hushcount.collection.windows import is_window
from hushcount.errors import UsageError
from hushcount.reasons import DAMAGE
from pipelines.audit.outputs import missing, output_differences
from pipelines.audit.parties import STORED, Line, given_up, lines_of, party_differences
from pipelines.audit.view import StreamRow, View
from pipelines.files import storage
from pipelines.handover.hops import CHAIN, path_of
from pipelines.ledger.clock import shown
from pipelines.windows.closing import next_window
from pipelines.windows.intake import fault_in
from pipelines.windows.stored import oldest_open
from pipelines.windows.waiting import Waiting, waiting_of


@dataclass(frozen=True)
class WindowCounts:
    """The number of acknowledged reports of one window and stream, in all and by the state of their segment."""

    window: str
    stream: Stream
    received: int
    states: Mapping[str, int]


@dataclass(frozen=True)
class Account:
    """The account of one campaign's reports, in numbers.

    Attributes:
        campaign: id.
        parties: one line for each party and stream, which accounts for all reports.
        windows: the reports that collectors stored.
        hops: the counts of the jobs.
        refused: the number of requests that collectors refused, by window and reason.
        waiting: the reports of closed windows that are in no batch yet, and when the shuffler drops them.
        given_up: a sentence on reports that were given up because a log was lost; each later account repeats it.
        differences: a sentence for each disagreement of numbers or files; the sentence names the batch or file.
        listed_from: the first window whose files were listed; empty: the files of all windows were listed.
        latest: when a run wrote the newest entry of a log, in ISO 8601; None: no log has an entry.
    """

    campaign: str
    windows: list[WindowCounts] = field(default_factory=list)
    hops: list[StreamRow] = field(default_factory=list)
    refused: dict[str, dict[str, int]] = field(default_factory=dict)
    waiting: list[Waiting] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)
    latest: str | None = None
    parties: list[Line] = field(default_factory=list)
    given_up: list[str] = field(default_factory=list)
    listed_from: str = ""

    @property
    def stored(self) -> int:
        """The number of stored reports whose manifest no run has taken in."""
        return sum(one.states.get(STORED, 0) for one in self.windows)


def account_of(view: View, *, past: bool = False, digests: bool = False) -> Account:
    """Return the account of a campaign.

    Args:
        view: view of the campaign.
        past: whether to check the outputs of all windows; if false, only the latest windows and unfinished batches.
        digests: whether to check all windows, and read every table and every signed file that was handed on.
    """
    latest, windows = view.fold.latest, _windows(view)
    states: dict[Stream, Counter[str]] = defaultdict(Counter)
    for one in windows:
        states[one.stream].update(one.states)
    lines = lines_of(view, states)
    return Account(
        view.campaign,
        windows,
        _hops(view),
        _refused(view),
        waiting_in(view),
        [
            *missing(view, past or digests),
            *_line_differences(lines),
            *_hop_differences(view),
            *party_differences(view),
            *rescues(view),
            *(chain(_manifest_differences(view), _segment_differences(view)) if view.deployment.shuffles else ()),
            *filter(None, [overdue(view)]),
            *unshuffled(view),
            *output_differences(view, past or digests, digests),
        ],
        None if latest is None else latest.isoformat(),
        lines,
        [*given_up(view)],
        _listed_from(view),
    )


def _listed_from(view: View) -> str:
    return oldest_open(view.fold, view.deployment.windows) if view.recent else ""


def _windows(view: View) -> list[WindowCounts]:
    places = {place: Counter(states) for place, states in view.fold.counts_by_window.items()}
    for one in view.intake.listed:
        for segment in one.segments:
            places.setdefault((segment.window.name, segment.stream), Counter())[STORED] += segment.records
    return [WindowCounts(*place, states.total(), dict(states)) for place, states in sorted(places.items())]


def _refused(view: View) -> dict[str, dict[str, int]]:
    numbers = {name: Counter(window.refused) for name, window in view.fold.windows.items() if window.refused}
    for one in view.intake.listed:
        if one.manifest.refused:
            numbers.setdefault(one.window.name, Counter()).update(one.manifest.refused)
    return {window: dict(reasons) for window, reasons in sorted(numbers.items())}


def overdue(view: View) -> str | None:
    """Return a sentence on the oldest unclosed window if it ended longer ago than twice the patience, else None.

    Without a list of collectors a window is due after its patience, and a run needs some time to look.
    """
    fold, rule = view.fold, view.rule
    window = next_window(fold.closed, fold.waiting.values(), view.intake.listed, rule, view.now)
    if window is None:
        return None
    due = window.end + rule.patience
    if view.now <= due + rule.patience:
        return None
    number = sum(segment.records for one in view.intake.listed for segment in one.segments)
    log = "is empty" if fold.latest is None else f"has its newest entry of {shown(fold.latest)}"
    return (
        f"{view.campaign}: no run has closed window {window.text}, which is due since {shown(due)}; "
        f"{number:,} stored reports are in no batch, and the log {log}: check that hushcount run is "
        "running, and read its messages"
    )


def unshuffled(view: View) -> Iterator[str]:
    """Yield a sentence for each batch that is not shuffled though its window's grace ended a window's length ago."""
    for name, made in sorted(view.fold.batches.items()):
        times = view.calendar.of(made.window)
        if view.fold.is_undone(name) and made.window.end + times.tiling.longest + times.grace < view.now:
            yield (
                f"{name}: {sum(made.collected.values()):,} reports are in this batch since {shown(made.window.end)}, "
                "and it is not shuffled: check that hushcount run is running, and read its messages"
            )


def waiting_in(view: View) -> list[Waiting]:
    """Return the reports that are in no batch yet; an empty list if the shuffler does not run here."""
    return waiting_of(view.fold, view.rule, view.now) if view.deployment.shuffles else []


def rescues(view: View) -> Iterator[str]:
    """Yield a sentence for each hop in whose newest batch libsodium opened reports that the lanes failed to open."""
    for batch, hop, number in view.rescued:
        yield (
            f"{batch} {hop}: the lanes failed to open {number:,} reports; libsodium opened them, so no report was "
            "lost: set HUSHCOUNT_OPENING=libsodium, and report this as a bug"
        )


def _hops(view: View) -> list[StreamRow]:
    return [row for hops in view.counts.values() for hop in CHAIN for row in hops.get(hop, {}).values()]


def _line_differences(lines: Sequence[Line]) -> Iterator[str]:
    for one in lines:
        if not one.adds_up:
            parts = sum(one.rejected.values()) + sum(one.dropped.values()) + one.on_its_way + (one.went_on or 0)
            yield (
                f"{one.stream} at {', '.join(one.parties)}: {one.received:,} reports received, but {parts:,} went on, "
                "were rejected, were dropped, or are on their way"
            )


def _hop_differences(view: View) -> Iterator[str]:
    """Yield a sentence for every hop that lost reports, and for every two numbers of a batch that disagree.

    The numbers of a batch include the numbers that parties elsewhere stated.
    """
    for one in _hops(view):
        if lost := sum(one.rejected.get(reason, 0) for reason in DAMAGE):
            yield f"{one.batch} {one.hop}: {lost:,} {one.stream} were lost in damaged blocks or cut files"
    for batch, hops in view.counts.items():
        made, stated = view.fold.batches.get(batch), view.stated.get(batch, {})
        shuffled = hops.get("shuffle")
        if made is not None and shuffled is not None:
            for stream in sorted(shuffled.keys() | made.collected.keys()):
                received = shuffled[stream].received if stream in shuffled else 0
                if received != (stored := made.collected.get(stream, 0)):
                    yield f"{batch}: {stream} shuffled: {received:,} received, {stored:,} collected"
        for stream in get_args(Stream):
            for before, hop in pairwise(path_of(stream, view.epochs.has_noise)):
                reader, source = ((hops.get(name) or stated.get(name, {})).get(stream) for name in (hop, before))
                if reader is not None and source is not None and reader.received != source.accepted:
                    by = [f"{name} ran" for name in (hop, before) if name in stated and name not in hops]
                    said = f"; {by[0]} elsewhere" if by else ""
                    of = f"{batch}: {stream} of {hop}"
                    yield f"{of}: {reader.received:,} received, {source.accepted:,} forwarded{said}"
        released, opened = stated.get("release", {}).get("discovery"), hops.get("discover", {}).get("discovery")
        if released is not None and opened is not None and released.received != opened.received:
            yield (
                f"{batch}: discover read a release of {opened.received:,} reports, but release stated "
                f"{released.received:,} elsewhere"
            )


def _manifest_differences(view: View) -> Iterator[str]:
    """Yield a sentence for every unusable manifest, and for every manifest that reports damage to a journal."""
    root = view.deployment.folder("segments")
    yield from (storage.join(root, problem) for problem in view.intake.problems)
    damaged = {path: number for window in view.fold.windows.values() for path, number in window.damaged.items()}
    damaged |= {one.path: one.manifest.damaged for one in view.intake.listed if one.manifest.damaged}
    for path, number in damaged.items():
        yield (
            f"{storage.join(root, path)}: {number:,} stretches of the collector's journal were damaged, and may have "
            "held acknowledged reports: look into damaged/ beside its journal"
        )


def _segment_differences(view: View) -> Iterator[str]:
    """Yield a sentence for every segment that differs from its manifest, is in no manifest, or was put aside.

    A segment that was put aside can be restored until its grace period ends. After its grace period the segment's
    reports are lost, no sentence mentions them, and they appear only in their column of the account.
    """
    root, fold = view.deployment.folder("segments"), view.fold
    sizes = {str(segment): size for segment, size in view.stored.items()}
    needed = [segment for path, segment in fold.waiting.items() if path not in fold.aside]
    needed += [segment for name in fold.batches if fold.is_undone(name) for segment in fold.batches[name].all_segments]
    needed += [segment for one in view.intake.listed for segment in one.segments]
    for path in sorted(fold.aside):
        # A segment that somebody has restored joins the next window that closes, so it yields no sentence.
        try:
            fault = fault_in(view.deployment, fold.waiting[path])
        except UsageError as error:
            fault = f"cannot be read now: {error}"
        if fault is not None:
            yield f"{storage.join(root, path)} {fault}: it was put aside; restore it. Others do not wait for it"
    for segment in sorted(needed, key=lambda one: one.path):
        path, size = storage.join(root, segment.path), sizes.get(segment.path)
        if size is None:
            yield f"{path} is missing: restore it"
        elif size != segment.bytes:
            yield f"{path} has {size} bytes, but was written with {segment.bytes}: restore it"
    for unlisted in view.unlisted:
        path = storage.join(root, str(unlisted))
        if not is_window(unlisted.window):
            yield f"{path} lies in no window: remove it"
        elif view.is_over(unlisted.window):
            again = view.deployment.command("repair segments")
            cure = f"check that its collector runs; if that collector is lost for good, run {again}"
            yield f"{path} is in no manifest, though its window is over: {cure}"
