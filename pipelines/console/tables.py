"""Tables that fit any terminal: text wraps between words, and no number, window or date is ever cut."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rich import table
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from pipelines.console.charts import Bar

Cell = str | Text | Bar
_NUMBER = re.compile(r"\(?[-+~<]?[0-9][0-9,.e+-]*( ± [0-9][0-9,.]*)?( -?[0-9.]+%)?\)?( [*%+])?|")
_LONGEST_WORD = 26
"""Longest word that is never broken into two lines: a time with its zone fits, a long path or digest may not."""
_GAP = 2
_BARS = (6, 24)
"""The least and the greatest width of a column of bars."""


@dataclass(frozen=True)
class Table:
    """Rows under heads; if the terminal is too narrow, each row becomes a block with one line for each column.

    A column of bars takes the width that the other columns leave; it is left out if they leave too little.

    Attributes:
        title: text above the heads.
        heads: heads of the columns.
        rows: rows, each with a cell for each column.
        words: heads of the columns whose cells may wrap between words; in every other column, a cell is one line.
    """

    title: str
    heads: Sequence[str]
    rows: Iterable[Sequence[Cell]]
    words: Collection[str] = ()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self.title:
            yield Text(self.title, "bold")
        rows = [list(row) for row in self.rows]
        bars = {number for row in rows for number, cell in enumerate(row) if isinstance(cell, Bar)}
        room = options.max_width - _GAP * (len(self.heads) - 1)
        widths = _widths(*self._wanted(rows, bars), room)
        if widths is None and bars:
            heads = [head for number, head in enumerate(self.heads) if number not in bars]
            kept = [[cell for number, cell in enumerate(row) if number not in bars] for row in rows]
            yield Table("", heads, kept, self.words)
            return
        if widths is None:
            yield _blocks(self.heads, [[_text(cell) for cell in row] for row in rows])
            return
        drawn = [[_text(cell, width) for cell, width in zip(row, widths, strict=True)] for row in rows]
        grid = table.Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
        for number, (head, width) in enumerate(zip(self.heads, widths, strict=True)):
            numbers = number not in bars and all(_NUMBER.fullmatch(row[number].plain) for row in drawn)
            grid.add_column(Text(head), width=width, overflow="fold", justify="right" if numbers else "left")
        for row in drawn:
            grid.add_row(*row)
        yield grid

    def _wanted(self, rows: Sequence[Sequence[Cell]], bars: Collection[int]) -> tuple[list[int], list[int]]:
        """Return the least and the greatest width of each column."""
        least, most = [], []
        for number, head in enumerate(self.heads):
            cells = [head, *(_text(row[number]).plain for row in rows)]
            widest = max(map(cell_len, cells))
            least.append(
                _BARS[0] if number in bars else max(map(_longest_word, cells)) if head in self.words else widest
            )
            most.append(_BARS[1] if number in bars else widest)
        return least, most


def facts(title: str, values: Mapping[str, Any]) -> RenderableType:
    """Return names and values under a title, one line for each name with its value."""
    return Group(
        Text(title, "bold", end="\n" if title else ""),
        _blocks([name.replace("_", " ") for name in values], [[Text(_of_fact(value)) for value in values.values()]]),
    )


def by_reason(numbers: Mapping[str, int]) -> str:
    """Return the numbers of several reasons as the text of one cell."""
    return ", ".join(f"{reason} {number:,}" for reason, number in numbers.items()) or "none"


def stamp(moment: datetime) -> str:
    """Return a time as text for tables and for the beginning of a line."""
    return f"{moment:%Y-%m-%d %H:%M:%SZ}"


def _widths(least: Sequence[int], most: Sequence[int], room: int) -> list[int] | None:
    """Return the widths of columns; spare width is given first to the columns that lack the fewest characters."""
    left = room - sum(least)
    if left < 0:
        return None
    widths = list(least)
    order = sorted(range(len(least)), key=lambda number: most[number] - least[number])
    for done, number in enumerate(order):
        wider = min(left // (len(order) - done), most[number] - least[number])
        widths[number] += wider
        left -= wider
    return widths


def _longest_word(text: str) -> int:
    return min(_LONGEST_WORD, max(map(cell_len, text.split()), default=0))


def _text(cell: Cell, width: int = _BARS[1]) -> Text:
    if isinstance(cell, Bar):
        return Text(cell.drawn(width))
    return Text(cell) if isinstance(cell, str) else cell


def _of_fact(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}={part}" for name, part in value.items()) or "none"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _blocks(heads: Sequence[str], rows: Sequence[Sequence[Text]]) -> RenderableType:
    """Return one line for each non-empty cell of each row, with an empty line between rows."""
    grid = table.Table(table.Column(no_wrap=True), table.Column(overflow="fold"), box=None, show_header=False)
    for number, row in enumerate(rows):
        if number:
            grid.add_row()
        for head, cell in zip(heads, row, strict=True):
            if cell.plain:
                grid.add_row(Text(head, style="bold"), cell)
    return grid
