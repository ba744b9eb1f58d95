"""hushcount demo: run all parties on example data, and show what each party did, saw and could not see."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from rich.console import Console
from rich.text import Text
from typer import Option

from hushcount.errors import UsageError
from pipelines.commands.demo.scenes import GLOSSARY, NOISE, NOISE_GLOSSARY, SCENES
from pipelines.console import options
from pipelines.console.answer import out_console, show_json

Hash = Literal["keyed", "oblivious"]


def demo(
    out: Annotated[Path, Option(help="Output directory.")],
    data: Annotated[Path | None, Option(help="Directory of the example data.", show_default="the checkout's")] = None,
    hash_: Annotated[
        Hash, Option("--hash", help="How clients name values for discovery; oblivious adds an evaluator.")
    ] = "keyed",
    noise: Annotated[
        bool, Option("--noise", help="Play one scene, in which shuffler and auxiliary server add the noise.")
    ] = False,
    overwrite: options.Overwrite = False,
    as_json: options.Json = False,
) -> None:
    """Use it to see all of Hushcount at work: it compares estimates with the truth, and writes pages of results.

    Example: hushcount demo --out demo-output
    """
    # Imported only here, because these imports are slow, and --help must be fast.
    if noise:
        from pipelines.commands.demo.noise import play
    else:
        from pipelines.commands.demo.play import play
    from pipelines.commands.demo.told import tell_glossary
    from pipelines.files import storage
    from pipelines.outputs.staging import SUMMARY, staged

    if noise and hash_ == "oblivious":
        raise UsageError("--hash names values for discovery, which the scene of --noise has not: leave one of them out")
    scenes, words = ((NOISE,), NOISE_GLOSSARY) if noise else (SCENES, GLOSSARY)
    source = data or Path(__file__).parents[3] / "examples" / "data"
    for name in (name for scene in scenes for name in scene.files):
        if not (source / name).exists():
            raise UsageError(f"example file {source / name} is missing: run in a checkout, or give --data DIR")
    results: dict[str, Any] = {"hop": "demo"}
    console = Console(quiet=True) if as_json else out_console()
    with staged(str(out), overwrite) as directory:
        for scene in scenes:
            played = scene if scene.discovery is None else replace(scene, discovery={**scene.discovery, "hash": hash_})
            result = play(played, source, Path(directory) / scene.name, console)
            results[scene.name] = {**result, "page": str(out / scene.name / result["page"])}
        storage.write_json(storage.join(directory, SUMMARY), results)
    tell_glossary(console, words)
    pages = "page" if noise else f"pages, one of each of the {len(scenes)} collections"
    console.print(Text(f"\nResult {pages}:", "bold"))
    for scene in scenes:
        console.print(f"  {results[scene.name]['page']}", soft_wrap=True)
    if as_json:
        show_json(results)
