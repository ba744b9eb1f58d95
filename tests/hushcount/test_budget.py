"""The budget of one client: what is charged, to the billionth, and when no more is left."""

from __future__ import annotations

import math
import os
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime, timedelta, timezone
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushcount.budget import Budget, BudgetSpent, Cost, OptedOut, cost_of
from hushcount.campaigns.campaign import Campaign, Stream
from hushcount.collection.windows import MOST_KEPT
from hushcount.errors import FormatError, UsageError
from tests.hushcount.campaigns.test_campaign_file import data
from tests.hushcount.forked import forked
from tests.support.noise_campaigns import noise_campaign

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=timezone.utc)
DAY = timedelta(days=1)
BILLION = 10**9


def campaign(epsilon: float = 1.0, **fields: Any) -> Campaign:
    """Return a campaign whose reports cost so much; `discovery_` names a field of discovery."""
    parts = data()
    parts["mechanism"]["epsilon"] = epsilon
    for name, value in fields.items():
        if name.startswith("discovery_"):
            parts["discovery"][name.removeprefix("discovery_")] = value
        else:
            parts[name] = value
    return Campaign.model_validate(parts)


def remembering(epsilon: float = 1.0, values: int = 1, **fields: Any) -> Campaign:
    return campaign(epsilon, memory=True, memory_values=values, **fields)


# What a report costs.


@settings(deadline=None)
@given(st.floats(0.0001, 40.0), st.integers(1, 1000))
def test_a_cost_is_the_least_number_of_billionths_that_is_not_below_the_decimal_number(epsilon: float, k: int) -> None:
    for cost, times in ((cost_of(campaign(epsilon), "reports"), 1), (cost_of(remembering(epsilon, k), "reports"), k)):
        assert 0 <= cost.epsilon - Fraction(repr(epsilon)) * times * BILLION < 1
        assert (cost.delta, cost.lasting) == (0, times > 1 or cost.lasting)


def test_as_many_reports_fit_as_the_decimal_numbers_say(subtests: pytest.Subtests) -> None:
    cases = [
        # Floats add up 0.1 + 0.1 + 0.1 to more than 0.3, and ten tenths to less than 1.
        (0.1, 0.3, 3), (0.1, 1.0, 10), (0.7, 2.1, 3), (1.1, 3.3, 3),
        (0.5, 1.0, 2), (0.5, 0.999999999, 1), (0.5, 0.4999999999, 0), (0.5, 0.5, 1),
        # Below a billionth: costs are rounded up, limits down.
        (0.5000000001, 1.0, 1), (0.5000000001, 1.000000002, 2), (0.5, 1.0000000009, 2), (0.5, 0.9999999999, 1),
        (1 / 3, 1.0, 2), (1 / 3, 1.000000002, 3), (2.0, 0.0, 0), (40.0, 10**6, 25_000), (2.0, math.inf, 500_000),
    ]  # fmt: skip
    for epsilon, limit, fit in cases:
        for limit_of in ["per_day", "lifetime"]:
            with subtests.test(limit_of=limit_of, epsilon=epsilon, limit=limit):
                budget = Budget(**{limit_of: limit})
                assert budget.charge(campaign(epsilon), "reports", 10**6, now=NOON) == fit
                assert budget.charge(campaign(epsilon), "reports", 10**6, now=NOON) == 0
                budget = Budget(**{limit_of: limit})
                assert sum(budget.charge(campaign(epsilon), "reports", 1, now=NOON) for _ in range(12)) == min(fit, 12)


