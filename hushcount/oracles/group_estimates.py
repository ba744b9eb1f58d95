"""Estimates of groups of items: the laws of sums, and estimates with rows of different laws.

A report's scores of several items depend on each other, so the error of a sum does not follow from the errors of its
items. The error follows from the law of T, the sum of one report's scores over the group: the encoder's `group_law`. If
fewer items are outside a group than in the group, the items outside are counted, because all counts add up to n.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hushcount.arrays import FloatArray, IntArray, UInt64Array
from hushcount.maths.support_limits import LEAST_CHANCE, SupportCounts, at_least
from hushcount.oracles.encoders.base import Encoder, Grouped, Scored
from hushcount.oracles.estimates import Estimate, quantile
from hushcount.oracles.groups import Groups
from hushcount.oracles.noisy_counts import MixNoise, NoisyCounts

_LEAST_ERROR = 1e-90
_LEAST_SKEW = 1e-3
"""Below this skewness the normal law replaces the gamma law."""


@dataclass(frozen=True, eq=False)
class Sums(Estimate):
    """Sums of many scores, by the normal law; by the gamma law if collisions skew their errors to the right.

    The p-value is the tail of the error if nobody held an item of the group. Limits are `count -+ z error`, z the
    quantile of the law on that side.

    Attributes:
        null_error: float64[g], users: the error, noise and collisions, if nobody held an item of the group.
        lean: float64[g], users cubed: the third central moment of that error; 0 for the normal law.
    """

    null_error: FloatArray
    lean: FloatArray

    def p_values(self) -> FloatArray:
        deviation = np.maximum(np.sqrt(self.repeats) * self.null_error, _LEAST_ERROR)
        return _gamma_tail(self.count / deviation, self.lean / deviation**3)

    def limits(self, tail: float) -> tuple[FloatArray, FloatArray]:
        skew = self.lean / np.maximum(self.error, _LEAST_ERROR) ** 3
        above, below = _gamma_quantile(tail, skew), -_gamma_quantile(1.0 - tail, skew)
        return self.count - above * self.error, self.count + below * self.error


@dataclass(frozen=True, eq=False)
class SupportSums(Estimate):
    """Independent reports that support T items of the group each: K is the sum of T over all reports.

    If nobody holds an item of the group, K is treated as `h Bin(M, c)` with the mean and variance of K. h is 1 unless
    Var(K) exceeds E(K); then h is Var(K)/E(K), and Bin(M, c) is nearly a Poisson law. The law is exact, with h = 1, for
    one item, for groups in randomised response, where T is 0 or 1, and in unary reports, because bits are independent.
    In subset reports T is a sum of independent bits: the binomial law fits T closely if a subset has fewer than half of
    all cells, as planned subsets do. P-values are tails of `h Bin(M, c)`. Limits come from two laws of this form, one
    for the clients that hold an item of the group, and one for all other clients (`SupportCounts`).

    Attributes:
        supports: float64[g], K.
        reports: n.
        own, other: float64[g], the mean of T if the client holds an item of the group, and if not.
        own_spread, other_spread: float64[g], the variance of T in these two cases.
    """

    supports: FloatArray
    reports: int
    own: FloatArray
    other: FloatArray
    own_spread: FloatArray
    other_spread: FloatArray

    def p_values(self) -> FloatArray:
        each, trials, chance = self._matching()
        return at_least(np.floor(self.supports / each + 1e-9), np.ceil(trials - 1e-6), chance)

    def p_values_of_all(self, reports: int) -> FloatArray:
        each, trials, chance = self._matching()
        missing = 1.0 - np.minimum(chance * self.own / self.other, 1.0)
        return at_least(np.floor(trials - self.supports / each + 1e-6), np.ceil(trials - 1e-6), missing)

    def limits(self, tail: float) -> tuple[FloatArray, FloatArray]:
        answers = np.full(len(self.count), self.reports / self.repeats)
        law = SupportCounts(answers, self.own, self.other, self.own_spread, self.other_spread)
        low, high = law.limits(self.supports / self.repeats, tail)
        return self.repeats * low, self.repeats * high

    def _matching(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return (h times `repeats`, M, c), float64[g] each."""
        mean = self.reports * self.other
        ratio = self.other_spread / self.other
        each, chance = np.maximum(ratio, 1.0), np.clip(1.0 - ratio, LEAST_CHANCE, 1.0 - LEAST_CHANCE)
        return self.repeats * each, mean / (self.repeats * each * chance), chance


