"""Regression gates: how many times its limit's CPU time a stage may take; so wide that no busy machine trips them."""

from __future__ import annotations

from benchmarks.machine import has_ifma
from benchmarks.measure import Figures

REPORTS = 500_000
"""So many that start-up is a small part: on 100,000 the shuffler takes 21 times its limit, on these 8 times."""
WITHOUT_LANES = {"encode": 1.5, "shuffle": 15.0, "analyze": 1.6, "analyze-gcms": 1.7, "discover": 1.7}
"""Measured: at most 1.4 for those that open or seal, 7.9 for the shuffler, whose limit is short."""
WITH_LANES = {**WITHOUT_LANES, "encode": 0.7, "analyze": 0.7, "analyze-gcms": 0.7, "discover": 0.7}
"""Measured on a busy machine: at most 0.32 for those that open or seal."""
GATES = WITH_LANES if has_ifma() else WITHOUT_LANES


def beyond(measured: dict[str, Figures]) -> list[str]:
    """Return a sentence for each stage that takes more than its gate allows."""
    found = []
    for stage, gate in GATES.items():
        figures = measured[stage]
        if figures.cpu_ratio_to_limit is None:
            raise ValueError(f"stage {stage} has no limit: it cannot have a gate")
        times = 1.0 / figures.cpu_ratio_to_limit
        if times > gate:
            found.append(f"{stage} takes {times:.2f} times the CPU time of its limit, its gate is {gate:g}")
    return found
