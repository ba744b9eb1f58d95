"""hushcount simulate: how well a mechanism would do on given values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from hushcount.oracles.simulation import Losses
from pipelines.console.command_table import new_app
from pipelines.console.common import JsonOption, progress_console, reported, show_facts, show_json
from pipelines.console.mechanism_options import parse_settings
from pipelines.console.numbers import MOST_RUNS, MOST_SEED

app = new_app()


@app.command("simulate")
@reported
def simulate(
    mechanism: Annotated[str, typer.Option(help="Name of the mechanism; a wrong one lists all.")],
    epsilon: Annotated[float, typer.Option(help="Local budget of one report.")],
    values: Annotated[Path, typer.Option(help="One value a line, text or .gz; or .csv with item and count.")],
    dictionary: Annotated[
        Path | None, typer.Option(help="Known items, one a line; the values that occur, if not given.")
    ] = None,
    runs: Annotated[int, typer.Option(help="How many collections.", max=MOST_RUNS)] = 10,
    seed: Annotated[
        int | None, typer.Option(help="To repeat a simulation; never for real values.", min=0, max=MOST_SEED)
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="name=value: a parameter, objective, or target_share.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Encode, tally and estimate values again and again, in memory, and compare with prediction and lower bound.

    Example: hushcount simulate --mechanism ais --epsilon 1 --values words.txt --runs 100
    """
    from pipelines.jobs.simulate import simulate_values

    settings, objective = parse_settings(set_ or [])
    result = simulate_values(
        mechanism,
        epsilon,
        values,
        dictionary=dictionary,
        runs=runs,
        seed=seed,
        settings=settings,
        objective=objective,
        track=_progress,
    )
    if result.other:
        progress_console().print(f"{result.other:,} values are not in the dictionary and count as 'other'")
    if as_json:
        show_json(result.as_dict())
        return
    show_facts(f"{mechanism}, {result.runs} runs", result.as_dict())


def _progress(parts: Iterable[Losses], runs: int) -> Iterator[Losses]:
    columns = (TextColumn("simulate"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=progress_console(), transient=True) as progress:
        yield from progress.track(parts, total=runs)
