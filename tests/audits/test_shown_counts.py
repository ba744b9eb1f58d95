"""The auxiliary server's draws of counts: no event of kept bins and shown counts tells more than the rule states."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pytest

from aux_server.bins import Bins
from aux_server.drawing import BinWords
from aux_server.keep import draw_counts, draw_kept, kept_records
from hushcount.discovery.keep_rules import KeepRule, Relation
from hushcount.maths.drawn_noise import count_noise
from hushcount.randomness import SystemWords
from tests.audits.auditor import least_loss, least_probability
from tests.support.statistics import FAILURE

EPSILON, DELTA = 1.0, 1e-2
LEARNT, TESTED = 20_000, 200_000
UNSURE = 1e-3
"""How often the search may take an event for worse than it is; the bound itself is of other draws."""
Draw = Callable[[np.ndarray], np.ndarray]
"""int64[b] counts to int64[b], the count that each bin shows; 0 if it is dropped."""
both_relations = pytest.mark.parametrize("relation", ["add-remove", "replace-one"])


@dataclass(frozen=True, eq=False)
class Event:
    """Sets of shown counts that look likelier with the counts before than with those after."""

    before: np.ndarray
    after: np.ndarray
    labels: np.ndarray
    promise: float


def drawing(rule: KeepRule) -> Draw:
    """Return the auxiliary server's own draw."""
    return lambda counts: draw_counts(rule, counts, SystemWords())


def labels(draw: Draw, counts: np.ndarray, number: int) -> np.ndarray:
    """Return int64[number]: what bins of these counts show together, as one label, in so many draws."""
    shown = draw(np.tile(counts, number)).reshape(number, len(counts))
    return np.asarray(shown @ (1_000_000 ** np.arange(len(counts))))


def lower_bound(draw: Draw, stated: KeepRule) -> float:
    """Return what the loss between neighbouring counts is at least, at the stated delta, but with probability 1e-6.

    Of the neighbours and events that some draws promise the most of, one is drawn afresh.
    """
    worst = max((_learnt(draw, stated, *each) for each in neighbours(stated)), key=lambda event: event.promise)
    seen = [np.isin(labels(draw, counts, TESTED), worst.labels).sum() for counts in (worst.before, worst.after)]
    return float(least_loss(np.array(seen[0]), np.array(seen[1]), TESTED, FAILURE, stated.delta))


def neighbours(stated: KeepRule) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return counts before and after all of a client's reports leave a bin, enter one, or both."""
    threshold, cap = stated.count_law.threshold, stated.cap
    counts = sorted({cap + 1, threshold // 2 + cap, threshold, threshold + 2 * cap, 4 * threshold + cap})
    moves = [(cap,), (-cap,), *([(-cap, cap)] if stated.relation == "replace-one" else [])]
    return [
        (np.array(start), np.array(start) + np.array(steps))
        for steps in moves
        for start in product(counts, repeat=len(steps))
    ]


def _learnt(draw: Draw, stated: KeepRule, before: np.ndarray, after: np.ndarray) -> Event:
    half = LEARNT // 2
    one, other = (labels(draw, counts, LEARNT) for counts in (before, after))
    known, places = np.unique(np.concatenate([one, other]), return_inverse=True)
    parts = (slice(0, half), slice(half, LEARNT), slice(LEARNT, LEARNT + half), slice(LEARNT + half, 2 * LEARNT))
    first, later, second, unwanted = (np.bincount(places.reshape(-1)[part], minlength=len(known)) for part in parts)
    order = np.argsort(-(first + 0.5) / (second + 0.5), kind="stable")
    promises = least_loss(np.cumsum(later[order]), np.cumsum(unwanted[order]), half, UNSURE, stated.delta)
    best = int(np.argmax(promises))
    return Event(before, after, known[order[: best + 1]], float(promises[best]))


@both_relations
@pytest.mark.parametrize("cap", [1, 3])
@pytest.mark.long(but=("1-replace-one", "3-replace-one"))
def test_no_neighbours_are_told_apart_by_more_than_the_rule_states(relation: Relation, cap: int) -> None:
    """Failure probability 1e-6 each. What is found is a good part of epsilon, so that more would have been found."""
    rule = KeepRule("optimal", EPSILON, DELTA, relation, cap, counts=True)
    found = lower_bound(drawing(rule), rule)
    assert 0.7 * EPSILON < found <= EPSILON


def test_a_law_for_the_other_relation_is_caught() -> None:
    stated = KeepRule("optimal", EPSILON, DELTA, "replace-one", counts=True)
    assert lower_bound(drawing(replace(stated, relation="add-remove")), stated) > 1.1 * EPSILON


@both_relations
@pytest.mark.long(but=("replace-one",))
def test_a_law_that_forgets_the_cap_is_caught(relation: Relation) -> None:
    stated = KeepRule("optimal", EPSILON, DELTA, relation, 3, counts=True)
    assert lower_bound(drawing(replace(stated, cap=1)), stated) > 1.1 * EPSILON


def test_a_count_that_is_drawn_apart_from_the_keep_decision_is_caught() -> None:
    """Each draw has all of epsilon: kept by the rule without counts, then shown with noise of its own."""
    stated = KeepRule("optimal", EPSILON, DELTA, counts=True)
    keeping, law = replace(stated, counts=False), stated.count_law

    def draw(counts: np.ndarray) -> np.ndarray:
        kept = draw_kept(keeping, counts, SystemWords())
        return np.where(kept, np.maximum(1, counts + count_noise(law, len(counts), SystemWords())), 0)

    assert lower_bound(draw, stated) > 1.1 * EPSILON


def test_counts_without_noise_are_caught() -> None:
    stated = KeepRule("optimal", EPSILON, DELTA, counts=True)
    own = drawing(stated)
    assert lower_bound(lambda counts: np.where(own(counts) > 0, counts, 0), stated) > 3.0 * EPSILON


CANARIES = 60_000


@both_relations
@pytest.mark.long(but=("replace-one",))
def test_canaries_are_released_with_delta_at_most(relation: Relation) -> None:
    """Values that one client alone holds. Failure probability 1e-6; a rule of six times the delta is caught."""
    rule = KeepRule("optimal", EPSILON, DELTA, relation, counts=True)
    pairs = np.arange(1, CANARIES + 1, dtype=">u8").view("S8")
    bins = Bins(pairs, np.ones(CANARIES, dtype=np.int64))
    kept = np.array(len(list(kept_records(rule, bins, BinWords(secrets.token_bytes(32), pairs)))))
    assert float(least_probability(kept, CANARIES, FAILURE)) <= float(rule.step_delta) <= DELTA
    loose = np.array(
        len(list(kept_records(replace(rule, delta=6.0 * DELTA), bins, BinWords(secrets.token_bytes(32), pairs))))
    )
    assert float(least_probability(loose, CANARIES, FAILURE)) > float(rule.step_delta)
