"""Two sentences for people: they say what holds for the case at hand, and no figure in them claims too much."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushcount.campaign import Campaign
from hushcount.privacy.plain import plain_sentences
from hushcount.privacy.statement import statement
from keys.store import PublicFile, create
from pipelines.create import create_campaign

LOCAL = {"epsilon": 2.0, "delta": 0.0}


def result(epsilon: float, delta: float = 1e-8, **more: Any) -> dict[str, Any]:
    return {"local": LOCAL, "shuffled": {"epsilon": epsilon, "delta": delta}, **more}


def stated_factor(sentence: str) -> float:
    """Return by what factor a sentence says that odds change at most."""
    per_cent = re.search(r"by ([\d.]+) %", sentence)
    if per_cent:
        return 1.0 + float(per_cent[1]) / 100.0
    factor = re.search(r"a factor of ([\d.]+)", sentence)
    assert factor, sentence
    return float(factor[1])


@given(epsilon=st.floats(1e-6, 39.0), delta=st.floats(1e-15, 0.5))
def test_no_figure_claims_more_than_holds(epsilon: float, delta: float) -> None:
    first, second = plain_sentences(result(epsilon, delta))
    assert math.exp(epsilon) <= stated_factor(first) * (1 + 1e-12)
    assert stated_factor(first) <= 1.0 + math.expm1(epsilon) * 1.11 + math.exp(epsilon) * 0.011
    chance = re.search(r"a chance of 1 in ([\d,]+)", first)
    assert chance
    assert 1.0 / int(chance[1].replace(",", "")) >= delta * (1 - 1e-12)
    assert stated_factor(second) == pytest.approx(math.exp(2.0), rel=0.01)
    assert stated_factor(second) >= math.exp(2.0)


@given(epsilon=st.floats(0.01, 5.0))
def test_more_loss_never_reads_as_less(epsilon: float) -> None:
    less, more = (stated_factor(plain_sentences(result(value))[0]) for value in (epsilon, 1.3 * epsilon))
    assert less <= more


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> PublicFile:
    return create(tmp_path_factory.mktemp("keys"), days=30)


def campaign(keys: PublicFile, frequency: bool, relation: str | None) -> Campaign:
    discovery = None if relation is None else {"epsilon": 0.5, "delta": 1e-7, "relation": relation}
    oracle: dict[str, Any] = {"mechanism": "ais", "epsilon": 2.0} if frequency else {}
    return create_campaign("plain", keys, Path(), shuffle={"minimum_batch": 5000}, discovery=discovery, **oracle)


def test_shuffled_counts_are_stated_with_what_is_left_of_broken_promises(keys: PublicFile) -> None:
    stated = statement(campaign(keys, True, None), 1_000_000)
    first, second = stated["plain"]
    assert stated_factor(first) >= math.exp(stated["shuffled"]["epsilon"])
    assert stated_factor(first) < 1.02
    assert "1 in 100,000,000" in first
    assert "randomised on the person's own device" in second


def test_too_few_reports_leave_the_local_guarantee_which_needs_nobody(keys: PublicFile) -> None:
    for reports in (100, None):
        first, second = statement(campaign(keys, True, None), reports)["plain"]
        assert stated_factor(first) == pytest.approx(math.exp(2.0), rel=0.01)
        assert "chance" not in first
        assert "against everyone" in second


def test_both_streams_state_the_sum_and_what_would_be_open(keys: PublicFile) -> None:
    stated = statement(campaign(keys, True, "replace-one"), 1_000_000)
    first, second = stated["plain"]
    assert stated_factor(first) >= math.exp(stated["total"]["epsilon"]) > math.exp(0.5)
    assert "sent for discovery would be open" in second


@pytest.mark.parametrize(
    ("relation", "words"), [("replace-one", "one value rather than another"), ("add-remove", "took part")]
)
def test_discovery_alone_names_its_relation(keys: PublicFile, relation: str, words: str) -> None:
    stated = statement(campaign(keys, False, relation), None)
    first, second = stated["plain"]
    assert words in first
    assert f"about {stated['discovery']['clients_for_even_chance']} " in first.replace(",", " ")
    assert stated_factor(first) >= math.exp(0.5)
    assert "not randomised" in second