@dataclass(frozen=True, eq=False)
class Rest(Estimate):
    """The complement of another estimate: n minus its counts, with its errors.

    Attributes:
        others: the estimate of all items outside each group, one row for each group.
        reports: n.
    """

    others: Estimate
    reports: int

    @classmethod
    def of(cls, others: Estimate, reports: int) -> Rest:
        """Return the complement of an estimate among n reports."""
        errors = others.standard_error, others.collision_error
        return cls(reports - others.count, *errors, others, reports, repeats=others.repeats)

    def repeated(self, times: int) -> Estimate:
        return Rest.of(self.others.repeated(times), self.reports)

    def p_values(self) -> FloatArray:
        return self.others.p_values_of_all(self.reports)

    def limits(self, tail: float) -> tuple[FloatArray, FloatArray]:
        low, high = self.others.limits(tail)
        return self.reports - high, self.reports - low


@dataclass(frozen=True, eq=False)
class Rows(Estimate):
    """One estimate that joins estimates of several laws; each part has the places of its rows, int64[rows]."""

    parts: tuple[tuple[IntArray, Estimate], ...]

    @classmethod
    def of(cls, parts: Sequence[tuple[IntArray, Estimate]], times: int = 1) -> Rows:
        """Return the rows of all parts; every place must be in one part."""
        counts, errors, collisions = (
            _placed([(places, value(part)) for places, part in parts])
            for value in (_count, _standard_error, _collision_error)
        )
        return cls(counts, errors, collisions, tuple(parts), repeats=times)

    def repeated(self, times: int) -> Estimate:
        return Rows.of([(places, part.repeated(times)) for places, part in self.parts], times)

    def p_values(self) -> FloatArray:
        return _placed([(places, part.p_values()) for places, part in self.parts])

    def limits(self, tail: float) -> tuple[FloatArray, FloatArray]:
        both = [(places, part.limits(tail)) for places, part in self.parts]
        low, high = (_placed([(places, limits[side]) for places, limits in both]) for side in (0, 1))
        return low, high


def _count(estimate: Estimate) -> FloatArray:
    return estimate.count


def _standard_error(estimate: Estimate) -> FloatArray:
    return estimate.standard_error


def _collision_error(estimate: Estimate) -> FloatArray:
    return estimate.collision_error


def _placed(parts: list[tuple[IntArray, FloatArray]]) -> FloatArray:
    found = np.zeros(sum(len(places) for places, _ in parts))
    for places, values in parts:
        found[places] = values
    return found


def _gamma_tail(deviations: FloatArray, skew: FloatArray) -> FloatArray:
    """Return `P(X >= deviation)` for X of mean 0, variance 1 and this skewness, by the gamma law or the normal law."""
    from scipy.special import gammaincc, ndtr

    shape = 4.0 / np.maximum(skew, _LEAST_SKEW) ** 2
    found = gammaincc(shape, np.maximum(shape + deviations * np.sqrt(shape), 0.0))
    return np.asarray(np.where(skew > _LEAST_SKEW, found, ndtr(-deviations)), dtype=np.float64)


def _gamma_quantile(tail: float, skew: FloatArray) -> FloatArray:
    """Return the quantile that X of `_gamma_tail` exceeds with probability `tail`."""
    from scipy.special import gammainccinv

    shape = 4.0 / np.maximum(skew, _LEAST_SKEW) ** 2
    found = (gammainccinv(shape, tail) - shape) / np.sqrt(shape)
    return np.asarray(np.where(skew > _LEAST_SKEW, found, quantile(tail)), dtype=np.float64)