def test_campaigns_epochs_and_streams_spend_one_budget() -> None:
    budget = Budget(per_day=5.0, lifetime=9.5)
    assert budget.charge(campaign(1.5), "reports", 1, now=NOON) == 1
    assert budget.charge(campaign(1.5, epoch=3), "reports", 1, now=NOON) == 1
    assert budget.charge(campaign(id="other"), "discovery", 1, now=NOON) == 1
    assert budget.charge(campaign(1.5), "reports", 1, now=NOON) == 0
    # What is left is enough for a cheaper one.
    assert budget.charge(campaign(), "discovery", 1, now=NOON) == 1
    assert budget.charge(campaign(1.5), "reports", 9, now=NOON + DAY) == 3
    assert budget.charge(campaign(0.0001), "reports", 9, now=NOON + 2 * DAY) == 0
    spent = budget.spent(NOON + 2 * DAY)
    assert (spent.today, spent.epsilon, spent.delta, spent.left_today, spent.left) == (0.0, 9.5, 2e-6, 0.0, 0.0)
    assert [(each.campaign, each.stream, each.reports, each.blank, each.epsilon) for each in spent.streams] == [
        ("other", "discovery", 1, 0, 1.0),
        ("words", "discovery", 1, 0, 1.0),
        ("words", "reports", 5, 16, 7.5),
    ]


def test_clients_that_remember_are_charged_the_whole_epoch_once() -> None:
    budget, first = Budget(per_day=7.0), remembering(2.0, values=3)
    assert budget.charge(first, "reports", 0, now=NOON) == 0
    assert budget.spent(NOON).epsilon == 0.0
    assert budget.charge(first, "reports", 5, now=NOON) == 5
    assert budget.charge(first, "reports", 100, repeats=True, now=NOON) == 100
    assert budget.spent(NOON).epsilon == 6.0
    # Another epoch does not fit, whole or in part; answers that were charged do.
    assert budget.charge(remembering(2.0, 3, epoch=3), "reports", 2, now=NOON) == 0
    assert budget.charge(first, "reports", 1, repeats=True, now=NOON) == 1
    assert budget.charge(remembering(2.0, 3, epoch=3), "reports", 2, now=NOON + DAY) == 2
    assert budget.spent(NOON + DAY).epsilon == 12.0


def test_nothing_is_charged_or_made_of_what_does_not_fit_if_the_app_wants_nothing() -> None:
    budget = Budget(per_day=2.5, when_spent="nothing")
    for _ in range(2):
        with pytest.raises(
            BudgetSpent,
            match=r"\b3 .*reports .*\bwords .*\b1 .*2\.5 .*2026-",
        ):
            budget.charge(campaign(), "reports", 3, now=NOON)
    assert budget.spent(NOON).streams == ()
    assert budget.charge(campaign(), "reports", 2, now=NOON) == 2
    with pytest.raises(BudgetSpent, match=r"\b1 .*reports .*\bwords .*\b2 an epoch"):
        budget.charge(remembering(2.0), "reports", 1, now=NOON)
    with pytest.raises(BudgetSpent, match=r"\b1 .*discovery .*0\.5 "):
        Budget(lifetime=0.5, when_spent="nothing").charge(campaign(), "discovery", 1, now=NOON)
    assert budget.charge(remembering(2.0), "reports", 1, repeats=True, now=NOON) == 1


def test_what_else_must_permit_it_is_asked_before_the_charge_and_voids_it() -> None:
    budget = Budget(lifetime=2.0)
    asked = []

    def refuses() -> None:
        asked.append(budget.spent(NOON).epsilon)
        raise KeyError

    with pytest.raises(KeyError):
        budget.charge(campaign(), "reports", 1, also=refuses, now=NOON)
    assert (asked, budget.spent(NOON).epsilon) == ([0.0], 0.0)
    # Who may make nothing takes nothing elsewhere.
    budget.opt_out()
    with pytest.raises(OptedOut):
        budget.charge(campaign(), "reports", 1, also=refuses, now=NOON)
    assert len(asked) == 1


# Days.


