"""Alerts of changes: the rate of false ones is what the setting says, and a planted rise is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.stats import binom

from hushcount.arrays import FloatArray, IntArray
from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.dictionary import Dictionary, in_random_order
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.simulation import SeededWords
from hushcount.oracles.tally import Tally
from hushcount.questions.comparing import compared as sides_of
from hushcount.questions.counted import Counted, Group
from pipelines.alerts import changed as module
from pipelines.alerts.changed import Compared, changed
from pipelines.deployment.alerting import AlertsPart
from tests.support.jobs import new_campaign, new_keys, write_lines

ITEMS = 40
FAILURE = 1e-6
"""The probability that a correct rate fails a test."""
WINDOWS = 5
"""Before the newest one."""
NAMES = in_random_order(f"item-{number:02}" for number in range(ITEMS))
"""As dictionaries have them, so that a place among them is the mechanism's item."""
GROUPS = tuple(Group(name, (name,)) for name in NAMES)
SHARES = np.array([0.3, 0.1, *[0.4 / (ITEMS - 2)] * (ITEMS - 2), 0.2])
"""Of the items, and of "other"."""
FEW, MANY = Group("few", NAMES[2:8]), Group("many", NAMES[5:35])
Draw = Callable[[Mechanism, np.random.Generator, int, FloatArray], IntArray]


@pytest.fixture(scope="module")
def campaign_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Campaign]:
    root = tmp_path_factory.mktemp("changed")
    keys, listed = new_keys(root / "keys"), write_lines(root / "items.txt", NAMES)

    @cache
    def make(mechanism: str) -> Campaign:
        pool = ("--set", "k=64", "--set", "m=32") if mechanism == "gcms" else ()
        path = new_campaign(
            root / f"{mechanism}.json", keys, *pool, mechanism=mechanism, epsilon=2.0, dictionary=listed
        )
        return Campaign.read(path)

    return make


def grr(_mechanism: Mechanism, random: np.random.Generator, n: int, shares: FloatArray) -> IntArray:
    """Draw a tally by its exact law: the clients are a sample, and each answer is one of d."""
    own, other = np.exp(2.0) / (np.exp(2.0) + ITEMS), 1.0 / (np.exp(2.0) + ITEMS)
    return random.multinomial(n, other + shares * (own - other))


def oue(_mechanism: Mechanism, random: np.random.Generator, n: int, shares: FloatArray) -> IntArray:
    """Draw a tally by its exact law: each bit by itself, 1/2 of the client's own."""
    held, other = random.multinomial(n, shares), 1.0 / (np.exp(2.0) + 1.0)
    return random.binomial(held, 0.5) + random.binomial(n - held, other)


def encoded(mechanism: Mechanism, random: np.random.Generator, n: int, shares: FloatArray) -> IntArray:
    """Draw a tally from reports as clients make them."""
    clients = random.choice(len(shares), n, p=shares).astype(np.uint64)
    items = np.arange(len(shares), dtype=np.uint64)
    counts = mechanism.new_tally(items)
    reports = mechanism.encode(clients, SeededWords(int(random.integers(1 << 62)), 0))
    mechanism.accumulate(counts, reports, items)
    return counts


def window(
    campaign: Campaign, draw: Draw, random: np.random.Generator, n: int, shares: FloatArray, day: int
) -> Counted:
    mechanism = campaign.require_frequency()
    items = np.arange(len(shares), dtype=np.uint64)
    shape = mechanism.new_tally(items).shape
    counts = np.asarray(draw(mechanism, random, n, shares), dtype=np.int64).reshape(shape)
    made = Counted(campaign, Tally(counts, n, items), f"202611{day:02}T000000Z")
    # As results that are read together have it.
    made.__dict__["dictionary"] = Dictionary(NAMES)
    return made


def drawn(campaign: Campaign, draw: Draw, random: np.random.Generator, n: int, newest: FloatArray = SHARES) -> Compared:
    """Draw windows in which nothing changes, unless the newest has other shares."""
    before = tuple(window(campaign, draw, random, n, SHARES, day) for day in range(1, WINDOWS + 1))
    after = (window(campaign, draw, random, n, newest, WINDOWS + 1),)
    return Compared("words", after[0].window, before, after, (), GROUPS)


def part(**settings: object) -> AlertsPart:
    given = {"command": ("tell",), "any_item": True, "least_change": 0.0, **settings}
    return AlertsPart.model_validate(given)


def alarms(campaign: Campaign, draw: Draw, n: int, runs: int, seed: int, named: tuple[Group, ...] = ()) -> int:
    """Return in how many of the runs any change was told, though nothing changed."""
    random, settings = np.random.default_rng(seed), part(false_alarms=0.1)
    number = 0
    for _ in range(runs):
        found = drawn(campaign, draw, random, n)
        number += bool(changed(replace(found, named=named), settings))
    return number


