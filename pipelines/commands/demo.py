"""hushcount demo: run all parties on real data, and show what each party did, saw and could not see."""

from __future__ import annotations

import math
import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from rich import table
from rich.console import Console
from rich.padding import Padding
from rich.text import Text
from typer import Option

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.dictionary import read_items
from hushcount.clock import MACHINE
from hushcount.errors import UsageError
from keys import directories
from pipelines.console import options
from pipelines.console.answer import out_console, progress_console, show, show_json
from pipelines.console.job_results import other_explained, sentences
from pipelines.console.tables import Table
from pipelines.jobs.results import ESTIMATES
from pipelines.jobs.table_files import read_csv_rows

if TYPE_CHECKING:
    from hushcount.discovery.count_laws import CountLaw
    from pipelines.handover.evaluator_address import Evaluator
    from pipelines.jobs.found import Found
    from pipelines.outputs.summary import HopSummary

Hash = Literal["keyed", "oblivious"]
_SHOWN = 12
_DISCOVERY = {"epsilon": 1.0, "delta": 1e-8, "max_value_bytes": 32, "counts": True}


@dataclass(frozen=True)
class Scene:
    """One collection of the demo; `values` and `dictionary` are files of the data directory."""

    name: str
    title: str
    values: str
    dictionary: str
    mechanism: str
    epsilon: float
    discovery: dict[str, Any] | None = None


_ADULT = "Education of 48,842 people (Adult census)"
_WORDS = "200,000 words typed, 20,000 known ones, the others to be discovered (Norvig's counts)"
SCENES = (
    Scene("adult", _ADULT, "education.txt.gz", "education_dictionary.txt", "ss", 1.0),
    Scene("words", _WORDS, "words.txt.gz", "words_dictionary.txt.gz", "ais", 4.0, _DISCOVERY),
)


def demo(
    out: Annotated[Path, Option(help="Output directory.")],
    data: Annotated[Path | None, Option(help="Directory of the example data.", show_default="the checkout's")] = None,
    hash_: Annotated[
        Hash, Option("--hash", help="How clients name words for discovery; oblivious adds an evaluator.")
    ] = "keyed",
    overwrite: options.Overwrite = False,
    as_json: options.Json = False,
) -> None:
    """Use it to see all of Hushcount at work: it compares estimates with the truth, and writes a page of results.

    Example: hushcount demo --out demo-output
    """
    from pipelines.files import storage
    from pipelines.outputs.staging import SUMMARY, staged

    source = data or Path(__file__).parents[2] / "examples" / "data"
    for scene in SCENES:
        for name in (scene.values, scene.dictionary):
            if not (source / name).exists():
                raise UsageError(f"example file {source / name} is missing: run in a checkout, or give --data DIR")
    results: dict[str, Any] = {"hop": "demo"}
    console = Console(quiet=True) if as_json else out_console()
    with staged(str(out), overwrite) as directory:
        for scene in SCENES:
            played = scene if scene.discovery is None else replace(scene, discovery={**scene.discovery, "hash": hash_})
            results[scene.name] = _play(played, source, Path(directory) / scene.name, out / scene.name, console)
        storage.write_json(storage.join(directory, SUMMARY), results)
    if as_json:
        show_json(results)


def _play(scene: Scene, source: Path, directory: Path, shown: Path, console: Console) -> dict[str, Any]:
    """Run one scene; `shown` is where the scene's files will be after the demo."""
    from pipelines.jobs.analyze import plan_analyze
    from pipelines.jobs.discover import plan_discover
    from pipelines.jobs.encode import plan_encode
    from pipelines.jobs.job import run
    from pipelines.jobs.shuffle import plan_shuffle

    began, progress = MACHINE.steady(), progress_console()
    console.rule(Text(scene.title, "bold"))
    keys, path = directory / "keys", directory / "campaign.json"
    evaluator = _make_campaign(scene, source, path, keys)
    campaign = Campaign.read(path)
    encoded, shuffled = str(directory / "encoded"), str(directory / "shuffled")
    values = list(read_items(source / scene.values))
    with tempfile.TemporaryDirectory(prefix="hushcount-demo-") as scratch:
        # Each value belongs to a different client.
        named = Path(scratch) / "values.txt"
        named.write_text("".join(f"{client}\t{value}\n" for client, value in enumerate(values)), encoding="utf-8")
        job = plan_encode(path, named, encoded, clients=True, evaluator=evaluator)
        _tell_clients(console, campaign, scene, run(job, console=progress))
    if evaluator is not None:
        _tell_evaluator(console, len(values))
    _tell_shuffler(console, campaign, run(plan_shuffle(path, encoded, shuffled), console=progress))
    truth, found = Counter(values), None
    result: dict[str, Any] = {}
    if scene.discovery is not None:
        found = directory / "found"
        discovered = run(plan_discover(path, shuffled, keys, str(found), evaluator=evaluator), console=progress)
        result["discovery"] = _tell_discovery(console, campaign, discovered, found, truth)
    results = directory / "results"
    analyzed = run(plan_analyze(path, shuffled, keys, str(results), found=found), console=progress)
    # Delete the reports after they are counted, as the retention of a deployment does.
    for reports in (encoded, shuffled):
        shutil.rmtree(reports)
    result |= _tell_analyzer(console, campaign, analyzed, results, truth)
    show(sentences(analyzed), console)
    result["seconds"] = round(MACHINE.steady() - began, 1)
    result["page"] = str(shown / "results" / "report.html")
    page = Text.assemble("\n  ", ("The page:", "bold"), f" {result['page']}   ({result['seconds']:g} s)\n")
    console.print(page, soft_wrap=True)
    return result


