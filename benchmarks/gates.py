"""Regression gates: the most CPU time of a stage, in multiples of its limit's. A busy machine does not reach a gate."""

from __future__ import annotations

from benchmarks.machine import has_ifma
from benchmarks.measure import Figures

REPORTS = 500_000
"""Enough to make start-up a small part: with 100,000 the shuffler takes 21 times its limit, with 500,000 8 times."""
WITHOUT_LANES = {"encode": 1.5, "shuffle": 15.0, "analyze": 1.6, "analyze-gcms": 1.7, "discover": 1.7}
"""Measured: at most 1.4 for stages that open or seal, and 7.9 for the shuffler, which has a short limit."""
WITH_LANES = {**WITHOUT_LANES, "encode": 0.7, "analyze": 0.7, "analyze-gcms": 0.7, "discover": 0.7}
"""Measured on a busy machine: at most 0.32 for stages that open or seal."""
GATES = WITH_LANES if has_ifma() else WITHOUT_LANES


def beyond(measured: dict[str, Figures]) -> list[str]:
    """Return a sentence for each stage that takes more CPU time than its gate allows."""
    found = []
    for stage, gate in GATES.items():
        figures = measured[stage]
        if figures.cpu_ratio_to_limit is None:
            raise ValueError(f"stage {stage} has no limit: it cannot have a gate")
        times = 1.0 / figures.cpu_ratio_to_limit
        if times > gate:
            found.append(f"{stage} takes {times:.2f} times the CPU time of its limit, its gate is {gate:g}")
    return found
