"""hushcount design: the balanced designs of the mechanism wss, found once and then only read."""

from __future__ import annotations

import time
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from hushcount.designs import sources
from hushcount.designs.balanced import Design
from hushcount.designs.search import search_design
from hushcount.errors import UsageError
from hushcount.formats.whole_files import write_new
from pipelines.console.command_table import new_app
from pipelines.console.common import JsonOption, out_console, progress_console, reported, show_json
from pipelines.console.numbers import MOST_SEED
from pipelines.console.tables import show_table

app = new_app("List and search the designs of the mechanism wss.")


class MethodName(str, Enum):
    """How to search."""

    cyclic = "cyclic"
    paper = "paper"


@app.command("list")
@reported
def list_designs(as_json: JsonOption = False) -> None:
    """Show the designs of this machine; those of prime widths and of 1, 2 or m-1 cells a row need no file.

    Example: hushcount design list
    """
    found = [
        _facts(design, "package") for width in sources.shipped_widths() for design in sources.shipped_designs(width)
    ]
    found += [_facts(design, str(sources.cache_path(design.name))) for design in sources.cached_designs()]
    if as_json:
        show_json(found)
        return
    rows = [
        (
            *(f"{facts[name]:,}" for name in ("width", "size", "rows")),
            *(f"{facts['imbalance']:.1g}", facts["name"].rpartition("-")[2][:12], facts["from"]),
        )
        for facts in found
    ]
    console = out_console()
    show_table(
        console, ("width", "size", "rows", "imbalance", "digest", "from"), rows, title="designs", words=("from",)
    )
    console.print()
    console.print(
        "  and without a file: every size of a prime width up to 1021, and sizes 1, 2 and width-1 of all",
        soft_wrap=True,
    )


@app.command("search")
@reported
def search(
    width: Annotated[int, typer.Option(help="Number of cells: the dictionary's items and 'other', or more.")],
    size: Annotated[int, typer.Option(help="Cells of a row, best near width/(e^epsilon + 1).")],
    method: Annotated[
        MethodName, typer.Option(help="cyclic; or paper, the same law by a search that is quick up to 30 cells.")
    ] = MethodName.cyclic,
    seed: Annotated[int, typer.Option(help="Of the blocks that are tried.", min=0, max=MOST_SEED)] = 0,
    out: Annotated[
        Path | None, typer.Option(help="File to write; the user's cache, where it is found, if none.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Find a design, check it and keep it in the user's cache; machines without it need a copy of the file there.

    Example: hushcount design search --width 90 --size 24
    """
    console = progress_console()
    started = time.monotonic()

    def told(sentence: str) -> None:
        console.print(f"{sentence}, {time.monotonic() - started:.1f} s so far", markup=False, soft_wrap=True)

    design = search_design(width, size, method.value, seed, told)
    path = sources.store_design(design) if out is None else _write(design, out)
    facts = _facts(design, str(path))
    if as_json:
        show_json(facts)
        return
    shown = out_console()
    shown.print(f"design {design.name}", markup=False, soft_wrap=True)
    shown.print(f"  {design.rows:,} rows, imbalance {design.imbalance:.1g}", markup=False, soft_wrap=True)
    shown.print(f"  written to {path}", markup=False, soft_wrap=True)


def _write(design: Design, path: Path) -> Path:
    try:
        write_new(path, sources.file_text([design]), 0o644)
    except FileExistsError:
        raise UsageError(f"{path} exists: give another name") from None
    return path


def _facts(design: Design, source: str) -> dict[str, Any]:
    return {
        "name": design.name,
        "width": design.width,
        "size": design.size,
        "rows": design.rows,
        "imbalance": design.imbalance,
        "from": source,
    }