def _make_campaign(scene: Scene, source: Path, path: Path, keys: Path) -> Evaluator | None:
    """Write the keys and the campaign file of a scene; return the scene's evaluator, or None if it has no evaluator."""
    from pipelines.handover.evaluator_address import Evaluator
    from pipelines.jobs.new_campaign import create_campaign

    evaluator, public, directory = None, directories.create(keys, days=30), path.parent
    if (scene.discovery or {}).get("hash") == "oblivious":
        # In production the evaluator runs on another machine than all other parties.
        evaluator = Evaluator(str(directory / "evaluator-keys"))
        public = public.model_copy(
            update={"evaluator": directories.create(directory / "evaluator-keys", 30, ("evaluator",)).evaluator}
        )
    create_campaign(
        scene.name,
        public,
        directory,
        mechanism=scene.mechanism,
        epsilon=scene.epsilon,
        dictionary=source / scene.dictionary,
        discovery=scene.discovery,
    ).write(path)
    return evaluator


def _tell(console: Console, party: str, did: str, saw: str, blind: str) -> None:
    grid = table.Table.grid(padding=(0, 2))
    grid.add_column(justify="right", style="dim", no_wrap=True)
    for verb, text in (("did", did), ("saw", saw), ("could not see", blind)):
        grid.add_row(verb, text)
    console.print(party, style="bold")
    console.print(Padding(grid, (0, 0, 0, 2)))


def _tell_clients(console: Console, campaign: Campaign, scene: Scene, sent: HopSummary) -> None:
    mechanism = campaign.require_frequency()
    size = campaign.sealed_bytes("reports")
    did = (
        f"randomised each value ({scene.mechanism}, epsilon {scene.epsilon:g}: {mechanism.report_bytes} bytes) and "
        f"sealed it: {sent.accepted_of('reports'):,} reports of {size} bytes each"
    )
    if campaign.discovery is not None:
        did += f"; and as many discovery reports of {campaign.sealed_bytes('discovery')} bytes each"
    _tell(console, "Clients", did, "their own value and the public campaign file", "anything of anyone else")


def _tell_evaluator(console: Console, evaluations: int) -> None:
    did = f"made {evaluations:,} evaluations, one for each client whatever its value, each with a proof of its key"
    saw = "who asked and when, and random points of a curve"
    _tell(console, "Evaluator", did, saw, "any value, any report, or whether there was a value to discover")


def _tell_shuffler(console: Console, campaign: Campaign, mixed: HopSummary) -> None:
    rejected = ", ".join(f"{number:,} {reason}" for reason, number in mixed.rejected.items()) or "nothing"
    did = (
        f"dropped {rejected}, kept at most {campaign.shuffle.cap} report of a client, stripped all metadata, permuted "
        f"{mixed.accepted:,} reports"
    )
    saw = "who sent something and when: a client token, an address, a time"
    _tell(console, "Shuffler", did, saw, "any value: it holds no key that opens a report")