@pytest.mark.parametrize("durable", [False, True])
def test_a_day_is_one_of_utc_and_has_its_limit_whenever_the_clock_shows_it(tmp_path: Path, durable: bool) -> None:
    path, east = tmp_path / "budget.json" if durable else None, timezone(timedelta(hours=9))
    budget, midnight = Budget(path, per_day=1.0), datetime(2026, 11, 22, tzinfo=timezone.utc)
    # In the east it is the next day already.
    for now in (midnight - timedelta(seconds=1), (midnight - timedelta(seconds=1)).astimezone(east)):
        budget.charge(campaign(), "reports", 1, now=now)
    assert budget.spent(NOON).epsilon == 1.0
    assert budget.charge(campaign(), "reports", 1, now=midnight.astimezone(east)) == 1
    for other in (NOON + 40 * DAY, datetime(1970, 1, 1, tzinfo=timezone.utc)):
        assert budget.charge(campaign(), "reports", 2, now=other) == 1
    for again in (midnight, NOON, NOON + 40 * DAY, NOON, datetime(1970, 1, 1, tzinfo=timezone.utc)):
        assert budget.charge(campaign(), "reports", 1, now=again) == 0
        spent = budget.spent(again)
        assert (spent.day, spent.today, spent.left_today) == (again.date(), 1.0, 0.0)


def test_whoever_sets_the_clock_day_by_day_is_bounded_by_the_lifetime() -> None:
    """The limit of a day is that of whoever sets the clock, the other one is not; 16 days are kept, and no more."""
    budget = Budget(per_day=1.0, lifetime=20.5)
    days = [NOON + number * DAY for number in range(100)]
    assert [budget.charge(campaign(), "reports", 2, now=day) for day in days[:MOST_KEPT]] == [1] * MOST_KEPT
    assert [budget.charge(campaign(), "reports", 1, now=day) for day in days[:MOST_KEPT]] == [0] * MOST_KEPT
    # One more day: the one that the clock has not shown for the longest time is forgotten, and no other.
    assert budget.charge(campaign(), "reports", 1, now=days[MOST_KEPT]) == 1
    assert budget.charge(campaign(), "reports", 1, now=days[1]) == 0
    assert budget.charge(campaign(), "reports", 1, now=days[0]) == 1
    assert sum(budget.charge(campaign(), "reports", 1, now=day) for day in days[MOST_KEPT + 1 :]) == 20 - 18
    assert budget.spent(NOON).epsilon == 20.0


# The file.


def test_the_file_outlives_the_process_and_a_limit_that_is_lowered_holds_at_once(tmp_path: Path) -> None:
    path = tmp_path / "budget.json"
    assert Budget(path, per_day=2.0).charge(campaign(), "reports", 2, now=NOON) == 2
    assert path.stat().st_mode & 0o777 == 0o600
    assert Budget(path, per_day=1.0).charge(campaign(), "reports", 1, now=NOON) == 0
    assert Budget(path, per_day=1.0).spent(NOON).left_today == 0.0
    assert Budget(path, per_day=3.0).charge(campaign(), "reports", 2, now=NOON) == 1


def test_a_damaged_file_is_refused_and_a_removed_one_begins_anew(tmp_path: Path) -> None:
    """The second is a limit of what the device can notice, and is said."""
    path = tmp_path / "budget.json"
    Budget(path, lifetime=1.0).charge(campaign(), "reports", 1, now=NOON)
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"1000000000", b"0000000000"))
    budget = Budget(path, lifetime=1.0)
    for use in (budget.spent, budget.opt_out, budget.opt_in, lambda: budget.charge(campaign(), "reports", 1)):
        with pytest.raises(FormatError, match=r"^budget file .*budget\.json"):
            use()
    path.unlink()
    assert budget.charge(campaign(), "reports", 1, now=NOON) == 1


@pytest.mark.parametrize("durable", [False, True])
def test_threads_spend_it_together(tmp_path: Path, durable: bool) -> None:
    budget = Budget(tmp_path / "budget.json" if durable else None, lifetime=5.0)
    with ThreadPoolExecutor(8) as threads:
        fit = threads.map(budget.charge, [campaign()] * 20, ["reports"] * 20, [1] * 20)
        assert sum(fit) == 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are forked here")