def test_a_planted_rise_is_told_and_nothing_else(campaign_of: Callable[[str], Campaign]) -> None:
    newest = SHARES.copy()
    newest[[1, -1]] += (0.05, -0.05)
    found = drawn(campaign_of("oue"), oue, np.random.default_rng(1), 50_000, newest)
    (one,) = changed(found, part(false_alarms=1e-6))
    assert (one.kind, one.about, one.fact) == ("change", f"item {NAMES[1]}", "rose")
    numbers = dict(one.numbers)
    assert numbers["window"] == "20261106T000000Z"
    assert numbers["windows_before"] == WINDOWS
    # Its errors are 0.006 and 0.003.
    assert numbers["before"] == pytest.approx(0.10, abs=0.02)
    assert numbers["after"] == pytest.approx(0.15, abs=0.04)
    assert numbers["low"] < 0.05 < numbers["high"]
    assert numbers["p_value"] <= 1e-6
    assert f"{NAMES[1]!r} of words rose" in one.says
    assert " 5 " in one.says
    # What is named is told once, though it is any item too.
    assert [each.id(0) for each in changed(replace(found, named=GROUPS[:2]), part(false_alarms=1e-6))] == [one.id(0)]
    # Smaller changes than asked for are not told, and neither is nothing.
    assert changed(found, part(false_alarms=1e-6, least_change=2.0)) == []
    assert changed(replace(found, any=()), part()) == []


def test_a_change_of_all_items_is_no_flood(campaign_of: Callable[[str], Campaign]) -> None:
    newest = np.array([0.0, 0.0, *[0.9 / (ITEMS - 2)] * (ITEMS - 2), 0.1])
    found = drawn(campaign_of("oue"), oue, np.random.default_rng(2), 500_000, newest)
    told = changed(found, part())
    assert len(told) == 21
    assert {one.about for one in told} >= {f"item {NAMES[0]}", f"item {NAMES[1]}", "many"}
    assert dict(told[-1].numbers)["items"] == ITEMS
    assert all("rose" in one.says for one in told[2:20])
    # Who named them is told of all.
    assert len(changed(replace(found, named=GROUPS, any=()), part())) == ITEMS


def test_a_group_is_told_by_its_name(campaign_of: Callable[[str], Campaign]) -> None:
    newest = SHARES.copy()
    newest[[0, 1, -1]] += (0.05, 0.05, -0.1)
    found = drawn(campaign_of("oue"), oue, np.random.default_rng(3), 50_000, newest)
    (one,) = changed(replace(found, named=(Group("large", NAMES[:2]),), any=()), part(false_alarms=1e-6))
    assert one.about == "group large"
    assert "'large' of words rose" in one.says
    assert dict(one.numbers)["after"] == pytest.approx(0.5, abs=0.05)


def test_far_out_the_exact_test_decides(campaign_of: Callable[[str], Campaign]) -> None:
    """The normal law finds a p-value in ten million too small by a part, which many items would make a false alarm."""
    newest = SHARES.copy()
    newest[[2, -1]] += (0.026, -0.026)
    found = drawn(campaign_of("grr"), grr, np.random.default_rng(4), 60_000, newest)
    both = sides_of(found.before, found.after, GROUPS[2:3])
    assert not both.exact[0]
    assert 1e-9 < both.p_value[0] < 1e-5
    assert both.largest_p_value()[0] > 1.05 * both.p_value[0]
    # At a level between the two nothing is told.
    between = (both.p_value[0] + both.largest_p_value()[0]) / 2.0
    assert changed(replace(found, any=GROUPS[2:3]), part(false_alarms=max(between, 1e-9))) == []


def is_at_most(number: int, runs: int, rate: float) -> bool:
    return number <= binom.isf(FAILURE, runs, rate)


def test_the_rate_of_false_alarms_is_what_is_set(campaign_of: Callable[[str], Campaign]) -> None:
    """Of 400 windows at a rate of 0.1; the failure probability is 1e-6, and three times the rate fails."""
    assert is_at_most(alarms(campaign_of("oue"), oue, 20_000, 400, seed=5), 400, 0.1)
    assert not is_at_most(round(0.2 * 400), 400, 0.1)


@pytest.mark.long
@pytest.mark.parametrize(
    ("mechanism", "draw", "n", "runs"),
    [
        ("oue", oue, 20_000, 400),
        ("grr", grr, 20_000, 400),
        ("grr", grr, 300, 300),
        ("ss", encoded, 2000, 150),
        ("ais", encoded, 2000, 150),
        ("gcms", encoded, 2000, 60),
        ("hr", encoded, 2000, 150),
    ],
)
def test_windows_in_which_nothing_changed_give_no_more_false_alarms_than_set(
    campaign_of: Callable[[str], Campaign], mechanism: str, draw: Draw, n: int, runs: int
) -> None:
    """At a rate of 0.1, of what is named and any item together; each fails with probability 1e-6 if it holds.

    Without the correction for 43 comparisons a window would be told with probability 0.9, which none of them passes.
    """
    number = alarms(campaign_of(mechanism), draw, n, runs, seed=6, named=(GROUPS[0], FEW, MANY))
    print(f"{mechanism} n={n}: {number} of {runs} windows, {number / runs:.4f}")
    assert is_at_most(number, runs, 0.1)
    if n == 20_000:
        # Nor so few that the simulation would show nothing.
        assert not is_at_most(number, runs, 0.02)


def test_a_test_without_a_correction_is_found_out(
    campaign_of: Callable[[str], Campaign], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = module.changes

    def uncorrected(*given: object) -> object:
        found = plain(*given)  # type: ignore[arg-type]
        return replace(found, p_bonferroni=found.p_value)

    confirmed = module._confirmed
    monkeypatch.setattr(module, "changes", uncorrected)
    monkeypatch.setattr(
        module, "_confirmed", lambda sides, groups, likely: {
            at: p / len(groups) for at, p in confirmed(sides, groups, likely).items()
        },
    )  # fmt: skip
    assert not is_at_most(alarms(campaign_of("oue"), oue, 20_000, 100, seed=5), 100, 0.1)
