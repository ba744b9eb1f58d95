"""CPU time to privatise a report, randomness included, and to read it, beside the time to draw the randomness alone.

All is measured in one run, so that the figures compare. A report costs at least the drawing of as many random bits as
it carries (`draw, us`), by the same generator.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from functools import partial

from hushcount.maths.objectives import Objective
from hushcount.oracles.catalogue import build, plan
from hushcount.randomness import SystemWords, uniform

_CASES: tuple[tuple[str, float, int | None, dict[str, int]], ...] = (
    ("ais", 1.0, 26_000, {}),
    ("ais", 4.0, None, {}),
    ("ocms", 1.0, 26_000, {}),
    ("ocms-round", 4.0, 26_000, {}),
    ("grr", 4.0, 50, {}),
    ("gcms", 4.0, None, {"k": 65_536, "m": 1024}),
    ("gcms", 1.0, None, {"k": 1024, "m": 1024}),
    ("ss", 1.0, 100, {}),
    ("ss", 1.0, 1024, {}),
    ("wss", 1.0, 100, {}),
    ("oue", 1.0, 100, {}),
    ("apple-cms", 4.0, None, {}),
    ("hcms", 4.0, None, {}),
    ("he", 1.0, 26_000, {}),
    ("rhr", 3.0, 26_000, {}),
)


def cpu_us(work: Callable[[], object], reports: int, repeats: int) -> float:
    """Return the least time of some runs, because other processes on the machine only add time."""
    best = math.inf
    for _ in range(repeats):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best / reports * 1e6


def figures(reports: int, repeats: int) -> list[dict[str, object]]:
    words, rows = SystemWords(), []
    for name, epsilon, domain, settings in _CASES:
        mechanism = build(name, epsilon, domain, plan(name, epsilon, domain, settings, Objective(), "5eed" * 16))
        items = uniform(domain or (1 << 61) - 2, reports, words)
        needed = max(1, math.ceil(reports * mechanism.report_bits / 64))
        mechanism.encode(items[:1000], words)  # compiles
        reported = mechanism.encode(items, words)
        packed = mechanism.pack(reported)
        mechanism.unpack(packed[:1000])
        rows.append(
            {
                "mechanism": name,
                "epsilon": epsilon,
                "domain": domain,
                "bits": round(mechanism.report_bits, 1),
                "encode_us": round(cpu_us(partial(mechanism.encode, items, words), reports, repeats), 3),
                "pack_us": round(cpu_us(partial(mechanism.pack, reported), reports, repeats), 3),
                "unpack_us": round(cpu_us(partial(mechanism.unpack, packed), reports, repeats), 3),
                "draw_us": round(cpu_us(partial(words.words, needed), reports, repeats), 3),
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reports", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    rows = figures(chosen.reports, chosen.repeats)
    if chosen.json:
        print(json.dumps(rows, indent=2))
        return
    times = "".join(f"{f'{step}, us':>12}" for step in ("encode", "pack", "unpack", "draw"))
    print(f"{'mechanism':<12}{'epsilon':>8}{'domain':>8}{'bits':>9}{times}")
    for row in rows:
        print(
            f"{row['mechanism']:<12}{row['epsilon']:>8}{row['domain'] or 'open':>8}{row['bits']:>9}"
            f"{row['encode_us']:>12}{row['pack_us']:>12}{row['unpack_us']:>12}{row['draw_us']:>12}"
        )


if __name__ == "__main__":
    main()