def test_processes_and_their_forks_spend_one_file_together(tmp_path: Path) -> None:
    """Four processes want 40 reports, and 20 fit."""
    path = tmp_path / "budget.json"

    def process() -> list[int]:
        budget = Budget(path, lifetime=20.0)
        return forked(lambda: sum(budget.charge(campaign(), "reports", 1) for _ in range(10)), 1, here=True)

    fit = [number for numbers in forked(process, 2) for number in numbers]
    assert (len(fit), sum(fit)) == (4, 20)
    spent = Budget(path).spent()
    assert [(each.reports, each.blank, each.epsilon) for each in spent.streams] == [(20, 20, 20.0)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are forked here")
def test_without_a_file_a_forked_process_goes_on_with_a_copy() -> None:
    """A limit of a budget without a file, and said: each of the two has what was left."""
    budget = Budget(lifetime=3.0)
    budget.charge(campaign(), "reports", 1)
    assert forked(lambda: budget.charge(campaign(), "reports", 9), 1, here=True) == [2, 2]


# Anything at all.

actions = st.tuples(
    st.sampled_from([0.3, 1.0, 1 / 3, 2.7]),
    st.sampled_from(["reports", "discovery"]),
    st.integers(0, 5),
    st.booleans(),
    st.integers(-3, 3),
)


@settings(deadline=None)
@given(st.floats(0.0, 9.0), st.floats(0.0, 30.0), st.lists(actions, max_size=25))
def test_no_day_and_no_lifetime_exceeds_its_limit_and_as_much_is_charged_as_told(
    per_day: float, lifetime: float, taken: list[tuple[float, Stream, int, bool, int]]
) -> None:
    """A model in exact fractions, of the days that the clock shows: no 17 of them in these lists."""
    budget = Budget(per_day=per_day, lifetime=lifetime)
    now, days = NOON, dict[date, Fraction]()
    for epsilon, stream, number, memory, step in taken:
        now = NOON + step * DAY
        last = now.date()
        days.setdefault(last, Fraction(0))
        each = Fraction(1 if stream == "discovery" else repr(epsilon))
        lasting = memory and stream == "reports"
        fit = budget.charge(remembering(epsilon) if memory else campaign(epsilon), stream, number, now=now)
        days[last] += each * ((1 if fit else 0) if lasting else fit)
        assert days[last] <= Fraction(repr(per_day))
        assert sum(days.values()) <= Fraction(repr(lifetime))
        # One more would not have fit; a billionth a charge is lost to rounding.
        room = min(Fraction(repr(per_day)) - days[last], Fraction(repr(lifetime)) - sum(days.values()))
        assert fit == number or room < each + Fraction(len(taken) * 5 + 1, BILLION)
    assert float(sum(days.values())) == pytest.approx(budget.spent(now).epsilon, abs=1e-6)


# Opting out.


@pytest.mark.parametrize("durable", [False, True])
def test_after_opting_out_nothing_is_made_and_opting_in_renews_nothing(tmp_path: Path, durable: bool) -> None:
    path = tmp_path / "budget.json" if durable else None
    budget = Budget(path, lifetime=2.0)
    other = Budget(path, lifetime=2.0) if durable else budget
    budget.charge(campaign(), "reports", 1, now=NOON)
    budget.opt_out()
    budget.opt_out()
    assert other.opted_out
    for memory in (campaign(), remembering()):
        with pytest.raises(OptedOut, match="campaign words"):
            other.charge(memory, "reports", 1, repeats=True, now=NOON)
    other.opt_in()
    assert not budget.opted_out
    assert budget.charge(campaign(), "reports", 9, now=NOON) == 1


# Arguments.


def test_a_limit_must_be_an_epsilon(subtests: pytest.Subtests) -> None:
    for limit in [-1.0, -0.1, math.nan, -math.inf, True, "1", None, 10**400, 1e7]:
        for name in ["per_day", "lifetime"]:
            with (
                subtests.test(name=name, limit=limit),
                pytest.raises(UsageError, match=rf"^{name} is .* 0\.\.1,000,000"),
            ):
                Budget(**{name: limit})  # type: ignore[arg-type]


def test_other_arguments() -> None:
    with pytest.raises(UsageError, match=r"when_spent is 'silence'.*'other'.*'nothing'"):
        Budget(when_spent="silence")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"^path is ''"):
        Budget("")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="discovery"):
        Budget().charge(campaign(discovery=None), "discovery", 1)


