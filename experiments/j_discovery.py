"""[J] Figure 9 and the F-score of section 7.5: how many values of an unknown domain are discovered."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

import numpy as np

from experiments.figure import Figure, Panel, Point, Settings
from experiments.judging import Claim
from experiments.measuring import generator, stream_seed
from experiments.rows import Row, find, select
from experiments.sources import line_counts, tabbed_counts
from hushcount.arrays import FloatArray, IntArray
from hushcount.discovery.keep_rules import KeepRule, Relation, RuleName
from hushcount.oracles.simulation import SeededWords

_FOUND, _SCORE = "found", "F-score"
_DELTA = 1e-6
_EPSILONS = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0)
_RULES: tuple[RuleName, ...] = ("laplace", "optimal")
_RELATIONS: tuple[Relation, ...] = ("add-remove", "replace-one")
_PAPER_FOUND, _PAPER_SCORE = 5500, 0.962


def _series(rule: RuleName, relation: Relation) -> str:
    return f"{rule}, {relation}"


def _chances(counts: IntArray, chance: Callable[[int], float]) -> FloatArray:
    """Return float64[b]: each bin's probability, computed once for each distinct count."""
    distinct, place = np.unique(counts, return_inverse=True)
    return np.array([chance(int(count)) for count in distinct])[place.reshape(-1)]


def _printed_chance(epsilon: float, delta: float, count: int) -> float:
    """Return the probability that a count with real Laplace noise reaches T, [J] Algorithm 6 and eq. (9)."""
    short = epsilon * (1.0 - math.log(2.0 * delta) / epsilon - count)
    return 0.5 * math.exp(-short) if short > 0.0 else 1.0 - 0.5 * math.exp(short)


def _kept(
    rule: KeepRule, counts: IntArray, settings: Settings, stream: str
) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    """Return bool[runs, b]: what the auxiliary server keeps."""
    from aux_server.keep import draw_kept

    seed = stream_seed(settings.seed, stream)
    return np.array([draw_kept(rule, counts, SeededWords(seed, run)) for run in range(settings.runs)])


def _discovered(rule_name: RuleName, relation: Relation, epsilon: float, settings: Settings) -> list[Row]:
    counts = line_counts(settings.files["urls"])
    rule = KeepRule(rule_name, epsilon, _DELTA, relation)
    chances = _chances(counts, rule.keep_probability)
    predicted, spread = float(chances.sum()), math.sqrt(float((chances * (1.0 - chances)).sum()))
    found = _kept(rule, counts, settings, f"{rule_name}-{relation}-{epsilon:g}").sum(axis=1)
    printed = None
    if rule_name == "laplace":
        printed = float(_chances(counts, partial(_printed_chance, epsilon, _DELTA)).sum())
    row = Row(_FOUND, _series(rule_name, relation), epsilon, float(found.mean()), predicted, printed, law="known")
    return [Row(**{**row.__dict__, "runs": settings.runs, "spread": spread / predicted})]


def _points_9(settings: Settings) -> list[Point]:
    epsilons = _EPSILONS[1::4] if settings.quick else _EPSILONS
    return [
        Point(f"{rule}-{relation}-{epsilon:g}", partial(_discovered, rule, relation, epsilon, settings))
        for rule in _RULES
        for relation in _RELATIONS
        for epsilon in epsilons
    ]


def _plateau(rows: Sequence[Row]) -> tuple[float, float]:
    """Return the largest epsilon, and how many values the laplace rule found there, add-remove as in Theorem 4."""
    row = max(select(rows, _FOUND, _series("laplace", "add-remove")), key=lambda each: each.x)
    return row.x, row.measured or 0.0


def _claims_9(rows: Sequence[Row]) -> list[Claim]:
    curve = select(rows, _FOUND, _series("laplace", "add-remove"))
    pairs = [
        (row, find(rows, _FOUND, _series("optimal", relation), row.x))
        for relation in _RELATIONS
        for row in select(rows, _FOUND, _series("laplace", relation))
    ]
    # On a plateau, random draws move the number a little up or down.
    rising = all(a.measured <= b.measured * 1.02 for a, b in pairwise(curve) if a.measured and b.measured)
    last = _plateau(rows)[0]
    replaced = find(rows, _FOUND, _series("laplace", "replace-one"), last).measured or 0.0
    return [
        Claim("more URLs are discovered at larger epsilon", rising),
        Claim("the number of discovered URLs converges to about 5,500",
              abs(_plateau(rows)[1] / _PAPER_FOUND - 1.0) < 0.05),
        Claim("the optimal rule discovers at least as many URLs",
              all((b.predicted or 0.0) >= 0.999 * (a.predicted or 0.0) for a, b in pairs)),
        Claim("as many URLs are discovered under replace-one, the paper's own neighbouring relation",
              replaced > 0.95 * _PAPER_FOUND, False),
    ]  # fmt: skip


