"""Simulation: many collections of the same values, in memory and without sealing, and the errors of their estimates."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from nacl.bindings import randombytes_buf_deterministic

from hushcount.arrays import FloatArray, IntArray, UInt64Array
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.tally import Tally
from hushcount.randomness import SystemWords, Words, hex_seed

_CHUNK_BYTES = 1 << 28
_MOST_CELLS = 1 << 27


class SeededWords:
    """ChaCha20 words from a seed and a run's number, for simulations that can be repeated; never for clients."""

    def __init__(self, seed: int, run: int) -> None:
        self._key = hashlib.blake2b(f"{seed}/{run}".encode(), digest_size=24, person=b"simulation").digest()
        self._calls = 0

    def words(self, count: int) -> UInt64Array:
        """Return uint64[count]."""
        self._calls += 1
        key = self._key + self._calls.to_bytes(8, "little")
        stream = randombytes_buf_deterministic(8 * count, key) if count else b""
        return np.frombuffer(bytearray(stream), dtype="<u8").astype(np.uint64, copy=False)


def fresh_functions(seed: int | None, run: int) -> str:
    """Return the seed of a pool's functions for a run, 64 hexadecimal digits, independent of the words of all runs."""
    return hex_seed(SystemWords() if seed is None else SeededWords(seed, -1 - run))


@dataclass(frozen=True)
class Population:
    """The items, and the number of clients that hold each item.

    Attributes:
        items: uint64[d], the mechanism's items, all different.
        held: int64[d], the number of clients that hold each item.
    """

    items: UInt64Array
    held: IntArray

    @property
    def n(self) -> int:
        return int(self.held.sum())

    @property
    def clients(self) -> UInt64Array:
        """uint64[n]: the item of each client."""
        return np.repeat(self.items, self.held)


@dataclass(frozen=True, eq=False)
class Losses:
    """The errors of simulated estimates, in shares, over the items of interest.

    Attributes:
        l1: float64[runs], sum of absolute errors of each run; [P26] section 6.
        l2: float64[runs], sum of squared errors of each run.
        error: float64[c], mean error of each item over the runs.
        square: float64[c], mean squared error of each item.
        variance: float64[c], the exact mean squared error: noise, and collisions over fresh pools.
        encode_seconds, tally_seconds, decode_seconds: CPU time of all runs.
    """

    l1: FloatArray
    l2: FloatArray
    error: FloatArray
    square: FloatArray
    variance: FloatArray
    encode_seconds: float
    tally_seconds: float
    decode_seconds: float

    @property
    def runs(self) -> int:
        return len(self.l1)

    @property
    def bias_z(self) -> FloatArray:
        """float64[c]: mean errors in standard deviations of a mean; a value beyond about 5 shows a bias.

        If the estimates do not vary, as at a large epsilon, the value is infinite for an item with an error, else 0.
        """
        never = np.where(self.error == 0.0, 0.0, np.inf)
        deviation = np.sqrt(self.variance / self.runs)
        return np.divide(self.error, deviation, out=never, where=deviation > 0.0)


def simulate(
    mechanism_of: Callable[[int], Mechanism],
    population: Population,
    runs: int,
    seed: int | None = None,
    interest: slice = slice(None),
    threads: int = 1,
) -> Iterator[Losses]:
    """Collect the same values again and again, and yield the losses of each run; `gather` adds them up.

    Args:
        mechanism_of: returns the mechanism of a run by its number; it should draw a pool's functions anew each time.
        population: the items and their clients.
        runs: number of collections.
        seed: the same seed repeats a simulation; None uses the system's generator.
        interest: the items over which losses are summed.
        threads: number of runs at once; fewer if their tallies would take more than a gibibyte together.

    Privacy: a simulation protects nothing, because the caller knows the values. No client, party or job of a collection
    may import this module.
    """

    def one(run: int) -> Losses:
        words = SystemWords() if seed is None else SeededWords(seed, run)
        return _collect(mechanism_of(run), population, words, interest)

    rows, width = mechanism_of(0).encoder.tally_shape(population.items)
    at_once = min(threads, max(1, _MOST_CELLS // (rows * width)))
    with ThreadPoolExecutor(at_once) as pool:
        yield from (map if at_once == 1 else pool.map)(one, range(runs))


def gather(parts: Iterator[Losses]) -> Losses:
    """Return the losses of all runs together; the memory that is needed hardly grows with the number of runs."""
    l1, l2, sums, seconds = [], [], np.zeros((3, 1)), np.zeros(3)
    for part in parts:
        l1.append(part.l1)
        l2.append(part.l2)
        sums = sums + np.array([part.error, part.square, part.variance])
        seconds += (part.encode_seconds, part.tally_seconds, part.decode_seconds)
    if not l1:
        raise ValueError("runs is 0, must be at least 1")
    error, square, variance = sums / len(l1)
    return Losses(np.concatenate(l1), np.concatenate(l2), error, square, variance, *map(float, seconds))


def exact_variance(mechanism: Mechanism, population: Population) -> FloatArray:
    """Return float64[d]: the variance of every item's estimated share, noise and collisions, for this population."""
    held, n = population.held.astype(np.float64), population.n
    near = mechanism.encoder.near_users(population.items, held)
    noise = mechanism.variance(n, held / n, None if near is None else near / n)
    return (noise + mechanism.collision_variance((held**2).sum() - held**2)) / n**2


def _collect(mechanism: Mechanism, population: Population, words: Words, interest: slice) -> Losses:
    items, clients, n = population.items, population.clients, population.n
    counts = mechanism.new_tally(items)
    step = max(1, _CHUNK_BYTES // mechanism.report.itemsize)
    encoding = tallying = 0.0
    for start in range(0, n, step):
        began = time.thread_time()
        reports = mechanism.encode(clients[start : start + step], words)
        encoded = time.thread_time()
        mechanism.accumulate(counts, reports, items)
        encoding += encoded - began
        tallying += time.thread_time() - encoded
    began = time.thread_time()
    estimated = mechanism.counts(Tally(counts, n, items), items[interest])
    decoding = time.thread_time() - began
    error, variance = (estimated - population.held[interest]) / n, exact_variance(mechanism, population)[interest]
    l1, l2 = np.array([np.abs(error).sum()]), np.array([(error**2).sum()])
    return Losses(l1, l2, error, error**2, variance, encoding, tallying, decoding)
