"""One account over all parties: a line for each party and stream.

The lines of parties here come from the logs here. Nobody reads the log of a party elsewhere: that party writes the
counts of its hops into statements, and the number of reports that it read of an output into receipts. In each line,
each report received has gone on, was rejected, was dropped, or is on its way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby, pairwise
from typing import Literal

from hushcount.campaigns.campaign import Stream
from hushcount.collection.envelopes import ENVELOPES
from hushcount.collection.windows import window_text
from pipelines.audit.view import StreamRow, View
from pipelines.deployment.settings import Party
from pipelines.handover.hops import CHAIN, HopName, input_of, path_of, readers_of
from pipelines.handover.statements import Statement, others
from pipelines.ledger.clock import shown
from pipelines.log.facts import Hopped
from pipelines.schedule.stating import overdue, recipients_of, silent

STORED = "stored"
"""The state of reports whose manifest is in no closed window yet."""
UNRECEIVED = "deleted_unreceived"
"""The reason given for reports that were handed on, but deleted before the reader's receipt came."""
Source = Literal["log", "statements", "receipts", "nothing"]


@dataclass(frozen=True)
class Line:
    """The reports of a stream at some parties: received = went on + rejected + dropped + on its way.

    Attributes:
        parties: the parties of this line: all that run here together, or one elsewhere.
        source: where the numbers come from; nothing: no statement or receipt of that party has come yet.
        said: when the newest statement or receipt was made, in ISO 8601; None: the numbers are read from the log now,
            or there are no numbers.
        went_on: reports that were counted, or handed on to their reader; None: unknown, because a receipt does not say.
        rejected, dropped: number of reports by reason.
    """

    parties: tuple[Party, ...]
    stream: Stream
    source: Source
    said: str | None = None
    received: int = 0
    went_on: int | None = 0
    rejected: Mapping[str, int] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)
    on_its_way: int = 0

    @property
    def adds_up(self) -> bool:
        """Whether every report is counted at exactly one place."""
        known = sum(self.rejected.values()) + sum(self.dropped.values()) + self.on_its_way
        return self.went_on is None or self.received == self.went_on + known


def lines_of(view: View, states: Mapping[Stream, Mapping[str, int]]) -> list[Line]:
    """Return a campaign's lines: for each stream a line of the parties here, and a line of each party elsewhere.

    Args:
        states: number of stored reports by the state of their segment.
    """
    wanted = {stream for campaign in view.epochs.campaigns.values() for stream in campaign.streams}
    found = []
    for stream in (stream for stream in ENVELOPES if stream in wanted):
        path = path_of(stream, view.epochs.has_noise)
        for is_here, hops in groupby(path, lambda hop: CHAIN[hop].party in view.deployment.file.parties):
            if is_here:
                found.append(_here(view, stream, (*hops,), states.get(stream, {})))
        found += [_elsewhere(view, stream, hop) for hop in path if CHAIN[hop].party in others(view.deployment)]
    return found


def _here(view: View, stream: Stream, hops: Sequence[HopName], states: Mapping[str, int]) -> Line:
    """Return the line of parties here; `hops` are the hops of a stream's path that they run one after another."""
    fold, path = view.fold, path_of(stream, view.epochs.has_noise)
    rows = [_rows(view, hop, stream) for hop in hops]
    rejected, dropped, on_its_way = Counter(_rejected(list(chain(*rows)))), Counter[str](), 0
    for (_, written), (reader, _) in pairwise(zip(hops, rows, strict=True)):
        on_its_way += sum(row.accepted for row in written if _is_unread(view, row, reader))
    if hops[0] != "shuffle":
        before = _stated_rows(view, path[path.index(hops[0]) - 1], stream)
        coming = sum(row.accepted for row in before if _is_unread(view, row, hops[0]))
        received = coming + sum(row.received for row in rows[0])
        on_its_way += coming
    else:
        # An output that a new log adopted may hold reports of segments that were given up with the lost log.
        adopted = sum(row.received for row in rows[0] if fold.done[row.batch]["shuffle"].is_adopted)
        known = {row.batch for row in rows[0]}
        for read in rows[1:]:
            # If a batch's files were deleted before the new log began, that log adopted only the reader's output.
            adopted += sum(row.received for row in read if row.batch not in known)
            known |= {row.batch for row in read}
        given_up = states.get("given_up", 0)
        dropped.update(too_late=states.get("too_late", 0), given_up=max(0, given_up - adopted))
        on_its_way += sum(states.get(state, 0) for state in (STORED, "waiting", "quarantined"))
        on_its_way += sum(made.collected.get(stream, 0) for name, made in fold.batches.items() if fold.is_undone(name))
        received = sum(states.values()) + max(0, adopted - given_up)
    left = {row.batch: row.accepted for row in rows[-1]}
    if hops[-1] != path[-1]:
        party = CHAIN[path[path.index(hops[-1]) + 1]].party
        unsaid = {one.batch for one in view.handed if one.hop == hops[-1] and party in one.missing}
        on_its_way += sum(left.pop(batch, 0) for batch in unsaid)
        lost = [batch for batch in left if _is_unreceived(view, hops[-1], batch, party)]
        dropped[UNRECEIVED] = sum(left.pop(batch) for batch in lost)
    parties = tuple(CHAIN[hop].party for hop in hops)
    return Line(
        parties, stream, "log", None, received, sum(left.values()), dict(+rejected), dict(+dropped), on_its_way
    )  # fmt: skip


def _is_unreceived(view: View, hop: HopName, batch: str, party: Party) -> bool:
    """Return whether a hop's output for a party was deleted before the party's receipt came."""
    fold = view.fold
    return f"{CHAIN[hop].folder} {batch}" in fold.unreceived and f"{party} {hop} {batch}" not in fold.received


