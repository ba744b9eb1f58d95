"""Alerts of items and groups whose share changed in the newest window.

The test is simultaneous: in a window of a campaign in which nothing changed, any of these alerts comes with a
probability of at most `false_alarms`. Half of it is for what is named and half for any item, if both are looked at; in
each half p-values are corrected by Bonferroni, for rises and falls together. What the normal law finds is confirmed by
Fisher's exact test where an item has a law, because the normal law is not good enough for one in ten million.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hushcount.errors import UsageError
from hushcount.items import canonical
from hushcount.questions.changes import Changes, changes
from hushcount.questions.comparing import compared as sides_of
from hushcount.questions.counted import Counted, Group
from pipelines.alerts.alert import Alert, Number
from pipelines.asking.groups import declared_groups, each_item
from pipelines.asking.sources import Source
from pipelines.deployment.alerting import AlertsPart

_MOST_ANY = 20
"""So many items that nobody named are told one by one; a change of all would be as many messages."""


@dataclass(frozen=True)
class Compared:
    """The newest window of a campaign, and those before.

    Attributes:
        window: the newest.
        before, after: the results of the windows before, and of the newest.
        named: items and groups that the operator named, an item as a group of one.
        any: all others that are looked at.
    """

    campaign: str
    window: str
    before: tuple[Counted, ...]
    after: tuple[Counted, ...]
    named: tuple[Group, ...]
    any: tuple[Group, ...]


def compared_of(source: Source, part: AlertsPart) -> Compared | None:
    """Return what is compared of a campaign; None if it has fewer than two windows, or nothing is looked at.

    Items that not every result counted are left out, and so is a group of which none is left.

    Args:
        source: the newest window's results and those of the windows before.
    """
    windows = source.windows
    if len(windows) < 2:
        return None
    there = [one for one in source.counted if one.reports]
    before = tuple(one for one in there if one.window != windows[-1])
    after = tuple(one for one in there if one.window == windows[-1])
    if not before or not after:
        return None
    named = [Group(item, (item,)) for item in map(canonical, part.items)]
    named += [group for group in declared_groups(source) if group.name in part.groups]
    lacking = {item for one in source.counted for item in one.lacks([item for group in named for item in group.items])}
    kept = [(group.name, tuple(item for item in group.items if item not in lacking)) for group in named]
    return Compared(
        source.name,
        windows[-1],
        before,
        after,
        tuple(Group(name, items) for name, items in kept if items),
        _any(source) if part.any_item else (),
    )


def _any(source: Source) -> tuple[Group, ...]:
    try:
        return each_item([source])
    except UsageError:
        # Two dictionaries without a common item, or nothing found yet in an open domain.
        return ()


def changed(compared: Compared, part: AlertsPart) -> list[Alert]:
    """Return an alert for each change; of items that nobody named the 20 most certain, and one for the rest."""
    both = [groups for groups in (compared.named, compared.any) if groups]
    share = part.false_alarms / max(1, len(both))
    told = _told(compared, compared.named, share, part.least_change)
    named = {one.subject for one in told}
    others = [one for one in _told(compared, compared.any, share, part.least_change) if one.subject not in named]
    if len(others) > _MOST_ANY:
        number = len(others)
        says = (
            f"{number:,} items of {compared.campaign} changed in window {compared.window}: the {_MOST_ANY} most "
            "certain are told one by one"
        )
        numbers: tuple[tuple[str, Number], ...] = (("window", compared.window), ("items", number))
        others = [*others[:_MOST_ANY], Alert("change", compared.campaign, "many", compared.window, says, numbers)]
    return [*told, *others]


def _told(compared: Compared, groups: Sequence[Group], share: float, least: float) -> list[Alert]:
    """Return the alerts of groups that are significant together at this level, the most certain first."""
    if not groups:
        return []
    found = changes(compared.before, compared.after, groups)
    likely = [at for at in range(len(groups)) if found.p_bonferroni[at] <= share and _factor(found, at) >= 1.0 + least]
    certain = {at: p for at, p in _confirmed(compared, groups, likely).items() if len(groups) * p <= share}
    return [_alert(compared, groups[at], found, at, certain[at]) for at in sorted(certain, key=certain.__getitem__)]


def _confirmed(compared: Compared, groups: Sequence[Group], likely: Sequence[int]) -> dict[int, float]:
    """Return the p-value of each of these places, also by the exact test where there is one."""
    if not likely:
        return {}
    both = sides_of(compared.before, compared.after, [groups[at] for at in likely])
    return dict(zip(likely, map(float, both.largest_p_value()), strict=True))


def _factor(found: Changes, at: int) -> float:
    """Return by which factor a share changed, up or down; infinite if the smaller one is estimated as 0 or less."""
    smaller, larger = sorted((float(found.before[at]), float(found.after[at])))
    return math.inf if smaller <= 0.0 else larger / smaller


def _alert(compared: Compared, group: Group, found: Changes, at: int, p: float) -> Alert:
    before, after, low, high = (float(values[at]) for values in (found.before, found.after, found.low, found.high))
    together = min(1.0, p * len(found.names))
    rose = after > before
    is_item = group.items == (group.name,)
    what = f"{group.name!r}" if is_item else f"group {group.name!r}"
    windows = len({one.window for one in compared.before})
    small = "below 1e-6" if together < 1e-6 else f"= {together:.2g}"
    says = (
        f"{what} of {compared.campaign} {'rose' if rose else 'fell'} from {before:.2%} to {after:.2%} of reports in "
        f"window {compared.window}, compared with the {windows:,} before: a difference of {after - before:+.2%}, 95 % "
        f"interval {low:+.2%} to {high:+.2%}, p {small} for all that is looked at"
    )
    numbers: tuple[tuple[str, Number], ...] = (
        ("window", compared.window),
        ("windows_before", windows),
        ("reports", sum(one.reports for one in compared.after)),
        ("before", before),
        ("after", after),
        ("low", low),
        ("high", high),
        ("p_value", together),
    )
    name = f"{'item' if is_item else 'group'} {group.name}"
    return Alert("change", compared.campaign, name, "rose" if rose else "fell", says, numbers)
