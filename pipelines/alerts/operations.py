"""What an operator must know of reports and budget: functions from what the audit found to alerts."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from statistics import median

from hushcount.collection.windows import Window, window_start
from pipelines.alerts.alert import Alert
from pipelines.audit.foresight import Room
from pipelines.audit.reconcile import Account

_MOST_REPEATED = 5
_LONGEST = 300
_FEWEST_BEFORE = 3
_RECENT = 30
_WEEK = timedelta(days=7)
_DROPPED = {
    "too_late": "were dropped as too_late: they are in no result",
    "given_up": "were given_up with a lost log: nobody knows whether they are in a result",
}
"""What became of reports that no batch takes any more, by the state of their segment."""


@dataclass(frozen=True)
class Volume:
    """How many reports of a stream clients sent in one window that is over."""

    window: str
    reports: int


@dataclass(frozen=True)
class LowVolume:
    """The newest window brought much less than usual.

    Attributes:
        since: the first window of those that did, one after the other.
        usual: median of the windows before that one.
    """

    since: str
    window: str
    reports: int
    usual: float


def dropped(account: Account) -> list[Alert]:
    """Return an alert for each of the last windows with reports that came too late or too few, or were given up."""
    recent = set(sorted({one.window for one in account.windows})[-_RECENT:])
    found = []
    for one in account.windows:
        for state, what in _DROPPED.items():
            number = one.states.get(state, 0)
            if number and one.window in recent:
                says = (
                    f"{number:,} of {one.received:,} {one.stream} of window {one.window} of {account.campaign} {what}"
                )
                of = f"{one.received:,} {one.stream} of window {one.window} of {account.campaign}"
                numbers = (
                    ("window", one.window), ("stream", one.stream), (state, number), ("received", one.received),
                )  # fmt: skip
                about = f"{one.window} {one.stream}" + ("" if state == "too_late" else f" {state}")
                says = f"{number:,} of {of} {what}"
                found.append(Alert("dropped", account.campaign, about, str(number), says, numbers))
    return found


def waiting(account: Account) -> list[Alert]:
    """Return an alert for each stream with reports that will be dropped soon, and for each that nobody can take."""
    return [
        Alert(
            "waiting",
            account.campaign,
            f"{one.stream} of epoch {one.epoch}",
            one.window,
            one.says,
            (
                ("window", one.window), ("stream", one.stream), ("epoch", one.epoch), ("reports", one.reports),
                ("oldest", one.oldest), ("dropped", one.dropped),
            ),
        )
        for one in account.waiting
        if one.verdict == "bad"
    ]  # fmt: skip


def differences(account: Account) -> list[Alert]:
    """Return one alert if numbers, or numbers and files, do not agree."""
    if not (told := sorted(account.differences)):
        return []
    digest = hashlib.blake2b("\n".join(told).encode(), digest_size=16).hexdigest()
    shown = "; ".join(one[:_LONGEST] for one in told[:_MOST_REPEATED])
    more = f"; and {len(told) - _MOST_REPEATED:,} more: see hushcount status" if len(told) > _MOST_REPEATED else ""
    what = "number does" if len(told) == 1 else "numbers do"
    says = f"{len(told):,} {what} not agree in {account.campaign}: {shown}{more}"
    return [Alert("differences", account.campaign, "numbers", digest, says, (("differences", len(told)),))]


def budget(campaign: str, room: Room, windows: int) -> list[Alert]:
    """Return one alert if a budget is used up within so many windows, and before it renews."""
    if room.left > windows or (room.until is not None and room.until <= room.left):
        return []
    renews = "it does not renew" if room.until is None else f"it renews after {room.until:,}"
    left = f"{room.left:,} windows more" if room.left != 1 else "1 window more"
    says = f"the ledger allows {left} of {campaign}, and {renews}" if room.left else (
        f"the ledger allows no more windows of {campaign}: releases are refused, and {renews}"
    )  # fmt: skip
    numbers = (("windows_left", room.left), ("windows_until_it_renews", room.until))
    return [Alert("budget", campaign, "ledger", "low" if room.left else "none", says, numbers)]


def volume(campaign: str, stream: str, low: LowVolume | None) -> list[Alert]:
    """Return one alert if the newest window brought much less than usual."""
    if low is None:
        return []
    says = (
        f"window {low.window} brought {low.reports:,} {stream} of {campaign}; usual are {low.usual:,.0f} "
        f"(since {low.since})"
    )
    numbers = (("window", low.window), ("since", low.since), ("reports", low.reports), ("usual", low.usual))
    return [Alert("volume", campaign, stream, low.since, says, numbers)]


def low_volume(volumes: Sequence[Volume], share: float, before: int) -> LowVolume | None:
    """Return what is wrong with the newest window, or None.

    A window is low if it brought less than a share of the median of the windows before and of the window a week before,
    if there was one, and less than each of the windows before. So quiet nights and weekends are told in the first week
    only. Low windows are not usual themselves, until `before` of them came one after the other.

    Args:
        volumes: oldest first, every window from the first one on, also those without reports.
        before: of so many windows the median is taken; three at least are needed.
    """
    usual: list[int] = []
    low: list[LowVolume] = []
    brought = {one.window: one.reports for one in volumes}
    for one in volumes:
        middle = float(median(usual)) if len(usual) >= _FEWEST_BEFORE else 0.0
        week = brought.get(Window(window_start(one.window) - _WEEK, window_start(one.window)).name, middle)
        if one.reports < share * min(middle, week) and one.reports < min(usual):
            low.append(LowVolume(low[0].since if low else one.window, one.window, one.reports, middle))
            if len(low) == before:
                usual, low = [each.reports for each in low], []
        else:
            low = []
            usual = [*usual[1 - before :], one.reports]
    return low[-1] if low else None