def _elsewhere(view: View, stream: Stream, hop: HopName) -> Line:
    """Return the line of a party that runs a hop elsewhere, from its statements or receipts."""
    party, path = CHAIN[hop].party, path_of(stream, view.epochs.has_noise)
    stated = [
        one for (_, name), one in view.heard.statements.get(party, {}).items() if name == hop and stream in one.streams
    ]
    if stated:
        rows = _stated_rows(view, hop, stream)
        received, went_on = sum(row.received for row in rows), sum(row.accepted for row in rows)
        return Line((party,), stream, "statements", _newest(stated), received, went_on, _rejected(rows))
    before = path[path.index(hop) - 1] if hop != "shuffle" else None
    receipts = [one for (_, name), one in view.heard.receipts.get(party, {}).items() if name == before]
    if receipts:
        taken = sum(one.taken or 0 for one in receipts)
        return Line((party,), stream, "receipts", _newest(receipts), taken, None)
    return Line((party,), stream, "nothing")


def _newest(said: Sequence[Statement]) -> str:
    return max(one.at for one in said).isoformat()


def _rows(view: View, hop: HopName, stream: Stream) -> list[StreamRow]:
    return [hops[hop][stream] for hops in view.counts.values() if stream in hops.get(hop, {})]


def _stated_rows(view: View, hop: HopName, stream: Stream) -> list[StreamRow]:
    return [hops[hop][stream] for hops in view.stated.values() if stream in hops.get(hop, {})]


def _rejected(rows: Sequence[StreamRow]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for row in rows:
        found.update(row.rejected)
    return dict(found)


def _is_unread(view: View, row: StreamRow, reader: HopName) -> bool:
    return reader not in view.fold.hops_of(row.batch)


def party_differences(view: View) -> Iterator[str]:
    """Yield a sentence for each statement or receipt that differs from the log, and for each late or lost hand-over."""
    yield from view.heard.problems
    yield from _of_receipts(view)
    yield from _of_statements(view)
    yield from _unreceived(view)
    yield from overdue(view.deployment, view.fold, view.handed, view.heard.all_statements, view.now)


def _of_receipts(view: View) -> Iterator[str]:
    for party, receipts in view.heard.receipts.items():
        for (batch, hop), receipt in sorted(receipts.items()):
            if CHAIN[hop].party not in view.deployment.file.parties:
                continue
            done = view.fold.hops_of(batch).get(hop)
            where = f"{batch}: the receipt of {party} of {shown(receipt.at)}"
            if done is None:
                yield f"{where} is for {CHAIN[hop].folder}, but the log of {CHAIN[hop].party} has no such output"
            elif receipt.summary != done.summary:
                yield f"{where} names another summary than {hop} wrote: check that this party reads what was handed on"
            # A log that replaces a lost log may have an output's entry without the counts of the output.
            elif done.counts.streams and receipt.taken != (handed := _handed(done, hop, party)):
                yield f"{where} says {receipt.taken or 0:,} taken, but {hop} forwarded {handed:,}"


def _handed(done: Hopped, hop: HopName, party: Party) -> int:
    """Return how many records of an output its reader at `party` counts as received."""
    if hop == "release":
        # The reader of bins counts the reports from which the bins were made.
        return done.counts.received
    streams = done.counts.streams
    readers = readers_of(hop, streams, done.counts.dummies is not None)
    return sum(streams[one.stream].accepted for one in readers if one.party == party and one.stream is not None)


def _of_statements(view: View) -> Iterator[str]:
    """Yield a sentence for each output whose summary, as a hop here read it, differs from the one its party stated.

    `reconcile` compares the numbers in statements with the numbers of other hops.
    """
    for party, statements in view.heard.statements.items():
        for (batch, hop), stated in sorted(statements.items()):
            for name, done in view.fold.hops_of(batch).items():
                source = input_of(name, done.counts.dummies is not None)
                if source == hop and done.made_from not in (None, stated.summary):
                    yield (
                        f"{batch}: {party} stated another summary of {hop} at {shown(stated.at)} than {name} read: "
                        f"compare the files that {party} handed on with the files here"
                    )


def _unreceived(view: View) -> Iterator[str]:
    """Yield a sentence, in every later audit too, for each output that retention deleted before its receipt came."""
    for what in view.fold.unreceived:
        folder, _, batch = what.rpartition(" ")
        (hop,) = (hop for hop in CHAIN.values() if hop.folder == folder)
        done = view.fold.done[batch][hop.name]
        missing = silent(recipients_of(view.deployment, hop.name, done), hop.name, batch, view.fold.received)
        number = sum(_handed(done, hop.name, party) for party in missing)
        if missing:
            yield (
                f"{batch}: retention deleted {view.deployment.folder(folder, view.campaign, batch)} without a receipt "
                f"of {' and '.join(missing)}: nobody here knows whether its {number:,} reports were counted"
            )


def given_up(view: View) -> Iterator[str]:
    """Yield a sentence on the reports that were given up, because only a lost log said whether they were counted."""
    lost = [one for one in view.fold.dropped.values() if one.state == "given_up"]
    if lost:
        windows = sorted({one.window for one in lost})
        first = window_text(windows[0])
        of = f"window {first}" if len(windows) == 1 else f"{len(windows):,} windows, {first} the first,"
        yield (
            f"{sum(one.reports for one in lost):,} reports of {len(lost):,} segments of {of} were given up with a "
            "lost log: unless the new log took up their output, nobody can know whether they were ever counted"
        )
