"""Plain sentences on the answers to questions on numbers: bins, quantiles and means."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from hushcount.questions.counted import Counted
from hushcount.questions.means import range_of
from pipelines.console.number_text import of_range
from pipelines.questions.breakdown import Breakdown, text_of
from pipelines.questions.changes import CONFIDENCE
from pipelines.questions.sources import Source


def of_numbers(source: Source) -> Iterator[str]:
    """Say which reports of numbers the bins at the ends have."""
    number = source.counted[0].campaign.number
    if number is not None:
        names = number.bins.names
        yield f'"{names[0]}" and "{names[-1]}" have all lower and all higher numbers; texts and NaN are in "other"'


def of_ends(results: Sequence[Counted]) -> Iterator[str]:
    """Say what counts of the item mean that clients of a mean hold in part."""
    parts = {one.campaign.number for one in results}
    for part in [part for part in parts if part is not None and part.mean]:
        low, high = part.edges
        yield (
            f"each client counts for {part.items[0]} by its place from {low} to {high}, so this is no share of "
            "clients: hushcount ask mean shows the mean"
        )


def of_means(source: Source, table: pa.Table) -> Iterator[str]:
    """Say what means, intervals and changes mean; `table`: one of `mean_table`."""
    yield from of_range(range_of(source.counted))
    changes = " and changes from window to window" if table["change"].null_count < table.num_rows else ""
    yield f"intervals{changes} {_together(table.num_rows)}"


def of_where(of: Breakdown) -> Iterator[str]:
    """Say which reports the rows are of."""
    if of.where:
        yield f"only reports with {text_of(of.where)} count"


def of_quantiles(table: pa.Table) -> Iterator[str]:
    """Say what quantiles and their intervals mean; `table`: one of `quantile_table`."""
    changed = any(table[name].null_count < table.num_rows for name in ("change_low_all", "change_high_all"))
    yield (
        'quantiles are of reports with a number, without "other"; intervals consist of whole bins, and'
        f"{' with changes from window to window ' if changed else ' '}{_together(table.num_rows)}"
    )
    if table["bin"].null_count:
        yield "unknown: the number of these numbers is not significantly above 0, so there may be none"


def of_cells(of: Breakdown, source: Source) -> Iterator[str]:
    """Say what the number of reports in a row counts, if private coordinates are asked for."""
    if of.is_of_cells(source.counted):
        yield "reports: with any coordinates on private axes, because those of one are only estimated"


def _together(rows: int) -> str:
    """Return how intervals of some rows hold."""
    all_rows = f" for all {rows:,} rows together" if rows > 1 else ""
    return f"hold{all_rows} with a probability of {100.0 * CONFIDENCE:.3g} %"
