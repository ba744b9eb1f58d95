"""What an alert tells: a planted rise in one sentence, and false ones at the rate that the setting says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import cache

import numpy as np
import pytest
from scipy.stats import binom

from hushcount.arrays import FloatArray, IntArray
from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.dictionary import Dictionary, in_random_order
from hushcount.collection.tilings import Tiling
from hushcount.oracles.flags import Flag, Flags
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.simulation import SeededWords
from hushcount.oracles.tally import Tally
from hushcount.questions.comparing import compared
from hushcount.questions.counted import Counted, Group
from pipelines.deployment.parts import AlertsPart
from pipelines.log.facts import Times
from pipelines.log.folding import TOLD_WINDOWS
from pipelines.monitoring import alert as module
from pipelines.monitoring.alert import Alert, alert_of, surely_changed
from pipelines.monitoring.panel_campaign import Shown
from pipelines.monitoring.panel_flags import flags_of
from pipelines.questions.changes import Change
from pipelines.questions.sentences import of_results
from pipelines.questions.sides import USUAL, Sides, of_windows
from pipelines.questions.sources import Place, Source
from pipelines.windows.calendar import Calendar
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


def drawn(campaign: Campaign, draw: Draw, random: np.random.Generator, n: int, newest: FloatArray = SHARES) -> Source:
    """Draw windows in which nothing changes, unless the newest has other shares."""
    shares = [SHARES] * WINDOWS + [newest]
    counted = tuple(window(campaign, draw, random, n, one, day) for day, one in enumerate(shares, 1))
    source = Source("words", tuple(Place(one.window, campaign, "") for one in counted))
    # As results that were read have it.
    source.__dict__["counted"] = counted
    return source


def part(**settings: object) -> AlertsPart:
    return AlertsPart.model_validate({"command": ("tell",), "false_alarms": 1e-6, "least_change": 0.0, **settings})


def planted(campaign: Campaign, seed: int, **rises: float) -> Source:
    """Draw windows of which the newest has larger shares of items, by their places, at the cost of "other"."""
    newest = SHARES.copy()
    for place, rise in rises.items():
        newest[[int(place[1:]), -1]] += (rise, -rise)
    return drawn(campaign, oue, np.random.default_rng(seed), 50_000, newest)


def some(alert: Alert | None) -> Alert:
    assert alert is not None
    return alert


def test_the_windows_flags_are_told_with_its_changes(campaign_of: Callable[[str], Campaign]) -> None:
    source = planted(campaign_of("oue"), 1, _1=0.05)
    flags = Flags(repeated=Flag(verdict="flagged", found=30.0, high=8.0, number=2))
    *earlier, newest = source.counted
    poisoned = replace(newest, tally=replace(newest.tally, flags=flags))
    poisoned.__dict__["dictionary"] = newest.dictionary
    source.__dict__["counted"] = (*earlier, poisoned)
    message = some(alert_of(source, part(), {})).message
    (raised,) = flags.raised
    assert raised == "FLAG equal reports: one came 30 times, honest clients explain 8; 2 are above that"
    assert raised in message.says
    assert message.data["flags"] == [raised]
    assert "1 % of all clients, if they forge on both sides, could move the difference by -" in message.says
    # The answers of `hushcount ask` and the page say it too.
    assert next(of_results(source.counted)) == f"2026-11-06: {raised}"
    calendar = Calendar((Times(None, Tiling(timedelta(days=1)), timedelta(0)),))
    figure = flags_of(Shown(source, "words", calendar))
    assert figure.says == (f"2026-11-06: {raised}.",)
    assert [row.wrong for row in figure.rows] == [True] + [False] * len(earlier)
    assert figure.rows[0].cells == ("flagged", "cannot tell", "cannot tell")


def test_a_planted_rise_is_told_and_nothing_else(campaign_of: Callable[[str], Campaign]) -> None:
    source = planted(campaign_of("oue"), 1, _1=0.05)
    alert = some(alert_of(source, part(), {}))
    (one,) = alert.changes
    assert (alert.window, alert.before, one.group) == ("20261106T000000Z", WINDOWS, NAMES[1])
    # Its errors are 0.006 and 0.003.
    assert one.before == pytest.approx(0.10, abs=0.02)
    assert one.after == pytest.approx(0.15, abs=0.04)
    assert one.low < 0.05 < one.high
    assert one.p_bonferroni <= 1e-6
    message = alert.message
    assert message.says.startswith(f"words: window 2026-11-06 against the 5 before: {NAMES[1]} is up from ")
    assert message.data["changes"][0]["after"] == one.after
    # Who names it gets the same under the same id, and who names others gets nothing.
    assert some(alert_of(source, part(items=NAMES[:2]), {})).message.id == message.id
    assert alert_of(source, part(items=(NAMES[0], "strange")), {}) is None
    assert alert_of(source, part(items=("strange",)), {}) is None
    # Smaller changes than asked for are not told, and of one window none.
    assert alert_of(source, part(least_change=2.0), {}) is None
    assert alert_of(source.of(source.windows[-1:]), part(), {}) is None


def test_what_was_told_last_is_told_again_only_if_it_is_no_more_so(campaign_of: Callable[[str], Campaign]) -> None:
    source = planted(campaign_of("oue"), 1, _1=0.05)
    alert = some(alert_of(source, part(), {}))
    first, newest, same = source.windows[0], alert.window, alert.told.up
    fell = dict.fromkeys(same, False)
    for told, news in [
        ({newest: same}, False),
        ({first: same}, False),
        ({"20261001T000000Z": same}, True),
        ({first: fell}, True),
        ({first: same, newest: fell}, True),
        ({first: fell, newest: same}, False),
        ({newest: {"0" * 16: True}}, True),
    ]:
        assert (alert_of(source, part(), told) is not None) == news, told
    # The log remembers all windows that are compared.
    assert TOLD_WINDOWS >= 1 + USUAL
    # Another campaign, window or direction is another alert; a name is in no entry.
    others = [replace(alert, campaign="w"), replace(alert, window=first), replace(alert, changes=_down(alert))]
    assert len({one.message.id for one in (alert, *others)}) == 4
    assert NAMES[1] not in alert.told.model_dump_json()


def _down(alert: Alert) -> tuple[Change, ...]:
    return tuple(replace(one, difference=-one.difference) for one in alert.changes)


def test_a_change_of_all_items_is_one_alert(campaign_of: Callable[[str], Campaign]) -> None:
    newest = np.array([0.0, 0.0, *[0.9 / (ITEMS - 2)] * (ITEMS - 2), 0.1])
    source = drawn(campaign_of("oue"), oue, np.random.default_rng(2), 500_000, newest)
    alert = some(alert_of(source, part(), {}))
    assert {one.group for one in alert.changes} == {*NAMES}
    assert {one.group for one in alert.changes[:2]} == {*NAMES[:2]}
    assert alert.message.says.endswith(f"; and {ITEMS - 3} more: see hushcount ask change")
    assert (alert.message.data["number"], len(alert.message.data["changes"])) == (ITEMS, 20)
    assert alert_of(source, part(), {alert.window: alert.told.up}) is None


def test_a_group_is_told_by_its_name(campaign_of: Callable[[str], Campaign]) -> None:
    source = planted(campaign_of("oue"), 3, _0=0.05, _1=0.05)
    (one,) = surely_changed(sides_of(source), [Group("large", NAMES[:2])], part())
    assert one.group == "large"
    assert one.after == pytest.approx(0.5, abs=0.05)


def sides_of(source: Source) -> Sides:
    return of_windows(source, against=WINDOWS)


def test_far_out_the_exact_test_decides(campaign_of: Callable[[str], Campaign]) -> None:
    """The normal law finds a p-value in ten million too small by a part, which many items would make a false alarm."""
    newest = SHARES.copy()
    newest[[2, -1]] += (0.026, -0.026)
    sides = sides_of(drawn(campaign_of("grr"), grr, np.random.default_rng(4), 60_000, newest))
    both = compared(sides.before.counted, sides.after.counted, GROUPS[2:3])
    assert not both.exact[0]
    assert 1e-9 < both.p_value[0] < 1e-5
    assert both.largest_p_value()[0] > 1.05 * both.p_value[0]
    # At a level between the two nothing is told.
    between = (both.p_value[0] + both.largest_p_value()[0]) / 2.0
    assert surely_changed(sides, GROUPS[2:3], part(false_alarms=max(between, 1e-9))) == []
    assert surely_changed(sides, (), part()) == []


def alarms(campaign: Campaign, draw: Draw, n: int, runs: int, seed: int) -> int:
    """Return in how many of the runs any change was told, though nothing changed."""
    random, settings = np.random.default_rng(seed), part(false_alarms=0.1)
    sources = (drawn(campaign, draw, random, n) for _ in range(runs))
    return sum(bool(surely_changed(sides_of(one), (*GROUPS, FEW, MANY), settings)) for one in sources)


def is_at_most(number: int, runs: int, rate: float) -> bool:
    return number <= binom.isf(FAILURE, runs, rate)


@pytest.mark.long(but=("oue-oue-20000-400",))
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
    """At a rate of 0.1, of items and groups together; each fails with probability 1e-6 if it holds.

    Without the correction for 42 comparisons a window would be told with probability 0.9, which none of them passes.
    """
    number = alarms(campaign_of(mechanism), draw, n, runs, seed=6)
    print(f"{mechanism} n={n}: {number} of {runs} windows, {number / runs:.4f}")
    assert is_at_most(number, runs, 0.1)
    # Twice the rate fails.
    assert n != 20_000 or not is_at_most(round(0.2 * runs), runs, 0.1)
    if n == 20_000:
        # Nor so few that the simulation would show nothing.
        assert not is_at_most(number, runs, 0.02)


def test_a_test_without_a_correction_is_found_out(
    campaign_of: Callable[[str], Campaign], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mend of the code that corrects nothing: what the normal law finds is not multiplied, nor what confirms it."""
    plain = module.changed
    monkeypatch.setattr(
        module, "changed", lambda *given: tuple(replace(one, p_bonferroni=one.p_value) for one in plain(*given))
    )
    monkeypatch.setattr(module, "len", lambda _: 1, raising=False)
    assert not is_at_most(alarms(campaign_of("oue"), oue, 20_000, 100, seed=5), 100, 0.1)
