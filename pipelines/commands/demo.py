"""hushcount demo: the whole system on real input."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pipelines.console.command_table import new_app
from pipelines.console.common import JsonOption, OverwriteOption, out_console, progress_console, reported

app = new_app()


@app.command("demo")
@reported
def demo(
    out: Annotated[Path, typer.Option(help="Output directory.")],
    data: Annotated[Path | None, typer.Option(help="Directory of the example data.")] = None,
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run the whole system on real input and show what each party did, saw and could not see.

    Example: hushcount demo --out demo-output
    """
    from pipelines.demo import demo as run

    run(out, data, overwrite, out_console(), progress_console(), as_json)
