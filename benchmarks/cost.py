"""What reports cost on rented machines: measured CPU time at a stated price, and the bytes that an engine shuffles.

On paper: no cluster was run. CPU time of the embedded runner stands for that of a worker; idle cores, start-up and
memory, which Dataflow bills too, are not in it.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.measure import Figures

CORE_HOUR = 0.056
"""Dollars: list price of a vCPU of a Dataflow batch worker, us-central1."""
SHUFFLED_GIB = 0.011
"""Dollars: list price of a GiB that Dataflow Shuffle processes, us-central1."""

SHUFFLED_BYTES = {"encode": 16, "shuffle": 148 + 32, "analyze": 0, "discover": 16 + 162 + 162 + 8}
"""Bytes of a report that the stage's graph groups by key: the line; sealed report and claim; tag and pair, then
pair and count, of which there are fewer where values recur."""


@dataclass(frozen=True)
class Cost:
    """Dollars for a million reports.

    Attributes:
        stage: of which stage.
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
    """Return what each measured stage that runs on engines costs for a million reports."""
    return [
        Cost(
            stage,
            measured[stage].cpu_us_per_report / 3600 * core_hour,
            shuffled * 1e6 / 2**30 * SHUFFLED_GIB,
        )
        for stage, shuffled in SHUFFLED_BYTES.items()
        if stage in measured
    ]
