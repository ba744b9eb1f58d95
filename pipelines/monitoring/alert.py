"""The content of an alert: the changes in the newest window of a campaign, compared with the windows before.

If nothing changed in a window, the probability of an alert is at most `false_alarms`, because p-values are corrected
for all watched items and groups (Bonferroni), for rises and falls together. Fisher's exact test confirms each change
that the normal approximation shows, because the approximation is not exact enough for probabilities near one in ten
million.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from hushcount.errors import UsageError
from hushcount.items import canonical
from hushcount.questions.comparing import compared
from hushcount.questions.counted import Group, parted
from pipelines.console.answer import finite
from pipelines.deployment.parts import AlertsPart
from pipelines.log.entries import Told
from pipelines.monitoring.receivers import Message
from pipelines.questions.changes import Change, changed
from pipelines.questions.selection import are_of, declared_groups, each_item
from pipelines.questions.sentences import of_change
from pipelines.questions.sides import Sides, of_windows
from pipelines.questions.sources import Source

_MOST = 1000
"""The most changes in one alert; further changes are in the alert of the next window."""
_SAID, _LISTED = 3, 20
"""The number of changes that an alert states in a sentence, and the number that it lists with figures."""


@dataclass(frozen=True)
class Alert:
    """The changes in a window.

    Attributes:
        shown: the window's name, as people read it.
        before: the number of earlier windows whose counts were added up.
        changes: the changes, at least one, the most certain first.
        flags: what in the window's reports honest clients do not explain, in sentences.
    """

    campaign: str
    window: str
    shown: str
    before: int
    changes: tuple[Change, ...]
    flags: tuple[str, ...] = ()

    @cached_property
    def told(self) -> Told:
        """The log entry of an accepted alert, with digests instead of names, because clients may choose the names."""
        return Told(window=self.window, up={about(one): one.difference > 0.0 for one in self.changes})

    @property
    def message(self) -> Message:
        """The message to send.

        The message's id depends only on campaign, window and changes, so every run gives the message the same id.
        """
        said = "; ".join([*self.flags, *(of_change(one) for one in self.changes[:_SAID])])
        more = len(self.changes) - _SAID
        rest = f"; and {more:,} more: see hushcount ask change" if more > 0 else ""
        return Message(
            f"alert_{_digest(self.campaign, self.window, json.dumps(self.told.up, sort_keys=True))}",
            f"{self.campaign}: window {self.shown} against the {self.before} before: {said}{rest}",
            {
                "campaign": self.campaign,
                "window": self.window,
                "windows_before": self.before,
                "number": len(self.changes),
                "flags": list(self.flags),
                "changes": finite([vars(one) for one in self.changes[:_LISTED]]),
            },
        )


def alert_of(source: Source, part: AlertsPart, told: Mapping[str, Mapping[str, bool]]) -> Alert | None:
    """Return the changes in the newest window that no alert told before, or None if there are none.

    Args:
        told: the changes that a receiver was told, by window, as `Told.up`.
    """
    windows = source.windows
    if len(windows) < 2:
        return None
    sides = of_windows(source, against=len(windows) - 1)
    found = [one for one in surely_changed(sides, watched(sides, part), part) if _is_news(one, windows, told)]
    flags = tuple(said for one in sides.after.counted for said in one.tally.flags.raised)
    if not found:
        return None
    (shown,) = source.names(windows[-1:]).values()
    return Alert(source.name, windows[-1], shown, len(windows) - 1, tuple(found[:_MOST]), flags)


def watched(sides: Sides, part: AlertsPart) -> tuple[Group, ...]:
    """Return the watched groups: the named items and groups, or each item; items that a result lacks are left out.

    Items are left out because a deployment may name items that only one of its campaigns has.
    """
    if not (part.items or part.groups):
        try:
            return each_item(sides.sources)
        except UsageError:
            # The results are on dictionaries without a common item, or on an open domain without a discovered value.
            return ()
    named = [Group(item, (item,)) for item in map(canonical, part.items)]
    results = [one for side in sides.sources for one in side.counted]
    declared = (group for group in declared_groups(sides.after) if group.name in part.groups)
    named += [group for group in declared if are_of(results, group)]
    lacking = {item for one in results for group in named for item in one.lacks(group.items)}
    kept = ((group, tuple(item for item in group.items if item not in lacking)) for group in named)
    return tuple(replace(group, items=items) for group, items in kept if items)


def surely_changed(sides: Sides, groups: Sequence[Group], part: AlertsPart) -> list[Change]:
    """Return the changes that are large enough, and significant with all groups corrected for, most certain first."""
    before, after = (one.counted for one in sides.sources)
    if not groups or not all(sum(one.reports for one in side) for side in (before, after)):
        return []
    likely = {
        one.group: one
        for one in changed(before, after, groups)
        if one.p_bonferroni <= part.false_alarms and _factor(one) >= 1.0 + part.least_change
    }
    sure = []
    for each in parted([group for group in groups if group.name in likely], before, after):
        exact = compared(each.sides[0], each.sides[1], each.groups).largest_p_value() * len(groups)
        sure += [replace(likely[one.name], p_bonferroni=float(p)) for one, p in zip(each.groups, exact, strict=True)]
    return sorted((one for one in sure if one.p_bonferroni <= part.false_alarms), key=lambda one: one.p_bonferroni)


def _factor(one: Change) -> float:
    """Return the factor by which a share rose or fell, at least 1; infinite if the smaller estimate is 0 or less."""
    smaller, larger = sorted((one.before, one.after))
    return math.inf if smaller <= 0.0 else larger / smaller


def _is_news(one: Change, windows: Sequence[str], told: Mapping[str, Mapping[str, bool]]) -> bool:
    """Return whether no alert of these windows is on this item or group, or the last one told another direction."""
    last = [told[window][about(one)] for window in windows if about(one) in told.get(window, {})]
    return last[-1:] != [one.difference > 0.0]


def about(one: Change) -> str:
    """Return the digest of an item or group, which the log holds instead of the name."""
    return _digest(one.group)[:16]


def _digest(*texts: str) -> str:
    return hashlib.blake2b(json.dumps(texts).encode(), digest_size=16, person=b"hushcount.alert").hexdigest()
