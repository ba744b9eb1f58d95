"""The answers of `hushcount ask`: all rows for machines, and a table of 80 columns and sentences for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from rich.console import RenderableType

from hushcount.errors import UsageError
from hushcount.questions.counted import Group, axes_of, parted
from pipelines.console.answer import Answer, Sentence, finite
from pipelines.deployment.settings import Deployment
from pipelines.files import storage
from pipelines.jobs.table_files import put_table, require_table
from pipelines.questions import answer_tables, sentences
from pipelines.questions.breakdown import WHOLE, Breakdown
from pipelines.questions.changes import CONFIDENCE, SCHEMA, by_chance, changed
from pipelines.questions.findings import verdict_of
from pipelines.questions.number_sentences import of_ends
from pipelines.questions.population import in_population, with_population
from pipelines.questions.selection import Chosen, counted_in_all, each_item, read_groups
from pipelines.questions.sides import Sides
from pipelines.questions.sources import Source, from_folders, from_store, in_zone
from pipelines.questions.spans import NEWEST, Span
from pipelines.questions.stratum_changes import StratumSides, stratum_changes, table_of
from pipelines.questions.stratum_shares import with_stratum_shares


def source_of(
    config: Path,
    campaigns: Sequence[str] | None,
    directories: Sequence[str] | None,
    span: Span = NEWEST,
    *,
    usual: int | None = 30,
) -> Source:
    """Return the source that options name: one campaign of a deployment, or result folders.

    Args:
        span: the windows that options choose.
        usual: number of newest windows of a store, if no option chooses windows; None: all.

    Raises:
        UsageError, NotYet: the options name several campaigns of a deployment, or both a window and folders; or for the
            same reasons as in `Span.of`, `from_store` and `from_folders`.
    """
    if directories:
        if span.is_named:
            raise UsageError(
                "--window, --from, --to and --month choose windows of a store, but --result gives folders: give one of "
                "the two"
            )
        return span.of(from_folders(campaigns, directories))
    if campaigns is not None and len(campaigns) != 1:
        raise UsageError(f"--campaign is {' and '.join(map(ascii, campaigns))}, must be one: ask compare takes two")
    last = None if span.is_named else span.last or usual
    return span.of(from_store(Deployment.read(config), None if campaigns is None else campaigns[0], last))


def require_free(out: str | None) -> None:
    """Raise UsageError, before any result is read, if the file of --out exists or cannot be written."""
    if out is not None:
        require_table(out)
        if storage.exists(out):
            raise UsageError(f"output {out} already exists: give another")


def answer(
    question: str,
    sources: Sequence[Source],
    table: pa.Table,
    people: Iterable[RenderableType],
    says: Sequence[str],
    out: str | None,
) -> Answer:
    """Return an answer, and write its table to `out`.

    Args:
        question: name of the command.
        table: all rows of the answer.
        people: parts that show the table to people.
        says: sentences on the errors of the answer.
    """
    if out is not None:
        put_table(out, table)
    if question != "mean":
        says = [*says, *of_ends([one for source in sources for one in source.counted])]
    says = [*says, *dict.fromkeys(one for source in sources for one in source.fits)]
    windows = list(dict.fromkeys(window for source in sources for window in source.windows))
    data: dict[str, Any] = {
        "question": question,
        "campaigns": list(dict.fromkeys(source.name for source in sources)),
        "windows": windows,
        "confidence": CONFIDENCE,
        "rows": finite(table.to_pylist()),
        "says": list(says),
    }
    return Answer(data, [*people, *map(Sentence, says)])


def extended(
    table: pa.Table,
    source: Source,
    groups: Sequence[Group],
    looks: int,
    of: Breakdown,
    population: int | None,
    *,
    named: bool,
) -> tuple[pa.Table, pa.Table, list[str]]:
    """Return the table of an answer, the same table for people, and sentences: as a breakdown and `--population` ask.

    Args:
        groups: those of the rows; a row of no group is of the item with its name.
        looks: rows that were looked at.
        named: whether the question named the rows.

    Raises:
        UsageError: the results are no sample of so many clients.
    """
    says = []
    # A group with the values that are not listed is all of its stratum.
    if of.is_of_cells(source.counted) and not any(group.others for group in groups):
        table = with_stratum_shares(table, source.counted, groups, looks, named=named)
        says.append(sentences.of_strata())
    if population is None:
        return table, table, says
    if any(part.where for part in parted(groups, source.counted)):
        raise UsageError("--population is of all clients, not of those with public coordinates: leave one of them out")
    table = with_population(table, source.counted, groups, population, looks)
    return table, in_population(table, population), [sentences.of_population(population), *says]


def groups_of(sources: Sequence[Source], chosen: Chosen, of: Breakdown = WHOLE) -> tuple[tuple[Group, ...], list[str]]:
    """Return the chosen groups with the items that all results counted, and sentences on the items left out.

    If the user chose no items, each item that all results counted is a group.

    Raises:
        UsageError: for the same reasons as in `read_groups`, `counted_in_all` and `each_item`.
    """
    results = [one for source in sources for one in source.counted]
    if chosen.is_nothing and chosen.separator is None:
        return of.groups(each_item(sources), results), []
    groups, lost = counted_in_all(read_groups(sources, chosen, together=False), results)
    return of.groups(groups, results), list(sentences.of_left_out(lost))


def difference(
    question: str, sides: Sides, chosen: Chosen, show: int, out: str | None, of: Breakdown = WHOLE
) -> Answer:
    """Return the changes between two sides as an answer, ordered as the user chose groups, or else by evidence.

    If the user chose no rows, the table has significant changes only; `out` and --json have all rows.
    """
    groups, left_out = groups_of(sides.sources, chosen, of)
    found = changed(sides.before.counted, sides.after.counted, groups)
    if not found:
        raise UsageError(
            "no stratum of these public coordinates has the minimum batch on both sides: ask for larger ones, or for "
            "other windows"
        )
    found = found if chosen.names else tuple(by_chance(found))
    seen = [one for one in found if chosen.names or verdict_of(one) != "not significant"]
    name = " and ".join(dict.fromkeys(one.heading for one in sides.sources))
    reports = [
        f"{max(many):,} reports" if len(many) == 1 else "reports"
        for many in ({one.reports_before for one in found}, {one.reports_after for one in found})
    ]
    name += f", {sides.windows}" if sides.windows else in_zone(sides.after.zone)
    title = f"{name}: shares of the {reports[0]} of {sides.names[0]} and the {reports[1]} of {sides.names[1]}"
    results = [one for source in sides.sources for one in source.counted]
    says = [
        *sentences.of_cut(show, len(seen)),
        *sentences.of_changes(found),
        *left_out,
        *of.words(results, groups),
        *sentences.of_results(results, sides.after.zone),
    ]
    table = pa.Table.from_pylist([vars(one) for one in found], SCHEMA)
    people = [answer_tables.differences(title, seen[:show], sides.heads)] if seen else [title]
    return answer(question, sides.sources, of.columns(table, groups, "group"), people, says, out)


def stratum_difference(source: Source, sides: StratumSides, chosen: Chosen, show: int, out: str | None) -> Answer:
    """Return the differences between two strata of the same windows as an answer; rows and order as in `difference`.

    UsageError: strata are compared on public and on private axes.
    """
    public = axes_of(source.counted, public=True)
    told = tuple(one for one in sides.both.where if one[0] in public)
    source = source.within(told)
    both = replace(sides.both, where=tuple(one for one in sides.both.where if one not in told))
    if {axis for axis, _ in sides.after} <= public:
        # Public strata have no report in common.
        there = [{place.directory for place in source.within(side).places} for side in (sides.before, sides.after)]
        windows = [place.window for place in source.places if all(place.directory in side for side in there)]
        shared = source.of(windows)
        parts = Sides(shared.within(sides.before), shared.within(sides.after), sides.names, sides.names)
        return difference("compare", parts, chosen, show, out, both)
    if mixed := public.intersection((*dict(sides.after), *both.by)):
        raise UsageError(
            f"axis {min(mixed)} is public, and private strata are compared: give one coordinate of it by --where"
        )
    sides = replace(sides, both=both)
    groups, left_out = groups_of([source], chosen, sides.both)
    found = stratum_changes(source.counted, groups, sides)
    found = found if chosen.names else tuple(sorted(found, key=lambda one: (one.p_value, one.group)))
    seen = [one for one in found if chosen.names or verdict_of(one) != "not significant"]
    title = f"{answer_tables.title_of(source)}: shares in {sides.names[0]} and in {sides.names[1]}"
    says = [
        *sentences.of_cut(show, len(seen)),
        *sentences.of_stratum_changes(found),
        *left_out,
        *sentences.of_results(source.counted, source.zone),
    ]
    people = [answer_tables.stratum_differences(title, seen[:show], sides.names)] if seen else [title]
    return answer("compare", [source], sides.both.columns(table_of(found), groups, "group"), people, says, out)
