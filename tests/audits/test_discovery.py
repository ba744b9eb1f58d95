"""The auxiliary server's draws on neighbouring counts: no event tells them apart by more than the rule states."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from itertools import product

import numpy as np
import pytest

from aux_server.bins import Bins
from aux_server.drawing import BinWords
from aux_server.keep import draw_kept, kept_records
from hushcount.discovery.keep_rules import KeepRule, Relation, RuleName
from hushcount.randomness import SystemWords
from tests.audits.auditor import greatest_probability, least_loss, least_probability
from tests.support.divergence import moves
from tests.support.statistics import FAILURE

EPSILON, DELTA = 1.0, 1e-2
LEARNT, TESTED = 4_000, 50_000
UNSURE = 1e-3
"""How often the search may take a probability for one that it is not; the bound itself is of other draws."""
Draw = Callable[[np.ndarray], np.ndarray]
"""int64[b] counts to bool[b], which bins are kept."""
both_rules = pytest.mark.parametrize("name", ["optimal", "laplace"])
both_relations = pytest.mark.parametrize("relation", ["add-remove", "replace-one"])


def drawing(rule: KeepRule) -> Draw:
    """Return the auxiliary server's own draw."""
    return lambda counts: draw_kept(rule, counts, SystemWords())


def all_moves(relation: Relation, cap: int) -> list[tuple[int, ...]]:
    """Return how one client changes one bin or two."""
    return [steps for steps in moves(cap, replace=relation == "replace-one") if len(steps) <= 2]


def lower_bound(draw: Draw, stated: KeepRule) -> float:
    """Return what the loss between neighbouring counts is at least, at the stated delta, but with probability 1e-6.

    The keep probabilities are learnt from draws of every count; of all neighbours and all sets of kept bins the pair
    that looks worst is drawn afresh.
    """
    seen = []
    starts, outcome = worst_pair(*learnt(draw, stated), stated)
    for start in starts:
        kept = draw(np.tile(start, TESTED)).reshape(TESTED, len(start))
        seen.append(np.array((kept == np.array(outcome)).all(axis=1).sum()))
    return float(least_loss(seen[0], seen[1], TESTED, FAILURE, stated.delta))


def learnt(draw: Draw, stated: KeepRule) -> tuple[np.ndarray, np.ndarray]:
    """Return float64[counts], between which probabilities a bin of each count is kept; one of 0 never is."""
    top = 2 + max(stated.laplace_threshold, len(stated.optimal_thresholds))
    kept = draw(np.repeat(np.arange(1, top), LEARNT)).reshape(top - 1, LEARNT).sum(axis=1)
    bounds = (least_probability(kept, LEARNT, UNSURE), greatest_probability(kept, LEARNT, UNSURE))
    low, high = (np.concatenate([[0.0], bound]) for bound in bounds)
    return low, high


def together(chances: list[np.ndarray], counts: list[np.ndarray]) -> np.ndarray:
    """Return float64[counts of each bin]: the probability of what happens to all bins."""
    return reduce(np.multiply.outer, (chance[of] for chance, of in zip(chances, counts, strict=True)))


def worst_pair(
    low: np.ndarray, high: np.ndarray, stated: KeepRule
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[bool, ...]]:
    """Return the counts of one or two bins before and after, and which are kept, that promise the highest bound."""
    found = []
    for steps in all_moves(stated.relation, stated.cap):
        before = [np.arange(max(1, 1 - step), len(low) - max(step, 0)) for step in steps]
        after = [counts + step for counts, step in zip(before, steps, strict=True)]
        for outcome in product((False, True), repeat=len(steps)):
            for one, other in ((before, after), (after, before)):
                above = together([low if kept else 1.0 - high for kept in outcome], one)
                below = together([high if kept else 1.0 - low for kept in outcome], other)
                # Five standard deviations stand for the bounds to come.
                above = above - 5.0 * np.sqrt(above / TESTED) - stated.delta
                below = below + 5.0 * np.sqrt(below / TESTED) + 15.0 / TESTED
                promise = np.maximum(above, 0.0) / below
                best = np.unravel_index(int(np.argmax(promise)), promise.shape)
                worst = tuple(
                    np.array([counts[place] for counts, place in zip(bins, best, strict=True)]) for bins in (one, other)
                )
                found.append((float(promise[best]), worst, outcome))
    _, starts, outcome = max(found, key=lambda each: each[0])
    return starts, outcome


@both_rules
@both_relations
@pytest.mark.parametrize("cap", [1, 2])
@pytest.mark.long(
    but=(
        "1-replace-one-optimal",
        "2-add-remove-laplace",
    )
)
def test_no_neighbours_are_told_apart_by_more_than_the_rule_states(
    name: RuleName, relation: Relation, cap: int
) -> None:
    """Failure probability 1e-6 each. What is found is a good part of epsilon, so that more would have been found."""
    rule = KeepRule(name, EPSILON, DELTA, relation, cap)
    found = lower_bound(drawing(rule), rule)
    assert 0.6 * EPSILON < found <= EPSILON


@both_rules
@pytest.mark.long(but=("optimal",))
def test_a_rule_for_the_other_relation_is_caught(name: RuleName) -> None:
    """Replacing a client's report moves two bins; calibrated for one, [J] Theorem 4 read as it is printed."""
    stated = KeepRule(name, EPSILON, DELTA, "replace-one")
    assert lower_bound(drawing(replace(stated, relation="add-remove")), stated) > 1.1 * EPSILON


@both_rules
@both_relations
@pytest.mark.long(but=("replace-one-optimal",))
def test_a_rule_that_forgets_the_cap_is_caught(name: RuleName, relation: Relation) -> None:
    """A client that may send three reports moves a bin by three; calibrated for one."""
    stated = KeepRule(name, EPSILON, DELTA, relation, 3)
    assert lower_bound(drawing(replace(stated, cap=1)), stated) > 1.1 * EPSILON


# Canaries: values that one client alone holds.

CANARIES = 60_000


def canaries_kept(rule: KeepRule) -> int:
    """Return how many of the canaries the auxiliary server's own step releases."""
    pairs = np.arange(1, CANARIES + 1, dtype=">u8").view("S8")
    released = list(
        kept_records(rule, Bins(pairs, np.ones(CANARIES, dtype=np.int64)), BinWords(secrets.token_bytes(32), pairs))
    )
    assert len(set(released)) == len(released)
    return len(released)


@both_rules
@both_relations
@pytest.mark.long(but=("replace-one-optimal",))
def test_canaries_are_released_with_delta_at_most(name: RuleName, relation: Relation) -> None:
    """Failure probability 1e-6 each; a rule of six times the delta is caught."""
    rule = KeepRule(name, EPSILON, DELTA, relation)
    kept = np.array(canaries_kept(rule))
    assert float(least_probability(kept, CANARIES, FAILURE)) <= float(rule.step_delta) <= DELTA
    loose = np.array(canaries_kept(replace(rule, delta=6.0 * DELTA)))
    assert float(least_probability(loose, CANARIES, FAILURE)) > float(rule.step_delta)
