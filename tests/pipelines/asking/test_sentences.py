"""Sentences say no more than an answer knows."""

from __future__ import annotations

import pyarrow as pa

from pipelines.asking.sentences import chance, of_changes, of_left_out
from tests.pipelines.asking.conftest import IOS
from tests.support.collecting import window_name
from tests.support.jobs import done
from tests.support.site import Site


def test_no_tail_is_said_to_be_smaller_than_a_law_can_tell() -> None:
    for p, said in [(0.0, "below 1e-6"), (1e-70, "below 1e-6"), (1e-5, "1e-05"), (0.25, "0.25")]:
        assert chance(p) == said


def test_power_is_not_rounded_to_certainty() -> None:
    for seen, said in [(1.0, "above 0.99"), (0.96, "0.96"), (0.75, "0.75"), (0.001, "below 0.01")]:
        row = {
            "group": "a",
            "difference": 0.1,
            "p_value": 0.5,
            "significant": False,
            "seen_20": seen,
            "least_seen": 1.5,
        }
        *_, power = of_changes(pa.Table.from_pylist([row]), 0.95)
        assert f" {said};" in power


def test_groups_that_lack_items_are_named_or_counted() -> None:
    *_, rest = of_left_out(dict.fromkeys("abcde", 2))
    assert rest.startswith("2 more groups ")


def test_a_comparison_names_its_windows(asked: Site) -> None:
    said = done("ask", "compare", "--config", asked.config, "--campaign", "ios", "--campaign", "android").out
    name = window_name(len(IOS) - 1)
    assert said.startswith(f"ios and android, {name[:4]}-{name[4:6]}-{name[6:8]}: shares of the")
