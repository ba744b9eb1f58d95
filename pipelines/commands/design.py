"""hushcount design: the designs of the mechanism wss."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Option

from hushcount.designs import sources
from hushcount.designs.balanced import Design
from hushcount.designs.search import search_design as search
from hushcount.formats.whole_files import write_once
from pipelines.console import options
from pipelines.console.answer import Answer, note
from pipelines.console.tables import Table


def list_designs() -> Answer:
    """Use it to see which wss campaigns this machine can take part in. Designs of prime widths need no file.

    Example: hushcount design list
    """
    shipped = [design for width in sources.shipped_widths() for design in sources.shipped_designs(width)]
    found = [_design_facts(design, "package") for design in shipped]
    found += [_design_facts(design, str(sources.cache_path(design.name))) for design in sources.cached_designs()]
    rows = [
        (
            *(f"{one[name]:,}" for name in ("width", "size", "rows")),
            *(f"{one['imbalance']:.1g}", one["name"].rpartition("-")[2][:12], one["from"]),
        )
        for one in found
    ]
    heads = ("width", "size", "rows", "imbalance", "digest", "from")
    built = "  and without a file: every size of a prime width up to 1021, and sizes 1, 2 and width-1 of all widths"
    return Answer(found, [Table("designs", heads, rows, words=("from",)), built])


def search_design(
    width: Annotated[int, Option(help="Number of cells: at least the dictionary's items and 'other'.")],
    size: Annotated[int, Option(help="Cells of a row, best near width/(e^epsilon + 1).")],
    method: Annotated[Literal["cyclic", "paper"], Option(help="paper: same law, slow above 30 cells.")] = "cyclic",
    seed: Annotated[int, Option(help="Seed of the blocks to try.", min=0, max=options.MOST_SEED)] = 0,
    out: Annotated[Path | None, Option(help="File to write.", show_default="the user's cache")] = None,
) -> Answer:
    """Use it once for a wss campaign without a design; then copy the file to the caches of the other machines.

    Example: hushcount design search --width 90 --size 24
    """
    started = time.monotonic()

    def say(sentence: str) -> None:
        note(f"{sentence}, {time.monotonic() - started:.1f} s so far")

    design = search(width, size, method, seed, say)
    if out is None:
        out = sources.store_design(design)
    else:
        write_once(out, "design", sources.file_text([design]))
    found = f"  {design.rows:,} rows, imbalance {design.imbalance:.1g}"
    return Answer(_design_facts(design, str(out)), [f"design {design.name}", found, f"  written to {out}"])


def _design_facts(design: Design, source: str) -> dict[str, Any]:
    return {
        "name": design.name,
        "width": design.width,
        "size": design.size,
        "rows": design.rows,
        "imbalance": design.imbalance,
        "from": source,
    }
