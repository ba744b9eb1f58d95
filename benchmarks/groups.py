"""What groups that are named beforehand cost the analyzer: CPU seconds of their squares beside those of the tally.

    python -m benchmarks.groups

One thread, the best of a few runs, compiled beforehand. Opening the same reports takes the analyzer longer than both:
see benchmarks/opening.py.
"""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks.decode import axes, cpu_seconds
from hushcount.kernels.candidates import candidates
from hushcount.kernels.group import group
from hushcount.kernels.squares import squares
from hushcount.kernels.walk import walk
from hushcount.oracles.decoding import DecodeLoad, cheapest
from hushcount.oracles.groups import Groups
from hushcount.oracles.mechanism import Mechanism
from hushcount.randomness import SystemWords

_WAYS = {"candidates": candidates, "group": group, "walk": walk}


def seconds_of(system: str, epsilon: float, reports: int, items: int, groups: int, size: int) -> tuple[float, float]:
    """Return CPU seconds of the tally, and of the squares of so many groups of this size."""
    encoder, responder = axes(system, epsilon, items)
    listed = np.arange(items, dtype=np.uint64)
    encoded = Mechanism(encoder, responder).encode(np.resize(listed, reports), SystemWords())
    sent = encoder.progressions(responder.runs(encoded), encoded)
    load = DecodeLoad(len(sent.slopes), encoder.prime, float(sent.lengths.mean()), items, sent.stride)
    draw = np.random.default_rng(1)
    named = Groups.of([draw.choice(listed, size, replace=False) for _ in range(groups)])
    way, counts, each = _WAYS[cheapest(load).way], np.zeros(items, dtype=np.int64), len(sent.slopes) // reports
    way(np.zeros(2, dtype=np.int64), sent, listed[:2])
    squares(sent, each, named.items[:size], named.starts[:1])
    return (
        cpu_seconds(lambda: way(counts, sent, listed), 3),
        cpu_seconds(lambda: squares(sent, each, named.items, named.starts), 3),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reports", type=int, default=100_000)
    parser.add_argument("--items", type=int, default=26_000)
    parser.add_argument("--groups", type=int, default=100)
    parser.add_argument("--size", type=int, default=100)
    given = parser.parse_args()
    print("system  eps   tally CPU s   squares CPU s")
    for system in ("ais", "ocms"):
        for epsilon in (1.0, 2.0, 4.0):
            tally, kept = seconds_of(system, epsilon, given.reports, given.items, given.groups, given.size)
            print(f"{system:<6}{epsilon:>5g}{tally:>14.3f}{kept:>16.3f}")


if __name__ == "__main__":
    main()
