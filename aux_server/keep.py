"""Draw which bins are kept, and release their pairs."""

from __future__ import annotations

from collections.abc import Iterator

import apache_beam as beam
import numpy as np
import numpy.typing as npt

from aux_server.bins import Bins
from hushcount.discovery.keep_rules import KeepRule
from hushcount.randomness import SystemWords, Words


class Keep(beam.DoFn):
    """Bins in, the pairs of kept bins out.

    Dropped: bins that are not kept; neither they nor their number leave.

    Privacy: the set of kept bins is (epsilon, delta)-private as the rule states, and a pair is a function of its value
        alone, so the release tells no more than that set, even to one who made some of the reports.
    Randomness: cryptographic. An engine that loses a worker may run this step again and draw anew, so the pipeline puts
        a checkpoint after it, and what leaves is one file, written after all draws and shown when it is whole: of two
        draws of a bin only one is ever released. A draw derived from a key of the run would be the same each time, but
        the key would lie in the job's graph, and it shows by how much a kept bin passed.
    """

    def __init__(self, rule: KeepRule) -> None:
        self._rule = rule

    def process(self, bins: Bins) -> Iterator[bytes]:
        kept = np.ascontiguousarray(bins.pairs[draw_kept(self._rule, bins.counts, SystemWords())])
        for pair in kept.view(np.uint8).reshape(len(kept), kept.itemsize):
            yield pair.tobytes()


def draw_kept(rule: KeepRule, counts: npt.NDArray[np.int64], words: Words) -> npt.NDArray[np.bool_]:
    """Return bool[b]: which bins are kept, each drawn by itself with `rule.keep_probability` of its count.

    Args:
        rule: the campaign's.
        counts: int64[b], each at least 1.
        words: for the optimal rule. The laplace rule takes its noise from OpenDP's discrete sampler instead.
    """
    if rule.name == "laplace":
        return noisy(rule, counts) >= rule.laplace_threshold
    thresholds = rule.optimal_thresholds
    table = np.array(thresholds[:-1], dtype=np.uint64)
    chance = table[np.minimum(counts, len(table) - 1)]
    # The last threshold is 2**64, which no 64-bit word holds: those bins are kept without a draw.
    return (counts >= len(table)) | (words.words(len(counts)) < chance)


def noisy(rule: KeepRule, counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the counts with discrete Laplace noise of at least the rule's scale, from OpenDP."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    measurement = dp.m.make_laplace(*space, scale=rule.noise_scale)
    return np.array(measurement(counts.tolist()), dtype=np.int64)
