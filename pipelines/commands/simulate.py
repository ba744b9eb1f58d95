"""hushcount simulate: simulate collections of the user's own values, and compare the errors with theory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from typer import Option

from pipelines.console import options
from pipelines.console.answer import Answer, note, progress_console
from pipelines.console.tables import facts


def simulate(
    mechanism: Annotated[str, Option(help="Name of the mechanism; an unknown name lists all.")],
    epsilon: Annotated[float, Option(help="Local budget of one report.")],
    values: Annotated[Path, Option(help="One value a line, text or .gz; or .csv with item and count.")],
    dictionary: Annotated[Path | None, Option(help="Known items, one a line.", show_default="those that occur")] = None,
    runs: Annotated[int, Option(help="Number of collections.", max=1_000_000)] = 10,
    seed: Annotated[int | None, Option(help="Seed, to repeat a simulation.", min=0, max=options.MOST_SEED)] = None,
    set_: options.Settings = None,
) -> Answer:
    """Use it before you collect, to see a mechanism's errors on your own values.

    Example: hushcount simulate --mechanism ais --epsilon 1 --values words.txt --runs 100
    """
    from pipelines.jobs.simulate import simulate_values

    settings, objective = options.parse_settings(set_)
    columns = (TextColumn("{task.description:<11}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=progress_console(), transient=True) as bars:
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
    ratios = (
        "  l2 ratios: the measured l2 over its lower bound, and over the l2 that theory predicts; a ratio below 1 is "
        f"the chance of {result.runs:,} runs, and more --runs bring the second ratio closer to 1"
    )
    return Answer(result.as_dict(), [facts(f"{mechanism}, {result.runs} runs", result.as_dict()), ratios])
