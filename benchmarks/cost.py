"""The cost of reports on rented machines: measured CPU time at a stated price, and the bytes that an engine shuffles.

This is a calculation: no cluster was run. CPU time of the embedded runner stands for a worker's. Idle cores, start-up
and memory, which Dataflow bills too, are not included.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.measure import Figures

CORE_HOUR = 0.056
"""Dollars: list price of a vCPU of a Dataflow batch worker, us-central1."""
SHUFFLED_GIB = 0.011
"""Dollars: list price of a GiB that Dataflow Shuffle processes, us-central1."""

SHUFFLED_BYTES = {"encode": 16, "shuffle": 148 + 32, "analyze": 0, "discover": 16 + 162 + 162 + 8}
"""Bytes for each report that the stage's graph groups by key: encode, the line; shuffle, sealed report and claim;
discover, tag and pair, then pair and count. If values recur, there are fewer pairs with counts."""


@dataclass(frozen=True)
class Cost:
    """Dollars for a million reports.

    Attributes:
        stage: the name of the stage.
        cores: for CPU time.
        shuffle: for bytes that are grouped by key.
    """

    stage: str
    cores: float
    shuffle: float

    @property
    def total(self) -> float:
        return self.cores + self.shuffle


def costs(measured: dict[str, Figures], core_hour: float = CORE_HOUR) -> list[Cost]:
    """Return the cost of a million reports for each measured stage that runs on engines."""
    return [
        Cost(
            stage,
            measured[stage].cpu_us_per_report / 3600 * core_hour,
            shuffled * 1e6 / 2**30 * SHUFFLED_GIB,
        )
        for stage, shuffled in SHUFFLED_BYTES.items()
        if stage in measured
    ]
