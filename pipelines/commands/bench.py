"""hushcount bench: what each stage costs on this machine, beside its limit in the same run."""

from __future__ import annotations

import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from hushcount.errors import UsageError
from pipelines.console.answer import Answer, note
from pipelines.console.tables import Table

if TYPE_CHECKING:
    from benchmarks.measure import Figures
    from benchmarks.peers import PeerRow
    from benchmarks.record import Record

_FILE_MODE = 0o644
_PEER_REPORTS, _PEER_ITEMS, _PEER_EPSILON, _PEER_REPEATS = 100_000, 1000, 1.0, 3


def bench(
    stages: Annotated[list[str] | None, Argument(help="Stages; a wrong name lists them.", show_default="all")] = None,
    reports: Annotated[int | None, Option(help="Reports of each run.", show_default="by stage", min=1000)] = None,
    repeats: Annotated[int, Option(help="Runs of each stage.", min=1)] = 3,
    growth: Annotated[bool, Option("--growth", help="Also measure how cost grows; takes half an hour.")] = False,
    peers: Annotated[
        bool, Option("--peers", help="Also measure other libraries, from pip, in a temporary place.")
    ] = False,
    gate: Annotated[bool, Option("--gate", help="Only the gated stages, once; exit status 1 beyond a gate.")] = False,
    out: Annotated[Path | None, Option(help="Directory for RESULTS.md, its plot and results.json.")] = None,
    overwrite: Annotated[bool, Option("--overwrite", help="Measure everything again.")] = False,
) -> Answer:
    """Use it to size a machine or to see a change of speed. Each stage runs in its own process.

    It keeps what results.json in --out holds, and measures the rest and the stages that you name.

    Example: hushcount bench shuffle analyze --reports 500000
    """
    for name, value, most, cost in (
        ("reports", reports, 10**8, "so many take hours and tens of gigabytes of disk"),
        ("repeats", repeats, 1000, "each of all stages takes minutes"),
    ):
        if value is not None and value > most:
            raise UsageError(f"{name} is {value:,}, must be at most {most:,}: {cost}")
    # They import the whole system.
    from benchmarks import gates
    from benchmarks.growth import SWEEPS, grow, merged
    from benchmarks.measure import prepared, summarise
    from benchmarks.record import Record, read_record, require_writable
    from benchmarks.stages import STAGES

    if gate:
        stages, reports, repeats = list(gates.GATES), reports or gates.REPORTS, 1
    unknown = [name for name in stages or () if name not in STAGES]
    if unknown:
        raise UsageError(f"stage is {unknown[0]!r}, must be one of {', '.join(STAGES)}")
    if out is not None:
        require_writable(out)
    record = Record() if out is None or overwrite else read_record(out)
    for name in stages or [name for name in STAGES if name not in record.measured]:
        _say(f"{name}, its input")
        with prepared(name, reports or STAGES[name].reports, STAGES[name].items) as run:
            runs = []
            for number in range(repeats):
                _say(f"{name}, run {number + 1} of {repeats}")
                runs.append(run())
        record.measured[name] = summarise(runs)
        _keep(out, record)
    shown = {name: record.measured[name] for name in stages or STAGES}
    for sweep in SWEEPS if growth else ():
        if sweep not in [curve.sweep for curve in record.curves]:
            record.curves = merged(record.curves, grow(_say, (sweep,)))
            _keep(out, record)
    if peers and not record.peers:
        record.peers = _peers()
        _keep(out, record)
    slow = gates.beyond(shown) if gate else []
    return Answer({name: _facts(figures) for name, figures in shown.items()}, [_table(shown)], "; ".join(slow))


def _say(line: str) -> None:
    note(line, "dim")


def _peers() -> list[PeerRow]:
    from benchmarks.peers import PeersMissing, compare

    with tempfile.TemporaryDirectory(prefix="hushcount-peers-") as scratch:
        try:
            return compare(Path(scratch), _PEER_REPORTS, _PEER_ITEMS, _PEER_EPSILON, _PEER_REPEATS, _say)
        except PeersMissing as missing:
            note(f"SKIPPED, peers were NOT measured: {missing}", "bold yellow")
            return []


def _facts(figures: Figures) -> dict[str, Any]:
    return {name: round(value, 4) if isinstance(value, float) else value for name, value in asdict(figures).items()}


def _table(measured: dict[str, Figures]) -> Table:
    from benchmarks.stages import STAGES

    heads = ("stage", "reports", "reports/s", "CPU us", "limit/s", "ratio", "us beyond", "peak MiB", "to reach")
    rows = []
    for name, figures in measured.items():
        limited = figures.limit_reports_per_second is not None
        row = (
            name,
            f"{figures.reports:,}",
            f"{figures.reports_per_second:,.0f}",
            f"{figures.cpu_us_per_report:.2f}",
            f"{figures.limit_reports_per_second:,.0f}" if limited else "",
            f"{figures.ratio_to_limit:.2f}" if limited else "",
            f"{figures.cpu_us_beyond_limit:+.2f}" if limited else "",
            f"{figures.peak_rss_mib:,.0f}",
            STAGES[name].target,
        )
        rows.append(row)
    return Table("", heads, rows, words=("to reach",))


def _keep(out: Path | None, record: Record) -> None:
    """Write what was measured so far, and its page."""
    from benchmarks.cost import costs
    from benchmarks.growth import plot
    from benchmarks.page import page
    from benchmarks.record import write_record
    from hushcount.formats.whole_files import write_over

    if out is None:
        return
    write_record(out, record)
    write_over(out / "RESULTS.md", page(record, costs(record.measured)), _FILE_MODE)
    if record.curves:
        write_over(out / "growth.png", plot(record.curves), _FILE_MODE)