def sums(
    encoder: Encoder,
    scored: Callable[[UInt64Array], Scored],
    groups: Sequence[UInt64Array],
    everything: UInt64Array | None,
) -> Estimate:
    """Return the estimate of the sum of each group: `Mechanism.sums`.

    Args:
        encoder: of the reports.
        scored: returns the scores of items, uint64[c], in the tally.
        groups: uint64[size] each.
        everything: all items that clients can hold, uint64[d]; None if these items are unknown.
    """
    asked = Groups.of(groups)
    if encoder.noise is not None and encoder.domain is not None:
        return _with_noise(encoder.noise, encoder.domain, Grouped.of(scored(asked.items), asked))
    single = asked.sizes == 1.0
    if single.all():
        return encoder.estimate(scored(asked.items))
    n, rests = scored(asked.items[:1]).tally.reports, {} if everything is None else _rests(asked, everything)
    whole = np.array([place for place, rest in rests.items() if not len(rest)], dtype=np.int64)
    turned = np.array([place for place, rest in rests.items() if len(rest)], dtype=np.int64)
    direct = np.setdiff1d(np.arange(len(asked)), np.concatenate([whole, turned]))
    parts: list[tuple[IntArray, Estimate]] = []
    if len(whole):
        parts.append((whole, _all_of(n, len(whole))))
    others = _estimates(encoder, scored, Groups.of([rests[int(place)] for place in turned]))
    parts.extend((turned[where], Rest.of(estimate, n)) for where, estimate in others)
    parts.extend((direct[where], found) for where, found in _estimates(encoder, scored, asked.chosen(direct)))
    return Rows.of(parts)


def _with_noise(noise: MixNoise, domain: int, asked: Grouped) -> Estimate:
    """Return the sums of groups whose counts hold dummies, corrected by the number of all reports."""
    tally, parts = asked.scored.tally, list[tuple[IntArray, Estimate]]()
    dummies = noise.times(tally.batches)
    surplus = float(tally.counts.sum() - tally.reports) - domain * dummies.mean
    for size in np.unique(asked.groups.sizes).astype(int).tolist():
        places = np.flatnonzero(asked.groups.sizes == size)
        if size == domain:
            parts.append((places, _all_of(tally.reports, len(places))))
            continue
        error = dummies.error_of(size, domain)
        parts.append((places, NoisyCounts.of(asked.count[places] - error.part * surplus, error)))
    return Rows.of(parts)


def _all_of(reports: int, rows: int) -> Estimate:
    """Return the sum of all items, which is the number of reports, without an error."""
    none = np.zeros(rows)
    return Rest.of(Sums(none, none, none, none, none), reports)


def _rests(groups: Groups, everything: UInt64Array) -> dict[int, UInt64Array]:
    """Return, by a group's place, all items outside the group, if they are fewer than the group's items.

    The sum over fewer items has at most the same error. Only the number of items decides which side is counted, because
    a choice by the counts would prefer the higher or the lower of two estimates.

    Raises:
        ValueError: a group has an item that nobody can hold.
    """
    if not np.isin(groups.items, everything).all():
        raise ValueError("a group has an item that clients cannot hold")
    left = (len(everything) - groups.sizes).astype(np.int64)
    return {
        place: np.setdiff1d(everything, items, assume_unique=True)
        for place, items in enumerate(groups.each())
        if len(items) > max(1, left[place])
    }


def _estimates(
    encoder: Encoder, scored: Callable[[UInt64Array], Scored], groups: Groups
) -> Iterator[tuple[IntArray, Estimate]]:
    """Yield the estimates of groups, with their places; `Encoder.estimate` estimates groups of one item."""
    for places in (np.flatnonzero(groups.sizes == 1.0), np.flatnonzero(groups.sizes > 1.0)):
        if len(places):
            chosen = groups.chosen(places)
            single = len(chosen.items) == len(chosen)
            items = scored(chosen.items)
            yield places, encoder.estimate(items) if single else _estimate(encoder, Grouped.of(items, chosen))


def _estimate(encoder: Encoder, asked: Grouped) -> Estimate:
    n, law, squares = asked.scored.tally.reports, encoder.group_law(asked), encoder.group_collisions(asked)
    noise = np.sqrt(law.noise(n, asked.held / n))
    count, collisions = asked.count, np.sqrt(squares)
    item = asked.scored.law
    if item.least < 0.0 or item.clash > 0.0:
        null = np.sqrt(law.noise(n, 0.0) + encoder.group_collisions(asked, held=False))
        return Sums(count, noise, collisions, null, encoder.group_lean(asked))
    moments = (np.asarray(each) for each in (law.own, law.other, law.own_spread, law.far_spread))
    return SupportSums(count, noise, collisions, asked.scores, n, *moments)
