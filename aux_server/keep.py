"""Draw which bins are kept, and release their sampled sealed values."""

from __future__ import annotations

from collections.abc import Iterator

import apache_beam as beam
import numpy as np
import numpy.typing as npt

from aux_server.bins import Bins
from hushcount.discovery import HASH_BYTES
from hushcount.privacy.keep_rules import KeepRule
from hushcount.randomness import SystemWords, Words


class Keep(beam.DoFn):
    """(partition, Bins) in, released records out: a kept bin's hash and its `values_per_bin` sealed values.

    Dropped: bins that are not kept; neither they nor their number leave.

    Privacy: the set of kept bins is (epsilon, delta)-private as the rule states; a record tells no more than that its
        bin is kept, because it always holds the same number of values.
    Randomness: cryptographic; drawn once, behind the checkpoint that the pipeline puts after this step.
    """

    def __init__(self, rule: KeepRule) -> None:
        self._rule = rule

    def process(self, element: tuple[int, Bins]) -> Iterator[bytes]:
        _, bins = element
        kept = draw_kept(self._rule, bins.counts, SystemWords())
        starts = np.searchsorted(bins.owner, np.arange(len(bins.hashes)))
        hashes = bins.hashes.view(np.uint8).reshape(-1, HASH_BYTES)
        for index in np.flatnonzero(kept):
            sample = bins.sealed[starts[index] : starts[index] + self._rule.values_per_bin]
            yield hashes[index].tobytes() + sample.tobytes()


def draw_kept(rule: KeepRule, counts: npt.NDArray[np.int64], words: Words) -> npt.NDArray[np.bool_]:
    """Return bool[b]: which bins are kept, each drawn by itself with `rule.keep_probability` of its count.

    Args:
        rule: the campaign's.
        counts: int64[b].
        words: for the optimal rule. The laplace rule takes its noise from OpenDP's discrete sampler instead.
    """
    shifted = counts - (rule.values_per_bin - 1)
    able = shifted >= 1
    kept = np.zeros(len(counts), dtype=np.bool_)
    if rule.name == "optimal":
        thresholds = rule.optimal_thresholds
        surely = shifted >= len(thresholds) - 1
        table = np.array(thresholds[:-1], dtype=np.uint64)
        chance = table[np.clip(shifted, 0, len(table) - 1)]
        kept[able] = (surely | (words.words(len(counts)) < chance))[able]
    else:
        kept[able] = noisy(rule, shifted[able]) >= rule.laplace_threshold
    return kept


def noisy(rule: KeepRule, counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the counts with discrete Laplace noise of at least the rule's scale, from OpenDP."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    measurement = dp.m.make_laplace(*space, scale=rule.noise_scale)
    return np.array(measurement(counts.tolist()), dtype=np.int64)
