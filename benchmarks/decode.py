"""Time of the three ways to decode affine reports, beside the time that `hushcount.oracles.decoding` expects.

Times are CPU seconds of one thread, the best of a few runs, without compilation. The constants in
`hushcount/oracles/decoding.py` come from the column "per operation": the walk's steps, the residues and items of
counting by slope, and the candidates' tests.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from hushcount.arrays import Counts, UInt64Array
from hushcount.kernels.candidates import candidates
from hushcount.kernels.group import group
from hushcount.kernels.progressions import Progressions
from hushcount.kernels.walk import walk
from hushcount.maths import field61
from hushcount.maths.primes import prime_at_least
from hushcount.oracles.decoding import DecodeCost, DecodeLoad, candidates_cost, cheapest, group_cost, walk_cost
from hushcount.oracles.encoders.affine import Affine
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.responders.interval import Interval
from hushcount.oracles.responders.randomised_response import RandomisedResponse
from hushcount.randomness import SystemWords, uniform

Way = Callable[[Counts, Progressions, UInt64Array], None]
WAYS: dict[str, tuple[Way, Callable[[DecodeLoad], DecodeCost]]] = {
    "walk": (walk, walk_cost),
    "group": (group, group_cost),
    "candidates": (candidates, candidates_cost),
}


@dataclass(frozen=True)
class Line:
    system: str
    reports: int
    items: int
    epsilon: float
    way: str
    chosen: bool
    seconds: float
    expected: float
    nanoseconds_per_operation: float


def axes(system: str, epsilon: float, domain: int | None) -> tuple[Affine, Interval | RandomisedResponse]:
    """Affine Interval Selection with the best window, or OCMS with the best number of buckets, for rare items."""
    prime = field61.PRIME if domain is None else prime_at_least(domain)
    if system == "ais":
        size = max(1, round(prime / (math.exp(epsilon) + 1.0)))
        return Affine(domain, prime, prime), Interval.spending(epsilon, prime, size)
    buckets = min(prime - 1, round(math.exp(epsilon) + 1.0))
    return Affine(domain, prime, buckets), RandomisedResponse.spending(epsilon, buckets)


def cpu_seconds(work: Callable[[], object], runs: int) -> float:
    times = []
    for _ in range(runs):
        start = time.thread_time()
        work()
        times.append(time.thread_time() - start)
    return min(times)


def lines(system: str, reports: int, epsilon: float, items: int, open_domain: bool, runs: int) -> list[Line]:
    encoder, responder = axes(system, epsilon, None if open_domain else items)
    wanted = uniform(field61.PRIME, items, SystemWords()) if open_domain else np.arange(items, dtype=np.uint64)
    encoded = Mechanism(encoder, responder).encode(np.resize(wanted, reports), SystemWords())
    sent = encoder.progressions(responder.runs(encoded), encoded)
    load = DecodeLoad(reports, encoder.prime, float(sent.lengths.mean()), items, sent.stride)
    best = cheapest(load).way
    found = []
    for name in ["candidates"] if open_domain else list(WAYS):
        work, cost = WAYS[name]
        expected = cost(load)
        counts = np.zeros(items, dtype=np.int64)
        warm = Progressions(sent.prime, sent.stride, sent.slopes[:2], sent.begins[:2], sent.lengths[:2])
        work(counts, warm, wanted)
        seconds = cpu_seconds(lambda work=work, counts=counts: work(counts, sent, wanted), runs)  # type: ignore[misc]
        each = seconds / expected.operations * 1e9
        found.append(Line(system, reports, items, epsilon, name, name == best, seconds, expected.seconds, each))
    return found


def table(rows: Sequence[Line]) -> None:
    print("system   reports   items  eps  way            CPU s  expected  per operation")
    for row in rows:
        mark = "  <- chosen" if row.chosen else ""
        print(
            f"{row.system:<6}{row.reports:>10}{row.items:>8}{row.epsilon:>5g}  {row.way:<11}{row.seconds:>9.4f}"
            f"{row.expected:>10.4f}{row.nanoseconds_per_operation:>12.3f} ns{mark}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reports", type=int, nargs="+", default=[170_000])
    parser.add_argument("--items", type=int, default=26_000, help="size of the dictionary, or of the items to estimate")
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 3.0, 5.0])
    parser.add_argument("--system", choices=["ais", "ocms"], nargs="+", default=["ais", "ocms"])
    parser.add_argument("--open-domain", action="store_true", help="items are fingerprints below 2**61-1; use fewer")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    rows = [
        line
        for system in given.system
        for reports in given.reports
        for epsilon in given.epsilon
        for line in lines(system, reports, epsilon, given.items, given.open_domain, given.runs)
    ]
    if given.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
    else:
        table(rows)


if __name__ == "__main__":
    main()
