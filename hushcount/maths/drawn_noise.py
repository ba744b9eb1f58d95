"""Draws of the noise of counts and of keep rules, exactly from their laws, with random words and integers only."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from hushcount.maths.count_laws import CountLaw
from hushcount.randomness import Words, below


@runtime_checkable
class WordsOfEach(Words, Protocol):
    """Words for several numbers, each of which has a stream of its own."""

    def at(self, rows: npt.NDArray[np.intp]) -> Words:
        """Return the streams of the numbers in these rows."""
        ...


def count_noise(law: CountLaw, number: int, words: Words) -> npt.NDArray[np.int64]:
    """Return int64[number], each exactly from the law: X - Y of two geometric numbers, drawn again if above B.

    `Pr[X - Y = z]` is proportional to `a^z` for z >= 0 and `b^-z` for z < 0. X is the number of successes before the
    first failure if a success has probability a, and Y is this number for probability b.
    """
    noise = np.empty(number, dtype=np.int64)
    missing = np.arange(number)
    while missing.size:
        of = _at(words, missing)
        noise[missing] = _runs(law.right, missing.size, of) - _runs(law.left, missing.size, of)
        missing = missing[noise[missing] > law.most]
    return noise


def laplace_noise(ratio: int, number: int, words: Words) -> npt.NDArray[np.int64]:
    """Return int64[number], exactly of law `Pr[z] = (1-a)/(1+a) a^|z|` (discrete Laplace), `a = ratio / 2**64`.

    Each result is the difference of two geometric numbers, and each geometric number takes 1 / (1 - a) words on
    average.
    """
    return _runs(ratio, number, words) - _runs(ratio, number, words)


def _runs(threshold: int, number: int, words: Words) -> npt.NDArray[np.int64]:
    """Return int64[number]: numbers of successes, of probability `threshold / 2**64`, before the first failure."""
    lengths = np.zeros(number, dtype=np.int64)
    running = np.arange(number)
    while running.size:
        running = running[below(threshold, running.size, _at(words, running))]
        lengths[running] += 1
    return lengths


def _at(words: Words, rows: npt.NDArray[np.intp]) -> Words:
    """Return the words for the numbers in `rows` if each number has a stream of its own; otherwise return `words`."""
    return words.at(rows) if isinstance(words, WordsOfEach) else words
