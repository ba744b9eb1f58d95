"""hushcount reproduce: the papers' experiments on this code, measured beside predicted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from pipelines.console.command_table import new_app
from pipelines.console.common import JsonOption, OverwriteOption, out_console, progress_console, reported, show_json
from pipelines.console.numbers import MOST_SEED
from pipelines.console.tables import show_table

if TYPE_CHECKING:
    from experiments.run import Outcome, Track

app = new_app()


@app.command("reproduce")
@reported
def reproduce(
    figures: Annotated[
        list[str] | None, typer.Argument(help="Names of figures; all if none; a wrong one lists them.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Directory for tables, plots, verdicts and README.md.")] = Path(
        "reproduced"
    ),
    quick: Annotated[bool, typer.Option("--quick", help="Few runs and points, for a first look.")] = False,
    data: Annotated[Path | None, typer.Option(help="Directory of data files that are not shipped.")] = None,
    runs: Annotated[
        int | None,
        typer.Option(help="Collections of each simulated point; as in the papers if none.", min=1),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of data and simulations.", min=0, max=MOST_SEED)] = 1,
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run the papers' experiments and judge each. Finished figures are kept; a killed run goes on where it was.

    Example: hushcount reproduce p26-fig1 j-fig8 --out reproduced --quick
    """
    # They take a second to import: only when they are to run.
    from experiments.run import Options
    from experiments.run import reproduce as run

    options = Options(out, data, runs, seed, quick, overwrite)
    with _progress() as track:
        outcomes = run(figures or [], options, track)
    if as_json:
        show_json([_facts(outcome) for outcome in outcomes])
    else:
        _show(outcomes, out)
    status = _status(outcomes)
    if status:
        raise typer.Exit(status)


@contextmanager
def _progress() -> Iterator[Track]:
    """Show a bar of points for each figure on standard error."""
    columns = (TextColumn("{task.description:<11}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=progress_console()) as progress:
        tasks: dict[str, Any] = {}

        def track(name: str, done: int, total: int) -> None:
            if name not in tasks:
                tasks[name] = progress.add_task(name, total=total)
            progress.update(tasks[name], completed=done)

        yield track


def _facts(outcome: Outcome) -> dict[str, Any]:
    told = outcome.record if outcome.record is not None else {"figure": outcome.figure, "reason": outcome.reason}
    return {**told, "state": outcome.state}


def _show(outcomes: Sequence[Outcome], out: Path) -> None:
    console = out_console()
    rows = []
    for outcome in outcomes:
        if outcome.record is None:
            rows.append((outcome.figure, "not run: data missing", "", outcome.reason))
        else:
            answers = ["yes" if outcome.record[key] else "no" for key in ("reproduced", "as_printed")]
            rows.append((outcome.figure, *answers, outcome.record["sentence"]))
    heads = ("figure", "reproduced", "as printed", "what came out")
    show_table(console, heads, rows, title="reproduced", words=("reproduced", "what came out"))
    console.print()
    console.print(f"  written to {out}", markup=False, soft_wrap=True)


def _status(outcomes: Sequence[Outcome]) -> int:
    """Return 2 where data are missing, else 1 where a figure is not reproduced, else 0."""
    if any(outcome.record is None for outcome in outcomes):
        return 2
    return int(any(outcome.record is not None and not outcome.record["reproduced"] for outcome in outcomes))
