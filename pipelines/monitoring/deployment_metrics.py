"""The metrics of a deployment, from its logs and ledger, with names of campaigns, hops, streams and outcomes.

The metrics are counts and verdicts, never items or results, so a collector of metrics needs no permission to read
results.

The metrics are computed from the store at each look, and not added up in a process, so restarts and killed runs lose no
count. A moment is given as a timestamp and not as an age, so that a later reader still knows how long ago it was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from hushcount.collection.windows import window_start
from hushcount.errors import HushcountError
from pipelines.audit.foresight import room_of
from pipelines.audit.reconcile import account_of
from pipelines.audit.view import View
from pipelines.deployment.campaigns import Epochs
from pipelines.deployment.settings import Deployment
from pipelines.files.storage_errors import told
from pipelines.handover.hops import hop_names, outputs
from pipelines.ledger.overview import describe
from pipelines.log.log import Logs

PREFIX = "hushcount_run_"


class Numbers:
    """All metrics with their values; a metric with an unknown value has no sample."""

    def __init__(self) -> None:
        self._families: list[Metric] = []
        self.collected = self._gauge(
            "collected_reports", "Collected reports, by their state.", "campaign", "stream", "state"
        )
        self.reports = CounterMetricFamily(
            f"{PREFIX}reports", "Reports of finished hops, by outcome.", labels=("campaign", "hop", "stream", "outcome")
        )
        self._families.append(self.reports)
        self.waiting = self._gauge(
            "waiting_reports", "Reports of closed windows that no batch took yet.", "campaign", "stream"
        )
        self.last_chance = self._gauge(
            "last_chance_reports", "Waiting reports that at most this window can still take.", "campaign", "stream"
        )
        self.dropped_at = self._gauge(
            "waiting_until_timestamp_seconds", "When the first reports that wait become too late.", "campaign", "stream"
        )
        self.undone = self._gauge("undone_windows", "Windows that have ended and are not done.", "campaign")
        self.oldest_undone = self._gauge(
            "oldest_undone_window_end_timestamp_seconds", "When the oldest window that is not done ended.", "campaign"
        )
        self.differences = self._gauge("differences", "Numbers or files that do not agree: 0 is good.", "campaign")
        self.epsilon_left = self._gauge("ledger_epsilon_left", "Epsilon that the limit still admits.", "campaign")
        self.windows_left = self._gauge(
            "ledger_windows_left", "Windows for which the ledger has room; 30 means 30 or more.", "campaign"
        )
        self.windows_needed = self._gauge(
            "ledger_windows_until_renewal", "Windows that begin until the budget renews.", "campaign"
        )
        self.key_expires = self._gauge(
            "key_expires_timestamp_seconds", "When the first key of the current epoch expires.", "campaign", "role"
        )

    def _gauge(self, name: str, text: str, *labels: str) -> GaugeMetricFamily:
        family = GaugeMetricFamily(PREFIX + name, text, labels=labels)
        self._families.append(family)
        return family

    @property
    def families(self) -> Sequence[Metric]:
        """All metrics, including metrics without a sample."""
        return self._families


def measure(
    deployment: Deployment, campaigns: Sequence[Epochs], logs: Logs, now: datetime, problems: list[str]
) -> Numbers:
    """Return the metrics of a deployment at the moment `now`.

    Args:
        logs: the logs of the deployment, as the run has read them.
        problems: a list that gets a sentence for each campaign with a metric that could not be measured.
    """
    found = Numbers()
    for view in View(deployment, now, campaigns, logs=logs).each():
        for part in (_of_log, _of_account, _of_ledger, _of_keys):
            with _contained(view.campaign, problems):
                part(found, view)
    return found


@contextmanager
def _contained(campaign: str, problems: list[str]) -> Iterator[None]:
    """Turn the error of a metric into a problem, so that the other metrics are still measured."""
    try:
        yield
    except (HushcountError, OSError) as error:
        problem = f"{campaign}: not all metrics: {told(error)}"
        # Several metrics may fail for one reason, such as an unreadable log, which is stated once.
        if problem not in problems:
            problems.append(problem)


def _of_log(found: Numbers, view: View) -> None:
    """Add the numbers of collected and counted reports, and of windows that are not done."""
    campaign = view.campaign
    if view.deployment.shuffles:
        for (stream, state), number in view.fold.counts_by_state.items():
            found.collected.add_metric([campaign, stream, state], number)
    reports: Counter[tuple[str, str, str]] = Counter()
    for hops in view.counts.values():
        for hop, streams in hops.items():
            for name, row in streams.items():
                for outcome, number in {"accepted": row.accepted, **row.rejected}.items():
                    reports[hop, name, outcome] += number
    for names, number in sorted(reports.items()):
        found.reports.add_metric([campaign, *names], number)
    ends = sorted(_undone(view))
    found.undone.add_metric([campaign], len(ends))
    if ends:
        found.oldest_undone.add_metric([campaign], ends[0].timestamp())


def _undone(view: View) -> set[datetime]:
    """Return the ends of past windows that are not closed, or have a batch that has not passed every hop here."""
    fold, tiling = view.fold, view.deployment.windows.tiling
    ends = {one.window.end for one in view.intake.listed if one.window.end <= view.now}
    batches = fold.made_batches
    if not view.deployment.shuffles:
        batches = [batch for batch, _ in outputs(view.deployment, "shuffled", view.campaign)]
    for batch in batches:
        file = view.epochs.campaigns.get(batch.file)
        # Without its campaign file, the hops of a batch are unknown, so the batch counts as not done.
        hops = ["unknown"] if file is None else hop_names(file, view.deployment.file.parties)
        if not fold.hops_of(batch.name).keys() >= set(hops):
            window = fold.known_windows.get(batch.window)
            ends.add(tiling.window_at(window_start(batch.window)).end if window is None else window.end)
    return ends


def _of_account(found: Numbers, view: View) -> None:
    """Add the number of waiting reports, and the number of differences between counts."""
    account = account_of(view)
    found.differences.add_metric([view.campaign], len(account.differences))
    for stream in view.epochs.newest[1].streams if view.deployment.shuffles else ():
        waiting = [one for one in account.waiting if one.stream == stream]
        found.waiting.add_metric([view.campaign, stream], sum(one.reports for one in waiting))
        in_danger = sum(one.reports for one in waiting if one.verdict == "bad")
        found.last_chance.add_metric([view.campaign, stream], in_danger)
        if waiting:
            first = min(datetime.fromisoformat(one.dropped) for one in waiting)
            found.dropped_at.add_metric([view.campaign, stream], first.timestamp())


def _of_ledger(found: Numbers, view: View) -> None:
    """Add the budget that the limit still allows; without a limit, add no sample."""
    room, ledger = room_of(view), view.deployment.ledger
    if room is None or ledger is None:
        return
    found.windows_left.add_metric([view.campaign], room.left)
    if room.until is not None:
        found.windows_needed.add_metric([view.campaign], room.until)
    account = describe(ledger, view.campaign, view.clock).accounts[view.campaign]
    if account.remaining is not None:
        found.epsilon_left.add_metric([view.campaign], account.remaining.epsilon)


def _of_keys(found: Numbers, view: View) -> None:
    """Add the time when the first public key of each role expires, for the current epoch."""
    current = view.epochs.collection.current(view.now)
    for (number, _), campaign in view.epochs.campaigns.items():
        if current is not None and number == current.epoch:
            for role, keys in dict(campaign.keys).items():
                for key in sorted(keys, key=lambda key: key.not_after)[:1]:
                    found.key_expires.add_metric([view.campaign, role], key.not_after.timestamp())
