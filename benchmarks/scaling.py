"""The table of docs/scaling.md, from the measured CPU time: `python -m benchmarks.scaling` writes it.

This is a calculation, like `benchmarks.cost`: no cluster of this size was run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from benchmarks.cost import CORE_HOUR, SHUFFLED_BYTES, SHUFFLED_GIB
from benchmarks.measure import Figures
from benchmarks.page import table
from benchmarks.record import stored_record
from hushcount.collection.envelopes import envelope_dtype
from hushcount.formats.whole_files import write_over
from hushcount.wire.tags import MOST_PLACES, TAG_BYTES
from shuffler.separate import CLAIM

DAYS = (10**8, 10**9, 10**10)
"""Numbers of reports in a day."""
CORES = 4
MEMORY_GIB = 15.0
"""Cores and memory of a worker: those of c3-standard-4, a machine type with AVX-512 IFMA."""
HOURS = 2.0
"""The time in which a day's reports must be done."""
EARLIER = 3
"""Number of earlier batches that a batch is compared with: the shuffler reads them again, and groups their tags.

With windows of a day and a grace of two days, as in all deployment files here, there are three such batches.
"""
EARLIER_SHARE = 1 / 3
"""CPU time of a report of an earlier batch, as a share of the time of a report of the batch itself.

A report of an earlier batch is read, checked and tagged. In jobs with three times as many earlier reports, 0.23 was
measured.
"""
COPIES = 4
"""Peak memory of `MixShard` for a place, in multiples of the place's own records; tags of earlier batches included.

It was measured with an engine that keeps the blocks that it hands over. The memory holds the place's records, the tags,
the records joined, and the records in their new order: 555 bytes for a frequency report, 782 for a discovery report.
`CountOnce` of the auxiliary server needs less for a discovery report: 704 bytes if no two pairs are equal.
"""

BEGIN = "<!-- The table is written by python -m benchmarks.scaling, from benchmarks/results.json. -->"
END = "<!-- Here it ends. -->"
_MODE = 0o644
_GIB, _MIB = 2**30, 2**20


@dataclass(frozen=True)
class Way:
    """The stages of a kind of report.

    Attributes:
        name: for people.
        then: the stage after the shuffler.
        sealed_bytes: length of a sealed report.
    """

    name: str
    then: str
    sealed_bytes: int

    @property
    def stored_bytes(self) -> int:
        """Bytes of a report in a collector's segment."""
        return envelope_dtype(self.sealed_bytes).itemsize

    @property
    def grouped_bytes(self) -> int:
        """Bytes for each report that an engine groups by key, in the shuffler (with earlier tags) and after it."""
        return self.sealed_bytes + CLAIM.itemsize + EARLIER * TAG_BYTES + SHUFFLED_BYTES[self.then]

    @property
    def most_reports(self) -> float:
        """The most reports of a window with room for one place of the shuffler for every core of a worker."""
        return MEMORY_GIB * _GIB / CORES / self.place_bytes(1)

    def place_bytes(self, reports: int) -> float:
        """Memory in bytes for one place of the shuffler, if the batch and each earlier batch have `reports` reports."""
        return COPIES * reports * self.sealed_bytes / MOST_PLACES

    def core_hours(self, measured: dict[str, Figures], reports: int) -> float:
        """CPU hours for `reports` reports, including the reading of earlier batches."""
        shuffled = measured["shuffle"].cpu_us_per_report * (1 + EARLIER * EARLIER_SHARE)
        return reports * (shuffled + measured[self.then].cpu_us_per_report) / 3.6e9


FREQUENCY = Way("frequency", "analyze", 148)
"""Reports of 100 plain bytes."""
DISCOVERY = Way("discovery", "discover", 226)
"""Values of at most 64 bytes."""


def scaling(measured: dict[str, Figures]) -> str:
    """Return the table: the cost of a day's reports, and the number of reports above which a place does not fit."""
    rows = []
    for way in (FREQUENCY, DISCOVERY):
        for reports in DAYS:
            core_hours = way.core_hours(measured, reports)
            workers = math.ceil(core_hours / CORES / HOURS)
            grouped = reports * way.grouped_bytes / _GIB
            rows.append(
                (
                    f"10^{round(math.log10(reports))}",
                    way.name,
                    f"{core_hours:,.1f}",
                    f"{workers} x {core_hours / CORES / workers:.1f}",
                    f"{reports * way.stored_bytes / _GIB:,.0f}",
                    f"{grouped:,.0f}",
                    f"{core_hours * CORE_HOUR:,.2f} + {grouped * SHUFFLED_GIB:,.2f}",
                    f"{way.place_bytes(reports) / _MIB:,.0f}",
                )
            )
    heads = (
        "a day", "reports", "core-hours", "workers x hours", "stored, GiB", "grouped, GiB", "cores + grouping, $",
        "memory of a place, MiB",
    )  # fmt: skip
    most = " and ".join(f"{way.most_reports / 1e9:.1f} x 10^9 {way.name} reports" for way in (FREQUENCY, DISCOVERY))
    return (
        f"{table(heads, rows)}\n\n"
        f"A worker has {CORES} cores, all busy, and {MEMORY_GIB:g} GiB; the workers are enough to finish a day in "
        f"{HOURS:g} hours. Each day is compared with the {EARLIER} days before it, which have as many reports: windows "
        "are of a day and grace of two days, as in all deployment files here. The shuffler reads the earlier reports "
        f"again and groups their tags, {TAG_BYTES} bytes each. An earlier report counts as {EARLIER_SHARE:.2f} of the "
        "CPU time of a report of the day. Core-hours, grouped bytes and memory include the earlier reports. The first "
        f"bottleneck is the memory of a place, which is {COPIES} times the place's own records; there are at most "
        f"{MOST_PLACES:,} places. Every core of a worker has room for one place up to {most} in a window."
    )


def with_table(text: str, made: str) -> str:
    """Return a page with a new table between its marks.

    Raises:
        ValueError: a mark is missing.
    """
    before, begun, rest = text.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not begun or not ended:
        raise ValueError(f"a mark is missing: the table goes between {BEGIN!r} and {END!r}")
    return f"{before}{BEGIN}\n\n{made}\n\n{END}{after}"


def main() -> None:
    root = Path(__file__).parents[1]
    target = root / "docs" / "scaling.md"
    made = scaling(stored_record(root / "benchmarks").measured)
    write_over(target, with_table(target.read_text(), made), _MODE)


if __name__ == "__main__":
    main()
