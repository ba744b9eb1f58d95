"""What became of every report, by number: each hop's counts, and every place where two of them do not agree."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from sqlalchemy import Connection, func, select

from hushcount.formats.reading import parse_object
from hushcount.reasons import DAMAGE
from pipelines.audit.store_check import Checked, manifest_differences, output_differences, segment_differences
from pipelines.batches.hops import OUTPUTS, READERS
from pipelines.batches.rows import made_batches
from pipelines.batches.state import HOPS, MANIFESTS, SEGMENTS
from pipelines.batches.waiting import Waiting, waiting_of
from pipelines.deployment.campaigns import read_campaign
from pipelines.deployment.settings import Deployment


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
class HopCounts:
    """What one job counted of one batch's stream; `rejected` by reason."""

    batch: str
    hop: str
    stream: str
    received: int
    accepted: int
    rejected: dict[str, int]


@dataclass
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
    hops: list[HopCounts] = field(default_factory=list)
    refused: dict[str, dict[str, int]] = field(default_factory=dict)
    waiting: list[Waiting] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)


def account_of(
    connection: Connection,
    deployment: Deployment,
    campaign: str,
    now: datetime | None = None,
    *,
    digests: bool = False,
) -> Account:
    """Return the account of a campaign: the numbers of the state, checked against each other and the store.

    Args:
        connection: to the state.
        deployment: whose.
        campaign: id.
        now: the present; the clock's by default.
        digests: whether all that was handed on is read and compared with what was signed, not only what is new.
    """
    account = Account(campaign)
    moment = now or datetime.now(timezone.utc)
    work = Checked(connection, deployment, campaign, moment, digests)
    _add_windows(connection, account)
    _add_refused(connection, account)
    rows = connection.execute(select(HOPS.c.batch, HOPS.c.hop, HOPS.c.counts).where(HOPS.c.campaign == campaign))
    counted: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for row in rows:
        counted[row.batch][row.hop] = parse_object(row.counts.encode(), "state")["streams"]
    made = {batch.name for batch in made_batches(connection, campaign)}
    collected = _collected(connection, campaign)
    # A party that has no state of segments knows the hops alone.
    for name, hops in sorted(counted.items()):
        _add_hops(account, name, hops)
        if name in made and "shuffle" in hops:
            _check_batch(account, name, hops, collected[name])
    if "shuffler" in deployment.file.parties:
        files = read_campaign(deployment.campaigns / campaign).campaigns
        account.waiting += waiting_of(connection, campaign, files, deployment.windows, moment)
        account.differences += manifest_differences(work)
        account.differences += segment_differences(work)
    account.differences += output_differences(work, counted)
    return account


def _add_windows(connection: Connection, account: Account) -> None:
    sums = select(SEGMENTS.c.window, SEGMENTS.c.stream, SEGMENTS.c.state, func.sum(SEGMENTS.c.records)).where(
        SEGMENTS.c.campaign == account.campaign
    )
    by_place: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for window, stream, state, records in connection.execute(
        sums.group_by(SEGMENTS.c.window, SEGMENTS.c.stream, SEGMENTS.c.state)
    ):
        by_place[window, stream][state] = int(records)
    for (window, stream), states in sorted(by_place.items()):
        account.windows.append(WindowCounts(window, stream, sum(states.values()), states))


def _add_refused(connection: Connection, account: Account) -> None:
    rows = connection.execute(
        select(MANIFESTS.c.window, MANIFESTS.c.refused).where(MANIFESTS.c.campaign == account.campaign)
    )
    for window, refused in rows:
        for reason, number in parse_object(refused.encode(), "state").items():
            sums = account.refused.setdefault(window, {})
            sums[reason] = sums.get(reason, 0) + number


def _add_hops(account: Account, batch: str, hops: dict[str, dict[str, Any]]) -> None:
    for hop in (name for name in OUTPUTS if name in hops):
        for stream, counts in hops[hop].items():
            made = HopCounts(batch, hop, stream, counts["received"], counts["accepted"], counts["rejected"])
            account.hops.append(made)
            if lost := sum(made.rejected.get(reason, 0) for reason in DAMAGE):
                account.differences.append(f"{batch} {hop}: {lost:,} {stream} were lost in damaged blocks or cut files")
            if made.received != made.accepted + sum(made.rejected.values()):
                account.differences.append(
                    f"{batch} {hop}: {stream} received {made.received:,} is not accepted {made.accepted:,} and "
                    f"rejected {sum(made.rejected.values()):,}"
                )


def _collected(connection: Connection, campaign: str) -> dict[str, dict[str, int]]:
    """Return how many reports are in each batch, by stream."""
    sums = select(SEGMENTS.c.batch, SEGMENTS.c.stream, func.sum(SEGMENTS.c.records)).where(
        SEGMENTS.c.campaign == campaign, SEGMENTS.c.state == "batched"
    )
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for batch, stream, records in connection.execute(sums.group_by(SEGMENTS.c.batch, SEGMENTS.c.stream)):
        found[batch][stream] = int(records)
    return found


def _check_batch(account: Account, batch: str, hops: dict[str, dict[str, Any]], collected: dict[str, int]) -> None:
    """Check that each hop received what the one before forwarded."""
    for stream in sorted(hops["shuffle"].keys() | collected.keys()):
        received = hops["shuffle"].get(stream, {"received": 0})["received"]
        _expect(account, batch, f"{stream} shuffled", received, "collected", collected.get(stream, 0))
    for stream, hop in READERS.items():
        if stream in hops.get(hop, {}) and stream in hops["shuffle"]:
            forwarded = hops["shuffle"][stream]["accepted"]
            _expect(account, batch, f"{stream} of {hop}", hops[hop][stream]["received"], "forwarded", forwarded)


def _expect(account: Account, batch: str, what: str, number: int, other: str, expected: int) -> None:
    if number != expected:
        account.differences.append(f"{batch}: {what}: {number:,} received, {expected:,} {other}")
