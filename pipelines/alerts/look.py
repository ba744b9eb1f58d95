"""Look at a deployment: which alerts stand at a moment. It changes nothing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from hushcount.campaigns.campaign import Stream
from pipelines.alerts import operations
from pipelines.alerts.alert import Alert, Kind
from pipelines.alerts.changed import changed, compared_of
from pipelines.asking.places import places_of
from pipelines.asking.sources import Source
from pipelines.audit.foresight import room_of
from pipelines.audit.reconcile import account_of
from pipelines.audit.view import View
from pipelines.deployment.alerting import AlertsPart
from pipelines.deployment.campaigns import read_epochs
from pipelines.deployment.settings import Deployment
from pipelines.files.storage_errors import told
from pipelines.log.log import Logs

_MOST_WINDOWS = 1000


@dataclass(frozen=True)
class Look:
    """What stands now.

    Attributes:
        unjudged: kind and campaign of what could not be looked at.
        problems: a sentence for each of these.
    """

    alerts: tuple[Alert, ...] = ()
    unjudged: frozenset[tuple[str, str]] = frozenset()
    problems: tuple[str, ...] = ()


@dataclass
class _Found:
    alerts: list[Alert] = field(default_factory=list)
    unjudged: set[tuple[str, str]] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)


def look(deployment: Deployment, part: AlertsPart, logs: Logs, now: datetime) -> Look:
    """Return the alerts of all campaigns; what cannot be judged is a problem, and hides nothing else.

    Raises:
        UsageError: the deployment holds no campaign.
    """
    campaigns, faults = read_epochs(deployment.campaigns)
    found = _Found()
    for campaign in faults:
        # Its fault is a problem of the run already.
        found.unjudged |= {(kind, campaign) for kinds, _ in _CONDITIONS for kind in kinds}
    for view in View(deployment, now, campaigns, faults, logs=logs).each():
        failed: dict[str, list[str]] = defaultdict(list)
        for kinds, condition in _CONDITIONS:
            try:
                found.alerts += condition(view, part)
            except Exception as error:
                # Whatever it is, the other alerts are more urgent than its cause.
                found.unjudged |= {(kind, view.campaign) for kind in kinds}
                failed[told(error)] += kinds
        for why, listed in failed.items():
            found.problems.append(f"{view.campaign}: no alert of {' and '.join(listed)} can be given: {why}")
    return Look(tuple(found.alerts), frozenset(found.unjudged), tuple(found.problems))


def _reports(view: View, part: AlertsPart) -> Iterator[Alert]:
    if part.dropped or part.differences:
        account = account_of(view)
        if part.dropped:
            yield from operations.dropped(account)
            yield from operations.waiting(account)
        if part.differences:
            yield from operations.differences(account)


def _budget(view: View, part: AlertsPart) -> Iterator[Alert]:
    if part.budget_windows and (room := room_of(view)) is not None:
        yield from operations.budget(view.campaign, room, part.budget_windows)


def _volume(view: View, part: AlertsPart) -> Iterator[Alert]:
    # Only the shuffler knows what clients sent.
    if part.least_volume and view.shuffles:
        for stream in view.epochs.newest[1].streams:
            low = operations.low_volume(volumes_of(view, stream), part.least_volume, part.windows_before)
            yield from operations.volume(view.campaign, stream, low)


def volumes_of(view: View, stream: Stream) -> Sequence[operations.Volume]:
    """Return what each window that is over brought of a stream, oldest first; windows without reports brought 0.

    Only windows as long as the newest one: others say nothing of how many are usual.
    """
    numbers = Counter({name: one.reports.get(stream, 0) for name, one in view.fold.windows.items()})
    # Also of a window that no run could close yet: it is not silent.
    for one in view.intake.listed:
        numbers[one.window.name] += sum(each.records for each in one.segments if each.stream == stream)
    known = [view.windows[name] for name in sorted(view.windows)]
    if not known:
        return []
    times, windows = view.deployment.windows, known
    # If all collectors are silent, no window is known from then on.
    calendar = view.calendar
    following = calendar.window_at(max(known[-1].end, view.now - _MOST_WINDOWS * times.length))
    while following.end + times.patience < view.now:
        if following.start >= known[-1].end:
            windows = [*windows, following]
        following = calendar.window_at(following.end)
    over = [one for one in windows if one.end <= view.now and view.is_over(one.name)]
    return [operations.Volume(one.name, numbers[one.name]) for one in over if one.length == over[-1].length]


def _changes(view: View, part: AlertsPart) -> Iterator[Alert]:
    places = places_of(view.deployment, view.epochs, 1 + part.windows_before)
    if places and (part.items or part.groups or part.any_item):
        source = Source(view.campaign, tuple(places), view.deployment, view.epochs)
        if (compared := compared_of(source, part)) is not None:
            yield from changed(compared, part)


Condition = Callable[[View, AlertsPart], Iterator[Alert]]
_CONDITIONS: tuple[tuple[tuple[Kind, ...], Condition], ...] = (
    (("dropped", "waiting", "differences"), _reports),
    (("budget",), _budget),
    (("volume",), _volume),
    (("change",), _changes),
)
"""The kinds of alerts that each condition finds."""
