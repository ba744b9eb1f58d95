"""Draws which bins are kept, and releases their pairs in random order, with their counts if the rule has counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

import apache_beam as beam
import numpy as np
import numpy.typing as npt
from apache_beam.pvalue import PCollection
from apache_beam.transforms.window import BoundedWindow
from apache_beam.typehints import with_input_types, with_output_types

from aux_server.bins import Bins
from aux_server.drawing import BinWords, in_drawn_order
from hushcount.discovery.keep_rules import KeepRule
from hushcount.discovery.pairs import join_released
from hushcount.draws import Derives, Draw, Reference
from hushcount.maths.drawn_noise import count_noise, laplace_noise
from hushcount.randomness import WORD_VALUES, Words

Draws: TypeAlias = "Draw | Callable[[BoundedWindow], Draw | None]"
"""The draw of a release, or a function that returns each window's draw; None: the window releases nothing."""


class Release(beam.PTransform):  # type: ignore[misc]  # apache_beam ships no types
    """Takes bins; gives (0, block of the kept bins' records), which are pairs, or pairs with the counts that bins show.

    Dropped: bins that are not kept; neither these bins nor their number are in the output.

    Privacy: the set of kept bins, with their counts, is (epsilon, delta)-private as the rule states. A pair is a
        function of its value alone, and the order is a fresh permutation, so the release reveals no more than that set,
        even to an analyzer that made some of the reports.
    Randomness: a pseudo-random function under a key that is derived from the auxiliary server's private key. Only the
        workers open the private key, and no graph holds it. If an engine loses a worker, the repeated draw is the same.
    """

    def __init__(self, rule: KeepRule, draw: Draws) -> None:
        super().__init__()
        self._rule = rule
        self._draw = draw

    def expand(self, bins: PCollection) -> PCollection:
        return (
            bins
            | "keep" >> beam.ParDo(Keep(self._rule, self._draw))
            | "one place" >> beam.Map(_one_place).with_output_types(tuple[int, bytes])
            | "released records meet" >> beam.GroupByKey()
            | "in random order" >> beam.ParDo(InDrawnOrder(self._draw))
        )


class _Drawing(beam.DoFn):
    """A step that uses the key of a window's draw. It reads the private key once, as a read may ask a key service."""

    def __init__(self, draw: Draws) -> None:
        self._draw = draw
        self._read: tuple[Reference, Derives] | None = None

    def _key(self, window: BoundedWindow) -> bytes | None:
        draw = self._draw if isinstance(self._draw, Draw) else self._draw(window)
        if draw is None:
            return None
        if self._read is None or self._read[0] != draw.key:
            self._read = draw.key, draw.key.read_any()
        return self._read[1].derived(draw.context)


@with_input_types(Bins)
@with_output_types(bytes)
class Keep(_Drawing):
    """Takes bins; yields the records of kept bins."""

    def __init__(self, rule: KeepRule, draw: Draws) -> None:
        super().__init__(draw)
        self._rule = rule

    def process(self, bins: Bins, window: BoundedWindow = beam.DoFn.WindowParam) -> Iterator[bytes]:
        if (key := self._key(window)) is not None:
            yield from kept_records(self._rule, bins, BinWords(key, bins.pairs))


def kept_records(rule: KeepRule, bins: Bins, words: Words) -> Iterator[bytes]:
    """Draw which bins are kept, and yield their records: pairs, or pairs with the counts that they show."""
    if rule.counts:
        drawn = draw_counts(rule, bins.counts, words)
        kept = drawn > 0
        shown = drawn[kept]
    else:
        kept, shown = draw_kept(rule, bins.counts, words), None
    pairs = np.ascontiguousarray(bins.pairs[kept])
    for record in join_released(pairs.view(np.uint8).reshape(len(pairs), pairs.itemsize), shown):
        yield record.tobytes()


def draw_kept(rule: KeepRule, counts: npt.NDArray[np.int64], words: Words) -> npt.NDArray[np.bool_]:
    """Return bool[b], the kept bins: each is kept independently, with the `rule.keep_probability` of its count.

    Args:
        rule: the campaign's keep rule, without counts.
        counts: int64[b], each at least 1.
        words: random words for the draw.
    """
    if rule.name == "laplace":
        return counts + laplace_noise(rule.laplace_ratio, len(counts), words) >= rule.laplace_threshold
    thresholds = rule.optimal_thresholds
    last = len(thresholds) - 1
    # Under add-remove the last threshold is 2**64, more than any 64-bit word, so a bin with that threshold is always
    # kept.
    certain = (counts >= last) & (thresholds[-1] == WORD_VALUES)
    table = np.array([min(threshold, WORD_VALUES - 1) for threshold in thresholds], dtype=np.uint64)
    return certain | (words.words(len(counts)) < table[np.minimum(counts, last)])


def draw_counts(rule: KeepRule, counts: npt.NDArray[np.int64], words: Words) -> npt.NDArray[np.int64]:
    """Return int64[b]: the count that each bin shows, drawn independently by `rule.count_law`; 0 if the bin is dropped.

    Args:
        rule: the campaign's keep rule, with counts.
        counts: int64[b], each at least 1.
        words: random words for the noise.
    """
    shown = counts + count_noise(rule.count_law, len(counts), words)
    return np.where(shown >= rule.count_law.threshold, shown, 0)


def _one_place(record: bytes) -> tuple[int, bytes]:
    return 0, record


@with_input_types(tuple[int, Iterable[bytes]])
@with_output_types(tuple[int, bytes])
class InDrawnOrder(_Drawing):
    """Takes (place, records); yields (place, block of these records in random order)."""

    def process(
        self, element: tuple[int, Iterable[bytes]], window: BoundedWindow = beam.DoFn.WindowParam
    ) -> Iterator[tuple[int, bytes]]:
        if (key := self._key(window)) is not None:
            yield element[0], b"".join(in_drawn_order(key, list(element[1])))
