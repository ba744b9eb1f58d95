"""Sentences say no more than an answer knows."""

from __future__ import annotations

from pipelines.questions.changes import SCHEMA, Change
from pipelines.questions.sentences import chance, of_change, of_changes, of_left_out, percent
from tests.pipelines.questions.conftest import IOS
from tests.support.collecting import window_name
from tests.support.jobs import done
from tests.support.site import Site


def test_no_tail_is_said_to_be_smaller_than_a_law_can_tell() -> None:
    for p, said in [(0.0, "below 1e-6"), (1e-70, "below 1e-6"), (1e-5, "1e-05"), (0.25, "0.25")]:
        assert chance(p) == said


def change(**given: float | bool) -> Change:
    sides = {"before": 0.1, "after": 0.15, "difference": 0.05, "low_all": 0.04, "high_all": 0.06, "p_bonferroni": 1e-9}
    rest = {name: 0.5 for name in SCHEMA.names if name not in {"group", *sides}}
    return Change("a\u202e", **{**rest, **sides, "least_seen": 1.5, **given})  # type: ignore[arg-type]


def test_a_change_is_one_sentence_that_a_terminal_can_show() -> None:
    assert of_change(change()) == (
        r"a\u202e is up from 10.0% to 15.0% of reports, a difference of +4.0% to +6.0% (95 %, corrected for all rows); "
        "the probability that chance alone changes any of the rows so much is below 1e-6; 1 % of all clients, if they "
        "forge on both sides, could move the difference by -50.0% to +50.0%"
    )
    assert r"a\u202e is down from " in of_change(change(difference=-0.05))
    assert r"a\u202e has 10.0% of reports before and 15.0% after, " in of_change(change(significant=False))


def test_a_share_is_never_said_to_be_0_if_it_is_not() -> None:
    for share, said in [
        (0.1234, "12.3%"),
        (0.00012, "0.012%"),
        (4e-5, "0.0040%"),
        (3.2e-7, "0.000032%"),
        (0.0, "0.0%"),
    ]:
        assert percent(share) == said
    assert percent(-4e-6, signed=True) == "-0.00040%"


def test_power_is_not_rounded_to_certainty() -> None:
    for seen, said in [(1.0, "above 0.99"), (0.96, "0.96"), (0.75, "0.75"), (0.001, "below 0.01")]:
        *_, power = of_changes([change(seen_20=seen)])
        assert f" {said};" in power


def test_groups_that_lack_items_are_named_or_counted() -> None:
    *_, rest = of_left_out(dict.fromkeys("abcde", 2))
    assert rest.startswith("2 more groups ")


def test_a_comparison_names_its_windows(asked: Site) -> None:
    said = done("ask", "compare", "--config", asked.config, "--campaign", "ios", "--campaign", "android").out
    name = window_name(len(IOS) - 1)
    assert said.startswith(f"ios and android, {name[:4]}-{name[4:6]}-{name[6:8]}: shares of the")
