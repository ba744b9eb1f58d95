"""Four questions, and a plan that answers them: no more epsilon than what must be seen needs, and the reasons."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from hushcount.errors import UsageError
from hushcount.maths.figures import odds_of, rounded_up, users, within
from hushcount.oracles.catalogue import ANY_SEED, build, plan
from hushcount.planning.planner import MOST_REPORTS, Detection, Plan, Task, to_detect
from hushcount.planning.shuffled import Protection, protection
from hushcount.privacy.amplification import amplify
from hushcount.privacy.queries import windows_answer

Trust = Literal["shuffler", "nobody"]
Name = Literal["reports", "items", "share", "trust"]
QUESTIONS: dict[Name, str] = {
    "reports": "How many reports has a window, at least? (as 20000, or 1e6)",
    "items": "How many items are there, 'other' included? (a number; 'unknown' if any string may come)",
    "share": "Which share of the reports must an item have to be seen? (as 0.001; or a number of users, as 500)",
    "trust": "Whom do your users trust? ('shuffler' if somebody else than the analyzer runs it, or 'nobody')",
}
_POWER = 0.95
_FALSE_POSITIVES = 0.05
_FALSE_POSITIVES_OF_ONE = 0.001
_MOST_ITEMS = (1 << 31) - 1
_WINDOWS = 30
_DELTA = 1e-8
_MUCH = 3.0
"""A local epsilon above allows odds to change by a factor of 20."""


@dataclass(frozen=True)
class Answers:
    """What is known before a campaign begins; `items` is None for an open domain, `share` in (0, 1)."""

    reports: int
    items: int | None
    share: float
    trust: Trust

    @property
    def delta(self) -> float:
        """Of the shuffled guarantee: far below one report in all."""
        return min(_DELTA, 0.01 / self.reports)

    @property
    def rate(self) -> float:
        """Of false detections of an item."""
        return _FALSE_POSITIVES_OF_ONE if self.items is None else _FALSE_POSITIVES / self.items


@dataclass(frozen=True)
class Guidance:
    """What to choose, why, and the commands to go on with.

    Attributes:
        power: probability that an item of the wanted share is seen in a window.
        protection: of one report of the chosen mechanism.
        windows_epsilon: shuffled, of a client that reports in 30 windows, jointly; and by its sum; both at
        windows_delta.
    """

    answers: Answers
    plan: Plan
    power: float
    protection: Protection
    windows_epsilon: float
    windows_sum: float
    windows_delta: float

    def data(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return {
            "answers": asdict(self.answers),
            "chosen": asdict(self.plan.chosen),
            "epsilon": self.plan.epsilon,
            "delta": self.answers.delta,
            "power": self.power,
            "protection": asdict(self.protection),
            "windows": {
                "windows": _WINDOWS,
                "joint": self.windows_epsilon,
                "sum": self.windows_sum,
                "delta": self.windows_delta,
            },
            "words": [*self.words()],
            "commands": [*self.commands()],
        }

    def words(self) -> Iterator[str]:
        """Yield the reasons, a sentence each."""
        asked, best, kept = self.answers, self.plan.chosen, self.protection
        local = rounded_up(kept.local_epsilon)
        yield (
            f"take {best.mechanism} with a local epsilon of {local}: it is the least with which an item that "
            f"{asked.share:.3g} of {asked.reports:,} reports hold, {asked.share * asked.reports:,.0f} users, is seen "
            f"with probability {self.power:.3f}; the standard error of a count is {users(best.standard_error_users)}"
            " users"
        )
        if asked.trust == "nobody":
            yield (
                f"nobody is trusted: a report changes the odds that a person sent one value rather than another by "
                f"{odds_of(kept.local_epsilon)}, whoever sees it"
            )
            if kept.local_epsilon > _MUCH:
                yield (
                    "that is a weak promise: ask for a larger share, collect more reports in a longer window, or have "
                    "a shuffler that somebody else runs"
                )
            yield (
                "clients should remember their answers (--memory): else each window is paid for again, and fresh noise "
                "averages out"
            )
            return
        yield (
            f"mixed by an honest shuffler among {asked.reports:,} honest reports it has a shuffled epsilon of "
            f"{rounded_up(kept.shuffled_epsilon)} with a delta of {asked.delta:g}: it changes the odds that a person "
            f"sent one value rather than another by {within(kept.odds)}"
        )
        yield f"if the shuffler lies, a report changes them by {odds_of(kept.local_epsilon)}"
        yield (
            f"a client that reports in {_WINDOWS} windows pays, each time by a fresh report, a shuffled epsilon of "
            f"{rounded_up(self.windows_epsilon)} with a delta of {rounded_up(self.windows_delta)} if no parameter and "
            f"no number of reports follows from results, {rounded_up(self.windows_sum)} if one does"
        )
        if kept.shuffled_epsilon > 1.0:
            yield "that is much: ask for a larger share, or collect more reports in a longer window"

    def commands(self) -> Iterator[str]:
        """Yield the commands to go on with, in order."""
        asked, best, epsilon = self.answers, self.plan.chosen, f"{self.plan.epsilon:g}"
        size = "--open-domain" if asked.items is None else f"--dictionary-size {asked.items}"
        yield f"hushcount plan --epsilon {epsilon} --reports {asked.reports} {size}"
        windows = f" --windows {_WINDOWS}" if asked.trust == "shuffler" else ""
        known = "" if asked.items is None else f" {size}"
        yield (
            f"hushcount privacy --epsilon {epsilon} --reports {asked.reports} --delta {asked.delta:g} "
            f"--mechanism {best.mechanism}{known}{windows}"
        )
        yield "hushcount keys new --out keys"
        file = "--open-domain" if asked.items is None else "--dictionary items.txt"
        memory = " --memory" if asked.trust == "nobody" else ""
        yield (
            f"hushcount campaign new --id my-campaign --mechanism {best.mechanism} --epsilon {epsilon} {file} "
            f"--min-batch {asked.reports} --delta {asked.delta:g}{memory} --keys keys --out campaign.json"
        )


def answered(texts: dict[Name, str]) -> Answers:
    """Return answers from what was typed; UsageError names the first invalid answer."""
    reports = int(_number("reports", texts["reports"], 1, MOST_REPORTS))
    unknown = texts["items"].strip().lower() == "unknown"
    items = None if unknown else int(_number("items", texts["items"], 2, _MOST_ITEMS, "; or 'unknown'"))
    share = _number("share", texts["share"], 0, reports)
    share = share if share < 1.0 else share / reports
    if not 0.0 < share < 1.0:
        raise UsageError(f"share is {texts['share']}, must be above 0 and below all {reports:,} reports")
    trust = texts["trust"].strip().lower()
    for kind in get_args(Trust):
        if trust == kind:
            return Answers(reports, items, share, kind)
    raise UsageError(f"trust is {texts['trust'][:40]!r}, must be 'shuffler' or 'nobody'")


def check(name: Name, text: str) -> None:
    """Raise UsageError if this cannot be an answer, whatever the others are."""
    answered({"reports": "1e6", "items": "10", "share": "0.5", "trust": "nobody", name: text})


def guide(answers: Answers) -> Guidance:
    """Return the mechanism and the least local epsilon that show such an item, and what they promise.

    Raises:
        UsageError: no epsilon shows it.
    """
    task = Task(answers.items)
    found, power = to_detect(task, Detection(answers.share, _POWER, answers.rate), None, answers.reports)
    best = found.chosen
    settings = plan(best.mechanism, found.epsilon, answers.items, {}, task.objective, ANY_SEED)
    gained = amplify(build(best.mechanism, found.epsilon, answers.items, settings), answers.reports, answers.delta)
    many = windows_answer(gained, _WINDOWS)
    return Guidance(
        answers,
        found,
        power,
        protection(found.epsilon, gained),
        many["windows_epsilon_joint"],
        many["windows_epsilon_sum"],
        many["windows_delta"],
    )


def _number(name: Name, text: str, least: int, most: int, more: str = "") -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    whole = name == "share" or value == math.floor(value) if math.isfinite(value) else False
    if not (whole and least <= value <= most):
        raise UsageError(f"{name} is {text[:40]!r}, must be a number in {least}..{most}{more}")
    return value
