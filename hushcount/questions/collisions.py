"""The error that collisions in pools add to sums and differences of results.

Collisions bias counts in the same way in every result that uses the functions of one pool. So a weighted sum of
results, `sum of w_r F_r`, has the bias of the weighted counts: bias that two results of one pool share cancels in a
difference, and adds up in a total. Different pools are independent. The bias depends on all items' counts through
`S_w = sum over items of (sum of w_r F_rx)^2`, which is estimated from the sketches without a dictionary.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hushcount.arrays import FloatArray
from hushcount.oracles.encoders.pool import Pool, sum_of_squares
from hushcount.oracles.mechanism import Mechanism
from hushcount.questions.counted import Counted

Weighted = tuple[Counted, float]
"""A result, and the weight of its counts."""


def pool_of(mechanism: Mechanism) -> Pool | None:
    """Return the pool of fixed hash functions of a mechanism; None if it draws fresh functions or has none."""
    encoder = mechanism.encoder.pooled
    return None if encoder is None else encoder.pool


def pool_variance(results: Sequence[Weighted], counts: Sequence[FloatArray], sizes: Sequence[FloatArray]) -> FloatArray:
    """Return float64[g]: the mean square, over pools, of the bias of `sum of w_r F_r` of each group.

    For each pool it is `(g S_w + (1 - 2/g) F_w^2) / (k (m-1))`, where F_w is the group's weighted count. The result is
    exact for single items and for groups of items with equal counts, too large for other groups, and zero without
    pools.

    Args:
        results: each with its weight; results of one pool may have different responders.
        counts: float64[g] users for each result: of the groups, or of all items outside a group where the result
            counted these.
        sizes: float64[g] for each result, the number of the items that were counted.

    Reference: docs/mathematics.md section 11.
    """
    by_pool: dict[Pool, list[int]] = {}
    for number, (result, _) in enumerate(results):
        pool = pool_of(result.campaign.require_frequency())
        if pool is not None:
            by_pool.setdefault(pool, []).append(number)
    total = np.zeros(len(sizes[0]))
    for pool, numbers in by_pool.items():
        squares = weighted_squares([results[number] for number in numbers])
        own = np.sum([results[number][1] * counts[number] for number in numbers], axis=0)
        items = np.max([sizes[number] for number in numbers], axis=0)
        part = items * squares + (1.0 - 2.0 / items) * own**2
        total += np.maximum(part, 0.0) / (pool.rows * (pool.cells - 1))
    return total


def weighted_squares(results: Sequence[Weighted]) -> float:
    """Estimate `S_w`, the sum over all items of `(sum of w_r F_rx)^2`, of results of one pool, without bias.

    `sum_of_squares` estimates the squares. The sums of products of the counts of two results are estimated from the
    sketches of both results. Let M be the score that a cell adds to its items, minus the mean of the cell's row. Then
    `E[sum_jc M_jc M'_jc] = (1 - 1/m)/k * gain gain'/(1 - 1/m)^2 * sum of F_x F'_x`, because clients of two results
    choose rows and answers independently.
    """
    total, scores, factor = 0.0, [], 0.0
    for result, weight in results:
        mechanism = result.campaign.require_frequency()
        encoder, gain = mechanism.encoder.pooled, float(mechanism.law.gain)
        if encoder is None:
            raise ValueError(f"campaign {result.campaign.id} has no pool, must have one")
        factor = encoder.rows * (1.0 - 1.0 / encoder.pool_cells)
        total += weight**2 * sum_of_squares(encoder, result.tally, mechanism.responder)
        cells = encoder.cell_scores(result.tally.counts).astype(np.float64)
        scores.append((weight / gain) * (cells - cells.mean(axis=1, keepdims=True)))
    if len(scores) > 1:
        products = float((sum(scores) ** 2).sum()) - sum(float((one**2).sum()) for one in scores)
        total += factor * products
    return total
