"""hushcount reproduce: the papers' experiments on this code, measured beside predicted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from typer import Argument, Option

from pipelines.console.answer import Answer, progress_console
from pipelines.console.options import MOST_SEED, OverwriteOption
from pipelines.console.tables import Table

if TYPE_CHECKING:
    from experiments.run import Outcome, Track


def reproduce(
    figures: Annotated[list[str] | None, Argument(help="Figures; a wrong name lists them.", show_default="all")] = None,
    out: Annotated[Path, Option(help="Directory for tables, plots, verdicts and README.md.")] = Path("reproduced"),
    quick: Annotated[bool, Option("--quick", help="Few runs and points, for a first look.")] = False,
    data: Annotated[Path | None, Option(help="Directory of data files that are not shipped.")] = None,
    runs: Annotated[int | None, Option(help="Collections of a point.", show_default="as in the papers", min=1)] = None,
    seed: Annotated[int, Option(help="Seed of data and simulations.", min=0, max=MOST_SEED)] = 1,
    overwrite: OverwriteOption = False,
) -> Answer:
    """Use it to check this code against the papers. It keeps finished figures; the next run resumes a killed one.

    Exit status 1: a figure is not reproduced; 2: data are missing.

    Example: hushcount reproduce p26-fig1 j-fig8 --out reproduced --quick
    """
    # They take a second to import.
    from experiments.run import Options
    from experiments.run import reproduce as run

    with _progress() as track:
        outcomes = run(figures or [], Options(out, data, runs, seed, quick, overwrite), track)
    rows, heads = [_row(outcome) for outcome in outcomes], ("figure", "reproduced", "as printed", "what came out")
    table = Table("reproduced", heads, rows, words=("reproduced", "what came out"))
    facts = [_facts(outcome) for outcome in outcomes]
    return Answer(facts, [table, f"  written to {out}"], status=max(map(_status, outcomes), default=0))


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


def _row(outcome: Outcome) -> tuple[str, ...]:
    if outcome.record is None:
        return outcome.figure, "not run: data missing", "", outcome.reason
    answers = ["yes" if outcome.record[key] else "no" for key in ("reproduced", "as_printed")]
    return outcome.figure, *answers, outcome.record["sentence"]


def _status(outcome: Outcome) -> int:
    """Return 2 if data are missing, else 1 if the figure is not reproduced, else 0."""
    return 2 if outcome.record is None else int(not outcome.record["reproduced"])
