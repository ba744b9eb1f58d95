"""Search the model, or take mends out one at a time and show how each is missed.

python -m tests.model --seconds 3600      search what is mended; ends with status 1 and the trace if it finds a fault
python -m tests.model --removed           a row for each mend that is taken out
"""

from __future__ import annotations

import argparse
import logging
import sys
from secrets import randbits

from tests.model.faults import FAULTS
from tests.model.removed import MENDS
from tests.model.search import search

_MOST_STEPS = 1_000_000


def main() -> int:
    """Do what is asked; return the exit status."""
    parser = argparse.ArgumentParser(description="Search for a trace that breaks a promise of the README.")
    parser.add_argument("--seconds", type=float, default=120.0, help="How long; for each mend that is removed.")
    parser.add_argument("--seed", type=int, default=None, help="Of what is drawn; another one each time by default.")
    parser.add_argument("--removed", action="store_true", help="Take mends out, one at a time.")
    parser.add_argument("--faults", nargs="*", default=sorted(FAULTS), help="Kinds of what goes wrong.")
    asked = parser.parse_args()
    logging.disable(logging.CRITICAL)
    seed = randbits(32) if asked.seed is None else asked.seed
    return _show_removed(seed, asked.seconds) if asked.removed else _search(seed, asked.seconds, asked.faults)


def _search(seed: int, seconds: float, faults: list[str]) -> int:
    found = search(seed, steps=_MOST_STEPS, seconds=seconds, faults=faults)
    print(f"seed {seed}: {found.traces:,} traces, {found.steps:,} steps, {found.seconds:.0f} s")
    if found.trace is None:
        print("every promise held")
        return 0
    print(f"{found.trace.broken}\n{found.trace}")
    return 1


def _show_removed(seed: int, seconds: float) -> int:
    print("mend removed | steps | seconds | promise broken | shortest trace")
    missed = 0
    for mend in MENDS:
        with mend.removed():
            found = search(seed, steps=_MOST_STEPS, seconds=seconds, faults=mend.faults)
        told = "NOT FOUND" if found.trace is None else f"{found.trace.broken} | {found.trace}"
        missed += found.trace is None
        print(f"{mend.name} | {found.steps} | {found.seconds:.1f} | {told}", flush=True)
    return min(missed, 1)


if __name__ == "__main__":
    sys.exit(main())
