"""Tables of any terminal's width: words wrap between words, and no number, window or date is ever cut.

Where a table is too wide for that, each row becomes a block of lines, one for each column.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.table import Column, Table
from rich.text import Text

from hushcount.collection.windows import window_start

Cell = str | Text
_NUMBER = re.compile(r"[-+~<]?[0-9][0-9,.e+-]*( ± [0-9][0-9,.]*)?( -?[0-9.]+%)?( [*%])?|")
_LONGEST_WORD = 26
"""Cells: a time with its zone is whole; what is longer, such as a path or a digest, may be folded."""
_GAP = 2


def show_table(
    console: Console, heads: Sequence[str], rows: Iterable[Sequence[Cell]], *, title: str = "", words: Collection[str]
) -> None:
    """Print rows under their heads.

    Args:
        console: where.
        heads: of the columns.
        rows: a cell for each column.
        title: above them.
        words: heads of the columns whose cells may wrap between words; all others stay on one line.
    """
    held = [[_text(cell) for cell in row] for row in rows]
    cells = [[head, *(row[number].plain for row in held)] for number, head in enumerate(heads)]
    most = [max(map(cell_len, column)) for column in cells]
    least = [
        max(map(_longest_word, column)) if head in words else width
        for head, column, width in zip(heads, cells, most, strict=True)
    ]
    if title:
        console.print(Text(title, "bold"))
    widths = _widths(least, most, console.width - _GAP * (len(heads) - 1))
    if widths is None:
        console.print(_blocks(heads, held))
        return
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for head, column, width in zip(heads, cells, widths, strict=True):
        numbers = all(map(_NUMBER.fullmatch, column[1:]))
        table.add_column(Text(head), width=width, overflow="fold", justify="right" if numbers else "left")
    for row in held:
        table.add_row(*row)
    console.print(table)


def show_facts(console: Console, title: str, facts: Iterable[tuple[str, Cell]]) -> None:
    """Print names and values, a line each."""
    pairs = list(facts)
    if title:
        console.print(Text(title, "bold"))
    console.print(_blocks([name for name, _ in pairs], [[_text(value) for _, value in pairs]]))


def window_names(windows: Iterable[str]) -> dict[str, str]:
    """Return a short name of each window: its first day, or its first minute in UTC where they begin within days.

    A year stands only in the names of days: windows of hours are shown a few at a time.
    """
    starts = {name: window_start(name) for name in windows}
    days = all(start.hour == start.minute == start.second == 0 for start in starts.values())
    seconds = any(start.second for start in starts.values())
    form = "%Y-%m-%d" if days else "%m-%d %H:%M:%S" if seconds else "%m-%d %H:%M"
    return {name: start.strftime(form) for name, start in starts.items()}


def stamp(moment: datetime) -> str:
    """Return a time as it stands before a line and in tables."""
    return f"{moment:%Y-%m-%d %H:%M:%SZ}"


def _widths(least: Sequence[int], most: Sequence[int], room: int) -> list[int] | None:
    """Return the columns' widths: what is left over their least goes to those first that need the least of it."""
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


def _text(cell: Cell) -> Text:
    return Text(cell) if isinstance(cell, str) else cell


def _blocks(heads: Sequence[str], rows: Sequence[Sequence[Text]]) -> RenderableType:
    """Return a line for each column of each row, empty cells left out, and an empty line between rows."""
    grid = Table(Column(no_wrap=True), Column(overflow="fold"), box=None, show_header=False)
    for number, row in enumerate(rows):
        if number:
            grid.add_row()
        for head, cell in zip(heads, row, strict=True):
            if cell.plain:
                grid.add_row(Text(head, style="bold"), cell)
    return grid
