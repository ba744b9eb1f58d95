"""The table of docs/scaling.md, from the measured CPU time: `python -m benchmarks.scaling` writes it.

On paper, as `benchmarks.cost` is: no cluster of this size was run.
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
"""Reports of a day."""
CORES = 4
MEMORY_GIB = 15.0
"""Of a worker: those of c3-standard-4, whose processor has AVX-512 IFMA."""
HOURS = 2.0
"""In which a day's reports are to be done."""
EARLIER = 3
"""Batches that a batch is compared with, which the shuffler reads once more, and groups the tags of.

They are those of windows of a day within two days of grace, as in all deployment files here.
"""
EARLIER_SHARE = 1 / 3
"""CPU time of a report of an earlier batch, as a share of that of one of its own.

It is read, checked and tagged: 0.23 was measured, of jobs that were compared with three times their own reports.
"""
COPIES = 4
"""How many times its own records `MixShard` holds for a place at its peak, with the tags of the earlier batches.

It is as measured where an engine holds the blocks that it gives: its own, the tags, and its own once more joined and
once in their new order: 555 bytes for a frequency report, 782 for a discovery report. `CountOnce` of the auxiliary
server holds less of a discovery report: 704 bytes where no two pairs are equal.
"""

BEGIN = "<!-- The table is written by python -m benchmarks.scaling, from benchmarks/results.json. -->"
END = "<!-- Here it ends. -->"
_MODE = 0o644
_GIB, _MIB = 2**30, 2**20


@dataclass(frozen=True)
class Way:
    """What a kind of report goes through.

    Attributes:
        name: for people.
        then: the stage after the shuffler.
        sealed_bytes: of a report.
    """

    name: str
    then: str
    sealed_bytes: int

    @property
    def stored_bytes(self) -> int:
        """As a collector keeps it."""
        return envelope_dtype(self.sealed_bytes).itemsize

    @property
    def grouped_bytes(self) -> int:
        """That an engine groups by key, by the shuffler, with tags of earlier batches, and by the stage after it."""
        return self.sealed_bytes + CLAIM.itemsize + EARLIER * TAG_BYTES + SHUFFLED_BYTES[self.then]

    @property
    def most_reports(self) -> float:
        """Of a window, for which every core of a worker can hold a place of the shuffler at a time."""
        return MEMORY_GIB * _GIB / CORES / self.place_bytes(1)

    def place_bytes(self, reports: int) -> float:
        """Memory for one place of the shuffler, of so many reports, and of as many in each earlier batch."""
        return COPIES * reports * self.sealed_bytes / MOST_PLACES

    def core_hours(self, measured: dict[str, Figures], reports: int) -> float:
        """CPU time of so many reports, and of reading those of earlier batches."""
        shuffled = measured["shuffle"].cpu_us_per_report * (1 + EARLIER * EARLIER_SHARE)
        return reports * (shuffled + measured[self.then].cpu_us_per_report) / 3.6e9


FREQUENCY = Way("frequency", "analyze", 148)
"""Reports of 100 plain bytes."""
DISCOVERY = Way("discovery", "discover", 226)
"""Values of at most 64 bytes."""


def scaling(measured: dict[str, Figures]) -> str:
    """Return the table: what a day's reports take, and from how many on a place does not fit."""
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
        f"A worker has {CORES} cores, all busy, and {MEMORY_GIB:g} GiB; there are as many as finish a day in {HOURS:g} "
        f"hours. Each day is compared with the {EARLIER} before it, of as many reports: windows of a day within two "
        "days of grace, as in all deployment files here. The shuffler reads them once more and groups their tags, "
        f"{TAG_BYTES} bytes each; one is reckoned at {EARLIER_SHARE:.2f} of the CPU time of a report of the day. "
        "Core-hours, grouped bytes and memory include that. The first bottleneck is the memory of a place, "
        f"{COPIES} times its own records, spread over {MOST_PLACES:,} places at most: every core of a worker has room "
        f"for one up to {most} in a window."
    )


def with_table(text: str, made: str) -> str:
    """Return a page with another table between its marks.

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
