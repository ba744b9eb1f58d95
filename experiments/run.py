"""Run figures: skip those that are done, measure the others point by point, judge, draw, and write the overview."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from experiments.catalogue import figures
from experiments.figure import Figure, Settings
from experiments.figure_files import FILE_MODE, SAME, Folder, Unfinished
from experiments.judging import FAILURE, TOLERANCE, bounded, judge
from experiments.overview import overview
from experiments.plots import png
from experiments.rows import Row, as_csv
from experiments.sources import digest, locate, missing
from hushcount.errors import UsageError
from hushcount.formats.whole_files import write_over

_MOST_RUNS = 10_000
Track = Callable[[str, int, int], None]
"""A function that is told a figure's name, the number of its finished points, and the number of all its points."""


@dataclass(frozen=True)
class Options:
    """How figures are run.

    Attributes:
        out: directory for the results.
        data: directory of the data files, or None for those that the project ships.
        runs: collections of each simulated point; each figure's own number if None.
        seed: of data and simulations.
        quick: few runs and points.
        overwrite: whether finished figures run again.
    """

    out: Path
    data: Path | None = None
    runs: int | None = None
    seed: int = 1
    quick: bool = False
    overwrite: bool = False


@dataclass(frozen=True)
class Outcome:
    """What became of a figure.

    Attributes:
        figure: its name.
        state: "run", "kept" from before, or "missing" data.
        record: what its .json holds; None where data are missing.
        reason: which data are missing.
    """

    figure: str
    state: Literal["run", "kept", "missing"]
    record: dict[str, Any] | None
    reason: str = ""


def reproduce(names: Sequence[str], options: Options, track: Track = lambda name, done, total: None) -> list[Outcome]:
    """Run the named figures, or all if none is named.

    Returns:
        One outcome for each figure. Data may be missing only if no figure was named.

    Raises:
        UsageError: a name is unknown, runs is out of its range, or data of a named figure are missing. No figure was
            run then.
    """
    wanted = figures(names)
    if options.runs is not None and options.runs < 2:
        raise UsageError(f"runs is {options.runs}, must be at least 2 to know how much runs differ")
    lacking = {figure.name: reason for figure in wanted if (reason := _lacks(figure, options))}
    if names and lacking:
        name, reason = next(iter(lacking.items()))
        raise UsageError(f"{name}: {reason}")
    if options.runs is not None and options.runs > _MOST_RUNS:
        raise UsageError(
            f"runs is {options.runs:,}, must be in 2..{_MOST_RUNS:,}: with the papers' numbers of runs all figures "
            "take an hour, and the time grows with the runs"
        )
    folder = Folder.of(options.out)
    folder.files.mkdir(parents=True, exist_ok=True)
    outcomes = []
    for figure in wanted:
        if figure.name in lacking:
            outcomes.append(Outcome(figure.name, "missing", None, lacking[figure.name]))
        else:
            outcomes.append(_one(figure, options, folder, track))
        write_over(folder.readme, overview(folder, lacking), FILE_MODE)
    return outcomes


def _lacks(figure: Figure, options: Options) -> str:
    return next((missing(source) for source in figure.sources if locate(source, options.data) is None), "")


def _one(figure: Figure, options: Options, folder: Folder, track: Track) -> Outcome:
    files = {source: path for source in figure.sources if (path := locate(source, options.data)) is not None}
    runs = (
        (figure.quick_runs if options.quick else figure.runs)
        if options.runs is None or not figure.runs
        else options.runs
    )
    wanted: dict[str, Any] = {
        "figure": figure.name,
        "version": figure.version,
        "runs": runs,
        "seed": options.seed,
        "quick": options.quick,
        "data": {path.name: digest(path) for path in files.values()},
    }
    kept = folder.record(figure.name)
    if kept is not None and not options.overwrite and all(kept.get(name) == wanted[name] for name in SAME):
        return Outcome(figure.name, "kept", kept)
    unfinished = Unfinished.of(folder, wanted)
    rows = _measure(figure, Settings(runs, options.seed, options.quick, files), unfinished, track)
    record = {**wanted, **_judged(figure, rows)}
    folder.write(record, as_csv(rows), png(figure, rows))
    unfinished.drop()
    return Outcome(figure.name, "run", record)


def _measure(figure: Figure, settings: Settings, unfinished: Unfinished, track: Track) -> list[Row]:
    points = figure.points(settings)
    rows: list[Row] = []
    for done, point in enumerate(points):
        track(figure.name, done, len(points))
        found = unfinished.read(point.name)
        if found is None:
            found = point.measure()
            unfinished.keep(point.name, found)
        rows.extend(found)
    track(figure.name, len(points), len(points))
    return bounded(rows)


def _judged(figure: Figure, rows: Sequence[Row]) -> dict[str, Any]:
    claims = figure.claims(rows)
    verdict = judge(rows, claims)
    return {
        "title": figure.title,
        "reproduced": verdict.reproduced,
        "as_printed": verdict.as_printed,
        "sentence": f"{figure.tell(rows)} {verdict.sentence}",
        "claims": [asdict(claim) for claim in claims],
        "inside": verdict.inside,
        "tested": verdict.tested,
        "failure_probability": FAILURE,
        "tolerance": TOLERANCE,
    }