def _tell_discovery(
    console: Console, campaign: Campaign, found: HopSummary, directory: Path, truth: Counter[str]
) -> dict[str, Any]:
    from pipelines.jobs.found import count_law_of, read_found

    rule = campaign.require_keep_rule()
    did = (
        f"counted {found.accepted:,} sealed values by their hash, kept {found.bins.kept if found.bins else 0:,} bins "
        f"(a bin of {rule.count_for(0.5)} clients is kept with probability 50 %), released each bin's sealed value and "
        "noisy count"
    )
    guesses = "can test a word that it guesses" if not campaign.is_oblivious else "cannot test a guess"
    saw = f"hashes and how often each came (it {guesses})"
    _tell(console, "Auxiliary server", did, saw, "any value, any sender")
    revealed, law = read_found(directory, campaign), count_law_of(campaign, found.senders)
    known = campaign.read_dictionary() or ()
    chances = [rule.keep_probability(count) for word, count in truth.items() if word not in known]
    expected, spread = sum(chances), math.sqrt(sum(chance * (1.0 - chance) for chance in chances))
    said = f" that the dictionary lacks, {expected:.1f} ± {spread:.1f} expected; the most frequent of them:"
    text = Text.assemble((f"{len(revealed.items)} words found", "bold"), said)
    console.print(Padding(text, (0, 0, 0, 2)))
    counts = {} if law is None else _tell_counts(console, revealed, truth, law)
    return {"found": len(revealed.items), "expected": expected, "expected_deviation": spread, **counts}


def _tell_counts(console: Console, found: Found, truth: Counter[str], law: CountLaw) -> dict[str, Any]:
    """Show the counts of discovered values beside the true counts, and the errors beside the predicted errors."""
    import numpy as np

    from hushcount.discovery.found_counts import kept_bias

    rows = [] if found.counts is None else found.counts.to_pylist()
    if not rows:
        return {}
    true = np.array([truth[row["item"]] for row in rows], dtype=np.int64)
    errors = np.array([row["count"] for row in rows]) - true
    low, high = (np.array([row[name] for row in rows]) for name in ("low", "high"))
    cells = [
        (row["item"], f"{c:,}", f"{row['count']:,.1f}", f"{row['low']:,.0f} to {row['high']:,.0f}", f"{error:+.1f}")
        for row, c, error in zip(rows[:_SHOWN], true, errors, strict=False)
    ]
    error, predicted = math.sqrt(float((errors**2).mean())), law.standard_deviation
    bias, expected = float(errors.mean()), float(kept_bias(law, true).mean())
    within = int(((low <= true) & (true <= high)).sum())
    line = (
        f"  {within} of {len(rows)} intervals hold the truth; their error is {error:.2f} (root mean square), predicted "
        f"{predicted:.2f}; mean error {bias:+.2f}, predicted {expected:+.2f}: counts near the threshold are too high"
    )
    show((Table("", ("word", "truth", "count", "95 % interval", "error"), cells, words=("word",)), line), console)
    return {
        "intervals_holding": within,
        "error": error,
        "predicted_error": predicted,
        "bias": bias,
        "predicted_bias": expected,
    }


def _tell_analyzer(
    console: Console, campaign: Campaign, analyzed: HopSummary, directory: Path, truth: Counter[str]
) -> dict[str, Any]:
    did = f"opened {analyzed.received:,} reports, tallied {analyzed.accepted:,}, estimated every item"
    saw = "randomised reports in random order" + ("; the words that were released" if campaign.discovery else "")
    _tell(console, "Analyzer", did, saw, "who sent what, when, or in what order")
    columns = ("item", "count", "standard_error", "collision_error", "low", "high")
    rows = sorted(read_csv_rows(str(directory / ESTIMATES), columns), key=lambda row: -truth[row["item"]])
    cells, scores, within = [], [], 0
    for row in rows:
        true, count = truth[row["item"]], float(row["count"])
        error = math.hypot(float(row["standard_error"]), float(row["collision_error"]))
        scores.append((count - true) / error)
        within += float(row["low"]) <= true <= float(row["high"])
        cells.append((row["item"], f"{true:,}", f"{count:,.0f}", f"{error:,.0f}", f"{scores[-1]:+.2f}"))
    heads, worst = ("item", "truth", "estimate", "standard error", "z"), max(map(abs, scores))
    held = f"{len(rows):,} items; {100 * within / len(rows):.1f} % of their 95 % intervals hold the truth"
    lines = [f"  {held}; largest |z| {worst:.2f}"]
    if analyzed.estimates is not None and analyzed.estimates.explained is not None:
        unlisted = sum(truth.values()) - sum(truth[row["item"]] for row in rows)
        lines.append(f"  {other_explained(analyzed.estimates.explained)} Truth of \u201cother\u201d: {unlisted:,}.")
    show((Table("", heads, cells[:_SHOWN], words=("item", "standard error")), *lines), console)
    mean_square = sum(score**2 for score in scores) / len(scores)
    return {"items": len(rows), "intervals_holding": within, "largest_z": worst, "mean_square_z": mean_square}