# In words.


def words(budget: Budget, now: datetime = NOON) -> list[str]:
    return list(budget.spent(now).words())


def figures(sentences: list[str]) -> list[list[str]]:
    """Return the numbers and days of each sentence."""
    return [re.findall(r"\d[\d,.-]*\d|\d", sentence) for sentence in sentences]


def test_in_words_before_anything_was_made() -> None:
    assert figures(words(Budget())) == [[], ["2026-11-21", "0"], ["0"]]


def test_in_words_what_was_spent_on_what() -> None:
    budget = Budget(per_day=0.5, lifetime=100.0)
    budget.charge(campaign(0.1), "reports", 1, now=NOON)
    assert figures(words(budget))[:2] == [["1", "0.1"], ["11"]]
    budget.charge(campaign(0.1), "reports", 6, now=NOON)
    for number in range(1, 1200):
        budget.charge(campaign(discovery_epsilon=0.002), "discovery", 1, now=NOON + number * DAY)
    assert "opted out" not in words(budget)[0]
    budget.opt_out()
    said = words(budget, NOON + 1199 * DAY)
    assert "opted out" in said[0]
    assert all("Campaign words" in sentence for sentence in said[1:4])
    # Of discovery, of counts, of what told nothing; the odds; the day; the lifetime; what comes next.
    assert figures(said[1:]) == [
        ["1,199", "2.398", "0.001199"],
        ["5", "0.5"],
        ["2"],
        ["20.3", "1", "83"],
        ["2030-03-04", "0.002", "0.5", "0.498"],
        ["2.898", "100", "97.102"],
        [],
    ]
    spent, silent = Budget(lifetime=0.0), Budget(lifetime=0.0, when_spent="nothing")
    assert words(spent)[-1] != words(silent)[-1]


def test_a_report_with_noise_costs_its_pair_and_is_said_to_be_sealed() -> None:
    noise = noise_campaign(0.6, 2e-8, cap=2)
    # A window's two reports cost the pair together.
    assert cost_of(noise, "reports") == Cost(3 * 10**8, 10**10, False)
    budget = Budget(lifetime=1.0)
    assert budget.charge(noise, "reports", 4, now=NOON) == 3
    spent = budget.spent(NOON)
    assert (spent.epsilon, spent.delta) == (pytest.approx(0.9), pytest.approx(3e-8))
    made, told_nothing, odds, *_ = spent.words()
    assert "3 sealed reports, not randomised, to count values, for epsilon 0.9 and delta 3e-08" in made
    assert "1 report" in told_nothing
    # No sentence promises what only randomised reports have.
    assert "as long as one of the two parties that mix them keeps to its role" in odds
    budget = Budget()
    budget.charge(campaign(0.1), "reports", 1, now=NOON)
    assert "blurred" in words(budget)[0]
    assert "even if all parties" in words(budget)[1]


def test_words_show_numbers_exactly_however_many() -> None:
    budget = Budget(lifetime=10**6)
    for _ in range(7):
        budget.charge(campaign(1 / 3), "reports", 1, now=NOON)
    assert ["2.333333338", "1,000,000", "999,997.666666662"] in figures(words(budget))


def test_a_file_has_one_count_whatever_links_name_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "link.json").symlink_to(tmp_path / "budget.json")
    monkeypatch.chdir(tmp_path)
    names = [tmp_path / "budget.json", tmp_path / "link.json", Path("link.json")]
    budgets = [Budget(name, lifetime=100.0) for name in names]
    monkeypatch.chdir("/")
    for budget in budgets * 2:
        budget.charge(campaign(), "reports", 1)
    assert {budget.spent().streams[0].reports for budget in budgets} == {6}