def _tell_9(rows: Sequence[Row]) -> str:
    last, found = _plateau(rows)
    first = min(row.x for row in rows)
    low, high = (
        [find(rows, _FOUND, _series(rule, relation), x).measured for rule in _RULES for relation in _RELATIONS]
        for x in (first, last)
    )
    return (
        f"Among 100,000 URLs, 30 % of them filled in by a model, at delta 1e-6 and epsilon {last:g} the laplace rule "
        f"finds {found:,.0f} (the paper: about 5,500), but under replace-one, the relation that the paper names, only "
        f"{high[1]:,.0f}. At epsilon {first:g} the laplace rule finds {low[0]:,.0f}, and the optimal rule "
        f"{low[2]:,.0f}. The paper gives no delta."
    )


FIG9 = Figure(
    name="j-fig9",
    title="[J] Figure 9: URLs discovered, n=100,000, delta 1e-6",
    version=2,
    panels=[Panel(_FOUND, "epsilon", "distinct URLs discovered")],
    points=_points_9,
    claims=_claims_9,
    tell=_tell_9,
    runs=30,
    quick_runs=3,
    sources=("urls",),
)

_DELTAS = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
_USERS = 100_000


def _scored(rule_name: RuleName, delta: float, settings: Settings) -> list[Row]:
    counts = tabbed_counts(settings.files["tweets"])
    held = generator(settings.seed, "tweets").multinomial(_USERS, counts / counts.sum())
    held = held[held > 0]
    rule = KeepRule(rule_name, 2.0, delta, "add-remove")
    frequent = held >= KeepRule("laplace", 2.0, delta, "add-remove").laplace_threshold
    kept = _kept(rule, held, settings, f"{rule_name}-{delta:g}")
    right = (kept & frequent).sum(axis=1)
    scores = 2.0 * right / (kept.sum(axis=1) + frequent.sum())
    chances = _chances(held, rule.keep_probability)
    predicted, spread = _score(chances, frequent)
    printed = None
    if rule_name == "laplace":
        real = 1.0 - math.log(2.0 * delta) / 2.0
        printed = _score(_chances(held, partial(_printed_chance, 2.0, delta)), held >= real)[0]
    row = Row(_SCORE, rule_name, delta, float(scores.mean()), predicted, printed, _PAPER_SCORE, law="known")
    return [Row(**{**row.__dict__, "runs": settings.runs, "spread": spread / predicted})]


def _score(chances: FloatArray, frequent: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> tuple[float, float]:
    """Return the F-score of the mean numbers of bins kept, and its standard deviation to first order."""
    right, kept, all_frequent = float(chances[frequent].sum()), float(chances.sum()), int(frequent.sum())
    score = 2.0 * right / (kept + all_frequent)
    slopes = (2.0 * frequent - score) / (kept + all_frequent)
    return score, math.sqrt(float((slopes**2 * chances * (1.0 - chances)).sum()))


def _claims_score(rows: Sequence[Row]) -> list[Claim]:
    laplace = [row.measured or 0.0 for row in select(rows, _SCORE, "laplace")]
    return [
        Claim(
            "the F-score at epsilon 2 is 0.962, here at least 0.94 for every delta", min(laplace) > _PAPER_SCORE - 0.022
        ),
        Claim("the F-score is above the 0.8 of PrivTrie", min(laplace) > 0.8),
    ]


def _tell_score(rows: Sequence[Row]) -> str:
    laplace = select(rows, _SCORE, "laplace")
    scores = [row.measured or 0.0 for row in laplace]
    printed = [row.printed or 0.0 for row in laplace]
    optimal = [row.measured or 0.0 for row in select(rows, _SCORE, "optimal")]
    return (
        f"F-score at epsilon 2 of the words held by at least T of 100,000 users, delta 1e-4 to 1e-8: laplace rule "
        f"{min(scores):.3f} to {max(scores):.3f} (with the real noise of the paper {min(printed):.3f} to "
        f"{max(printed):.3f}), optimal rule {min(optimal):.3f} to {max(optimal):.3f}. The paper prints 0.962, but "
        f"neither delta, n nor the words that should be found."
    )


FSCORE = Figure(
    name="j-fscore",
    title="[J] section 7.5: F-score of discovery among words of tweets, epsilon 2",
    version=1,
    panels=[Panel(_SCORE, "delta", "F-score", log_x=True)],
    points=lambda settings: [
        Point(f"{rule}-{delta:g}", partial(_scored, rule, delta, settings)) for rule in _RULES for delta in _DELTAS
    ],
    claims=_claims_score,
    tell=_tell_score,
    runs=30,
    quick_runs=3,
    sources=("tweets",),
)
