"""What runs and is compared with theory, papers or limits: simulate, reproduce and bench."""

from __future__ import annotations

import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from typer import Argument, Option

from hushcount.errors import UsageError
from pipelines.console import options
from pipelines.console.answer import Answer, note, progress_console
from pipelines.console.tables import Table, facts

if TYPE_CHECKING:
    from benchmarks.measure import Figures
    from benchmarks.peers import PeerRow
    from benchmarks.record import Record

_FILE_MODE = 0o644
_PEER_REPORTS, _PEER_ITEMS, _PEER_EPSILON, _PEER_REPEATS = 100_000, 1000, 1.0, 3


def simulate(
    mechanism: Annotated[str, Option(help="Name of the mechanism; a wrong one lists all.")],
    epsilon: Annotated[float, Option(help="Local budget of one report.")],
    values: Annotated[Path, Option(help="One value a line, text or .gz; or .csv with item and count.")],
    dictionary: Annotated[Path | None, Option(help="Known items, one a line.", show_default="those that occur")] = None,
    runs: Annotated[int, Option(help="Number of collections.", max=1_000_000)] = 10,
    seed: Annotated[int | None, Option(help="Only to repeat a simulation.", min=0, max=options.MOST_SEED)] = None,
    set_: options.Settings = None,
) -> Answer:
    """Use it to see the errors of a mechanism on your own values before you collect.

    Example: hushcount simulate --mechanism ais --epsilon 1 --values words.txt --runs 100
    """
    from pipelines.jobs.simulate import simulate_values

    settings, objective = options.parse_settings(set_)
    with _bars(transient=True) as bars:
        result = simulate_values(
            mechanism,
            epsilon,
            values,
            dictionary=dictionary,
            runs=runs,
            seed=seed,
            settings=settings,
            objective=objective,
            track=lambda parts, total: bars.track(parts, total, description="simulate"),
        )
    if result.other:
        note(f"{result.other:,} values are not in the dictionary and count as 'other'")
    return Answer(result.as_dict(), [facts(f"{mechanism}, {result.runs} runs", result.as_dict())])


def reproduce(
    figures: Annotated[list[str] | None, Argument(help="Figures; a wrong name lists them.", show_default="all")] = None,
    out: Annotated[Path, Option(help="Directory for tables, plots, verdicts and README.md.")] = Path("reproduced"),
    quick: Annotated[bool, Option("--quick", help="Few runs and points, for a first look.")] = False,
    data: Annotated[Path | None, Option(help="Directory of data files that are not shipped.")] = None,
    runs: Annotated[int | None, Option(help="Collections of a point.", show_default="as in the papers", min=1)] = None,
    seed: Annotated[int, Option(help="Seed of data and simulations.", min=0, max=options.MOST_SEED)] = 1,
    overwrite: options.Overwrite = False,
) -> Answer:
    """Use it to check this code against the papers. It keeps finished figures; the next run resumes a killed one.

    Exit status 1: a figure is not reproduced; 2: data are missing.

    Example: hushcount reproduce p26-fig1 j-fig8 --out reproduced --quick
    """
    # They take a second to import.
    from experiments.run import Options
    from experiments.run import reproduce as run
    from pipelines.console.pictures import require_pictures

    require_pictures("reproduce")
    with _bars() as bars:
        tasks: dict[str, TaskID] = {}

        def track(name: str, done: int, total: int) -> None:
            if name not in tasks:
                tasks[name] = bars.add_task(name, total=total)
            bars.update(tasks[name], completed=done)

        outcomes = run(figures or [], Options(out, data, runs, seed, quick, overwrite), track)
    rows, data_of, status = [], [], 0
    for outcome in outcomes:
        if (record := outcome.record) is None:
            status = 2
            data_of.append({"figure": outcome.figure, "reason": outcome.reason, "state": outcome.state})
            rows.append((outcome.figure, "not run: data missing", "", outcome.reason))
        else:
            status = max(status, int(not record["reproduced"]))
            data_of.append({**record, "state": outcome.state})
            answers = ["yes" if record[key] else "no" for key in ("reproduced", "as_printed")]
            rows.append((outcome.figure, *answers, record["sentence"]))
    heads = ("figure", "reproduced", "as printed", "what came out")
    table = Table("reproduced", heads, rows, words=("reproduced", "what came out"))
    return Answer(data_of, [table, f"  written to {out}"], status=status)


def _bars(*, transient: bool = False) -> Progress:
    columns = (TextColumn("{task.description:<11}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=progress_console(), transient=transient)


def bench(
    stages: Annotated[list[str] | None, Argument(help="Stages; a wrong name lists them.", show_default="all")] = None,
    reports: Annotated[int | None, Option(help="Reports of each run.", show_default="by stage", min=1000)] = None,
    repeats: Annotated[int, Option(help="Runs of each stage.", min=1)] = 3,
    growth: Annotated[bool, Option("--growth", help="Also measure how cost grows; takes 15 minutes.")] = False,
    peers: Annotated[bool, Option("--peers", help="Also measure other libraries, in a temporary environment.")] = False,
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
    from benchmarks.stages import BY_DEFAULT, STAGES
    from pipelines.console.pictures import require_pictures

    if gate:
        stages, reports, repeats = list(gates.GATES), reports or gates.REPORTS, 1
    unknown = [name for name in stages or () if name not in STAGES]
    if unknown:
        raise UsageError(f"stage is {unknown[0]!r}, must be one of {', '.join(STAGES)}")
    if out is not None:
        require_writable(out)
    record = Record() if out is None or overwrite else read_record(out)
    if out is not None and (growth or record.curves):
        require_pictures("bench with --growth and --out")
    for name in stages or [name for name in BY_DEFAULT if name not in record.measured]:
        _say(f"{name}, its input")
        with prepared(name, reports or STAGES[name].reports, STAGES[name].items) as run:
            runs = []
            for number in range(repeats):
                _say(f"{name}, run {number + 1} of {repeats}")
                runs.append(run())
        record.measured[name] = summarise(runs)
        _keep(out, record)
    shown = {name: record.measured[name] for name in stages or BY_DEFAULT}
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

    heads = (
        "stage",
        "reports",
        "reports/s",
        "CPU us",
        "limit/s",
        "ratio",
        "CPU ratio",
        "s with start",
        "peak MiB",
        "to reach",
    )
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
            f"{figures.cpu_ratio_to_limit:.2f}" if limited else "",
            f"{figures.seconds_with_start:.1f}",
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
