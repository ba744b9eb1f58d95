"""hushcount bench: what each stage costs on this machine, beside its limit in the same run."""

from __future__ import annotations

import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hushcount.errors import HushcountError, UsageError
from pipelines.console.command_table import new_app
from pipelines.console.common import (
    JsonOption,
    out_console,
    progress_console,
    reported,
    show_json,
)
from pipelines.console.numbers import MOST_MEASURED, MOST_REPEATS, require_at_most
from pipelines.console.tables import show_table

if TYPE_CHECKING:
    from benchmarks.measure import Figures
    from benchmarks.peers import PeerRow
    from benchmarks.record import Record

app = new_app()

_FILE_MODE = 0o644
_PEER_REPORTS, _PEER_ITEMS, _PEER_EPSILON, _PEER_REPEATS = 100_000, 1000, 1.0, 3


@app.command("bench")
@reported
def bench(
    stages: Annotated[
        list[str] | None, typer.Argument(help="Names of stages; all if none; a wrong one lists them.")
    ] = None,
    reports: Annotated[
        int | None, typer.Option(help="Reports of each run; each stage's own number if none.", min=1000)
    ] = None,
    repeats: Annotated[int, typer.Option(help="Runs of each stage.", min=1)] = 3,
    growth: Annotated[bool, typer.Option("--growth", help="Also measure how cost grows: half an hour.")] = False,
    peers: Annotated[
        bool,
        typer.Option("--peers", help="Also measure other libraries, which pip installs in a throw-away environment."),
    ] = False,
    gate: Annotated[
        bool, typer.Option("--gate", help="Only the gated stages, once: exit status 1 beyond a gate.")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="Directory for RESULTS.md, its plot and results.json.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Measure all anew.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Measure stages, each in a process of its own, beside the cryptography alone.

    What results.json in --out holds is kept; what it lacks, and the stages that are named, is measured.

    Example: hushcount bench shuffle analyze --reports 500000
    """
    require_at_most("reports", reports, MOST_MEASURED, "so many take hours and tens of gigabytes of disk")
    require_at_most("repeats", repeats, MOST_REPEATS, "each of all stages takes minutes")
    # They import the whole system: only when they are to run.
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
    if as_json:
        show_json({name: _facts(figures) for name, figures in shown.items()})
    else:
        _show(shown)
    for sweep in SWEEPS if growth else ():
        if sweep not in [curve.sweep for curve in record.curves]:
            record.curves = merged(record.curves, grow(_say, (sweep,)))
            _keep(out, record)
    if peers and not record.peers:
        record.peers = _peers()
        _keep(out, record)
    slow = gates.beyond(shown) if gate else []
    if slow:
        raise HushcountError("; ".join(slow))


def _say(line: str) -> None:
    progress_console().print(line, style="dim", markup=False)


def _peers() -> list[PeerRow]:
    from benchmarks.peers import PeersMissing, compare

    with tempfile.TemporaryDirectory(prefix="hushcount-peers-") as scratch:
        try:
            return compare(Path(scratch), _PEER_REPORTS, _PEER_ITEMS, _PEER_EPSILON, _PEER_REPEATS, _say)
        except PeersMissing as missing:
            progress_console().print(f"SKIPPED, peers were NOT measured: {missing}", style="bold yellow", markup=False)
            return []


def _facts(figures: Figures) -> dict[str, Any]:
    return {name: round(value, 4) if isinstance(value, float) else value for name, value in asdict(figures).items()}


def _show(measured: dict[str, Figures]) -> None:
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
    show_table(out_console(), heads, rows, words=("to reach",))


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
