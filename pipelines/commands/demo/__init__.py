"""hushcount demo: run all parties on example data, and show what each party did, saw and could not see."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from rich.console import Console
from rich.text import Text
from typer import Option

from hushcount.errors import UsageError
from pipelines.commands.demo.scenes import GLOSSARY, SCENES
from pipelines.console import options
from pipelines.console.answer import out_console, show_json

Hash = Literal["keyed", "oblivious"]


def demo(
    out: Annotated[Path, Option(help="Output directory.")],
    data: Annotated[Path | None, Option(help="Directory of the example data.", show_default="the checkout's")] = None,
    hash_: Annotated[
        Hash, Option("--hash", help="How clients name values for discovery; oblivious adds an evaluator.")
    ] = "keyed",
    overwrite: options.Overwrite = False,
    as_json: options.Json = False,
) -> None:
    """Use it to see all of Hushcount at work: it compares estimates with the truth, and writes pages of results.

    Example: hushcount demo --out demo-output
    """
    # Imported only here, because these imports are slow, and --help must be fast.
    from pipelines.commands.demo.play import play
    from pipelines.commands.demo.told import tell_glossary
    from pipelines.files import storage
    from pipelines.outputs.staging import SUMMARY, staged

    source = data or Path(__file__).parents[3] / "examples" / "data"
    for name in (name for scene in SCENES for name in scene.files):
        if not (source / name).exists():
            raise UsageError(f"example file {source / name} is missing: run in a checkout, or give --data DIR")
    results: dict[str, Any] = {"hop": "demo"}
    console = Console(quiet=True) if as_json else out_console()
    with staged(str(out), overwrite) as directory:
        for scene in SCENES:
            played = scene if scene.discovery is None else replace(scene, discovery={**scene.discovery, "hash": hash_})
            results[scene.name] = play(played, source, Path(directory) / scene.name, console)
            results[scene.name]["page"] = str(out / scene.name / "results" / "report.html")
        storage.write_json(storage.join(directory, SUMMARY), results)
    tell_glossary(console, GLOSSARY)
    console.print(Text(f"\nResult pages, one of each of the {len(SCENES)} collections:", "bold"))
    for scene in SCENES:
        console.print(f"  {results[scene.name]['page']}", soft_wrap=True)
    if as_json:
        show_json(results)
