"""How narrow the intervals of quantiles are, by the way of choosing bins: python -m benchmarks.quantile_bins.

Durations are log-normal, with a median of 300 ms. A way is equal ratios; or bins that follow the quantiles of the epoch
before (`pipelines.jobs.number_bins.edges_near`), once and twice; or a tree over 256 bins, in which each client answers
for its node of one of four levels, combined by least squares. All clients answer by subset selection with the size that
is best for the number of bins. The table has the ratio of the upper to the lower end of the interval of 95 %, if the
counts are their expectations.

Reference for the tree: Hay et al. 2010; Cormode, Kulkarni, Srivastava 2019.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import NormalDist

import numpy as np

from hushcount.arrays import FloatArray
from hushcount.maths.objectives import Objective, best_size
from hushcount.numbers import Bins, edges_between
from hushcount.oracles.responders.subset import Subset
from hushcount.questions.quantiles import Quantiles, Sums, quantiles
from pipelines.jobs.number_bins import edges_near

SHARES = 0.5, 0.9, 0.99
_LOW, _HIGH = 1.0, 60_000.0
_LAW = NormalDist(math.log(300.0), 1.0)
_LEVELS = 4, 16, 64, 256
_FLAT = 16, 32, 64, 128, 256
_FIRST = 32


def equal_ratios(bins: int) -> Bins:
    """Return bins of equal ratios over the range."""
    return Bins(edges_between(_LOW, _HIGH, bins, "log"), "ms")


def shares_of(bins: Bins) -> FloatArray:
    """Return float64[bins]: the share of the durations in each bin."""
    below = [0.0, *(_LAW.cdf(math.log(edge)) for edge in bins.values), 1.0]
    return np.diff(below)


def covariance(epsilon: float, held: FloatArray) -> FloatArray:
    """Return the covariance of the estimated shares of cells in one report, given how many clients hold each cell.

    A report supports s of m cells. Each of two cells that the client does not hold is supported with probability q, and
    both with `[p (s-1)(s-2) + (1-p) s (s-1)] / ((m-1)(m-2))`.
    """
    m = len(held)
    responder = Subset.spending(epsilon, m, best_size(epsilon, m, m, Objective("l2")))
    p, q, s = responder.p, responder.q, responder.size
    own = p * (s - 1) / (m - 1) - p * q
    other = (p * (s - 1) * (s - 2) + (1 - p) * s * (s - 1)) / ((m - 1) * (m - 2)) - q * q
    pairs = held[:, None] + held
    found = pairs * own + (1.0 - pairs) * other
    np.fill_diagonal(found, held * p * (1.0 - p) + (1.0 - held) * q * (1.0 - q))
    return found / (p - q) ** 2


def flat_errors(epsilon: float, held: FloatArray) -> FloatArray:
    """Return float64[bins]: the standard error of the share up to each bin, of one report."""
    upto = np.tril(np.ones((len(held), len(held))))
    return root_of(np.einsum("ij,jk,ik->i", upto, covariance(epsilon, held), upto))


def tree_errors(epsilon: float, held: FloatArray, levels: Sequence[int] = _LEVELS) -> FloatArray:
    """Return float64[bins]: the standard error of the share up to each bin by a tree, of one report.

    A client answers on one level only, so the clients of a level are a sample of all. Levels are weighted by the
    covariance at even shares.
    """
    d = len(held)
    nodes = [np.kron(np.eye(m), np.ones((1, d // m))) for m in levels]
    spreads = [covariance(epsilon, node @ held) + sample(node @ held) for node in nodes]
    weights = [np.linalg.pinv(covariance(epsilon, even) + sample(even)) for even in (np.full(m, 1 / m) for m in levels)]
    # Shares add up to 1, so only what is orthogonal to the sum is estimated.
    free = np.linalg.qr(np.column_stack([np.ones(d), np.eye(d)[:, 1:]]))[0][:, 1:]
    matrix = sum(node.T @ weight @ node for node, weight in zip(nodes, weights, strict=True))
    solved = np.tril(np.ones((d, d))) @ free @ np.linalg.inv(free.T @ matrix @ free) @ free.T
    found = np.zeros(d)
    for node, weight, spread in zip(nodes, weights, spreads, strict=True):
        gain = solved @ node.T @ weight
        found += len(levels) * np.einsum("ij,jk,ik->i", gain, spread, gain)
    return root_of(found)


def sample(held: FloatArray) -> FloatArray:
    """Return the covariance of the shares of cells among clients that are drawn, of one client."""
    return np.diag(held) - np.outer(held, held)


def root_of(variances: FloatArray) -> FloatArray:
    """Return standard errors; that of the share up to the last bin, which is 0, may be below it by rounding."""
    return np.sqrt(np.maximum(variances, 0.0))


def expected(bins: Bins, errors: FloatArray, reports: int, *, sampled: bool = False) -> Quantiles:
    """Return the quantiles if counts are their expectations, with the errors of one report."""
    below = reports * np.cumsum(shares_of(bins))[:-1]
    variances = reports * errors[:-1] ** 2
    sums = Sums(reports, bins, below, reports - below, float(reports), (variances, variances, 0.0))
    return quantiles(sums, SHARES, sampled=sampled)


def ratios(found: Quantiles) -> list[float]:
    """Return the ratio of the ends of each interval; the end of the range stands for an end that is missing."""
    ends = [found.bins.ends(*one.alone) for one in found.found]
    return [(high or _HIGH) / (low or _LOW) for low, high in ends]


def ways(epsilon: float, reports: int) -> Iterator[tuple[str, list[float]]]:
    """Yield each way of choosing bins, and the ratio of the interval of each quantile."""
    flat = [equal_ratios(bins) for bins in _FLAT]
    found = [ratios(expected(bins, flat_errors(epsilon, shares_of(bins)), reports)) for bins in flat]
    yield "equal ratios, best number", [min(one) for one in zip(*found, strict=True)]
    bins = equal_ratios(_LEVELS[-1])
    yield "tree over 256 bins", ratios(expected(bins, tree_errors(epsilon, shares_of(bins)), reports))
    bins = equal_ratios(_FIRST)
    for name in (f"equal ratios, {_FIRST} bins", "then edges near quantiles", "and once more"):
        errors = flat_errors(epsilon, shares_of(bins))
        yield name, ratios(expected(bins, errors, reports))
        near = expected(bins, errors, reports, sampled=True)
        bins = Bins(edges_near(bins, [one.together for one in near.found]), "ms")


def main() -> None:
    """Print the table."""
    print(f"{'epsilon':>7} {'reports':>9}  {'bins':28} {'50 %':>8} {'90 %':>8} {'99 %':>8}")
    for epsilon in (1.0, 2.0, 4.0, 6.0):
        for reports in (10_000, 100_000, 1_000_000):
            for name, found in ways(epsilon, reports):
                print(f"{epsilon:7g} {reports:9,}  {name:28} " + " ".join(f"{ratio:8.3f}" for ratio in found))


if __name__ == "__main__":
    main()
