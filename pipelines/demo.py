"""hushcount demo: the whole system on real input, and what each party did, saw and could not see."""

from __future__ import annotations

import csv
import math
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.dictionary import read_items
from hushcount.errors import UsageError
from keys import store
from pipelines.console.common import show_json, show_sentences
from pipelines.console.tables import show_table
from pipelines.files import storage
from pipelines.jobs.analyze import plan_analyze
from pipelines.jobs.discover import plan_discover
from pipelines.jobs.encode import plan_encode
from pipelines.jobs.job import run
from pipelines.jobs.new_campaign import create_campaign
from pipelines.jobs.shuffle import plan_shuffle
from pipelines.outputs.staging import SUMMARY, staged
from pipelines.outputs.summary import HopSummary

_SHOWN = 12
_SHOWN_FOUND = 40
_DISCOVERY = {"epsilon": 1.0, "delta": 1e-8, "max_value_bytes": 32}


@dataclass(frozen=True)
class Scene:
    """One collection of the demo.

    Attributes:
        name: of the campaign and its folder.
        title: for people.
        values: file of values in the data directory.
        dictionary: file of known items in the data directory.
        mechanism: a named frequency oracle.
        epsilon: local budget of one report.
        discovery: discovery settings, or None.
    """

    name: str
    title: str
    values: str
    dictionary: str
    mechanism: str
    epsilon: float
    discovery: dict[str, Any] | None


SCENES = (
    Scene(
        "adult",
        "Education of 48,842 people (Adult census)",
        "education.txt.gz",
        "education_dictionary.txt",
        "ss",
        1.0,
        None,
    ),
    Scene(
        "words",
        "200,000 words typed, 20,000 known ones, the others to be discovered (Norvig's counts)",
        "words.txt.gz",
        "words_dictionary.txt.gz",
        "ais",
        4.0,
        _DISCOVERY,
    ),
)


def demo(out: Path, data: Path | None, overwrite: bool, console: Console, progress: Console, as_json: bool) -> None:
    """Run every scene into a folder of its own under `out` and print what happened.

    Raises:
        UsageError: the example data are not there, or `out` is taken.
    """
    source = data or Path(__file__).parent.parent / "examples" / "data"
    for scene in SCENES:
        for name in (scene.values, scene.dictionary):
            if not (source / name).exists():
                raise UsageError(f"example file {source / name} is missing: run in a checkout, or give --data DIR")
    results: dict[str, Any] = {"hop": "demo"}
    quiet = Console(quiet=True) if as_json else console
    with staged(str(out), overwrite) as directory:
        for scene in SCENES:
            results[scene.name] = _play(scene, source, Path(directory) / scene.name, out / scene.name, quiet, progress)
        storage.write_json(storage.join(directory, SUMMARY), results)
    if as_json:
        show_json(results)


def _play(
    scene: Scene, source: Path, directory: Path, shown: Path, console: Console, progress: Console
) -> dict[str, Any]:
    """Run one scene; `shown` is where the files will be when the demo has ended."""
    began = time.monotonic()
    console.rule(Text(scene.title, "bold"))
    part = store.create(directory / "keys", days=30)
    campaign = create_campaign(
        scene.name,
        part,
        directory,
        mechanism=scene.mechanism,
        epsilon=scene.epsilon,
        dictionary=source / scene.dictionary,
        discovery=scene.discovery,
    )
    path = directory / "campaign.json"
    campaign.write(path)
    campaign = Campaign.read(path)
    encoded, shuffled = str(directory / "encoded"), str(directory / "shuffled")
    sent = _encode_as_clients(path, source / scene.values, encoded, progress)
    _tell_clients(console, campaign, scene, sent)
    mixed = run(plan_shuffle(path, encoded, shuffled), console=progress)
    _tell_shuffler(console, campaign, mixed)
    found_directory = None
    truth = Counter(read_items(source / scene.values))
    result: dict[str, Any] = {}
    if scene.discovery is not None:
        found_directory = directory / "found"
        job = plan_discover(path, shuffled, directory / "keys", str(found_directory))
        found = run(job, console=progress)
        result["discovery"] = _tell_discovery(console, campaign, found, found_directory, truth)
    counting = plan_analyze(path, shuffled, directory / "keys", str(directory / "results"), found=found_directory)
    analyzed = run(counting, console=progress)
    result |= _tell_analyzer(console, campaign, analyzed, directory / "results", truth)
    show_sentences(console, analyzed)
    result["seconds"] = round(time.monotonic() - began, 1)
    result["page"] = str(shown / "results" / "report.html")
    page = Text.assemble("\n  ", ("The page:", "bold"), f" {result['page']}   ({result['seconds']:g} s)\n")
    console.print(page, soft_wrap=True)
    return result


def _encode_as_clients(path: Path, values: Path, out: str, progress: Console) -> HopSummary:
    """Let every line of a file be another client's."""
    with tempfile.TemporaryDirectory(prefix="hushcount-demo-") as scratch:
        named = Path(scratch) / "values.txt"
        lines = (f"{client}\t{value}\n" for client, value in enumerate(read_items(values)))
        named.write_text("".join(lines), encoding="utf-8")
        return run(plan_encode(path, named, out, clients=True), console=progress)


def _tell(console: Console, party: str, did: str, saw: str, blind: str) -> None:
    grid = Table.grid(padding=(0, 2))
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


def _tell_shuffler(console: Console, campaign: Campaign, mixed: HopSummary) -> None:
    rejected = ", ".join(f"{number:,} {reason}" for reason, number in mixed.rejected.items()) or "nothing"
    _tell(
        console,
        "Shuffler",
        f"dropped {rejected}, kept at most {campaign.shuffle.cap} report of a client, stripped all metadata, permuted "
        f"{mixed.accepted:,} reports",
        "who sent something and when: a client token, an address, a time",
        "what: it holds no key that opens a report",
    )


def _tell_discovery(
    console: Console, campaign: Campaign, found: HopSummary, directory: Path, truth: Counter[str]
) -> dict[str, Any]:
    rule = campaign.require_keep_rule()
    _tell(
        console,
        "Auxiliary server",
        f"counted {found.accepted:,} sealed values by their hash, kept {found.bins.kept if found.bins else 0:,} bins "
        f"(an even chance at {rule.count_for(0.5)} clients), released the sealed value of each",
        "hashes and how often each came (it can test a word that it guesses)",
        "any value, any sender",
    )
    with (directory / "found.csv").open(encoding="utf-8", newline="") as stream:
        words = [row["item"] for row in csv.DictReader(stream)]
    dictionary = campaign.read_dictionary()
    unknown = {word: count for word, count in truth.items() if dictionary is not None and word not in dictionary}
    expected = sum(rule.keep_probability(count) for count in unknown.values())
    spread = math.sqrt(sum(_bernoulli_variance(rule.keep_probability(count)) for count in unknown.values()))
    words.sort(key=lambda word: -truth[word])
    listed = ", ".join(f"{word} {truth[word]}" for word in words[:_SHOWN_FOUND])
    more = ", ..." if len(words) > _SHOWN_FOUND else ""
    said = f" that no list held, {expected:.1f} ± {spread:.1f} expected; with how often each really came: "
    text = Text.assemble((f"{len(words)} words found", "bold"), said, listed, more)
    console.print(Padding(text, (0, 0, 0, 2)))
    return {"found": len(words), "expected": expected, "expected_deviation": spread}


def _bernoulli_variance(probability: float) -> float:
    return probability * (1.0 - probability)


def _tell_analyzer(
    console: Console, campaign: Campaign, analyzed: HopSummary, directory: Path, truth: Counter[str]
) -> dict[str, Any]:
    _tell(
        console,
        "Analyzer",
        f"opened {analyzed.received:,} reports, tallied {analyzed.accepted:,}, estimated every item",
        "randomised reports in random order" + ("; the words that were released" if campaign.discovery else ""),
        "who sent what, when, or in what order",
    )
    rows = sorted(_compare(directory / "estimates.csv", truth), key=lambda row: -row.truth)
    cells = [
        (row.item, f"{row.truth:,}", f"{row.count:,.0f}", f"{row.error:,.0f}", f"{row.z:+.2f}") for row in rows[:_SHOWN]
    ]
    show_table(console, ("item", "truth", "estimate", "standard error", "z"), cells, words=("item", "standard error"))
    console.print()
    within = sum(row.held for row in rows)
    worst = max(abs(row.z) for row in rows)
    percent = 100 * within / len(rows)
    console.print(
        f"  {len(rows):,} items; {percent:.1f} % of their 95 % intervals hold the truth; largest |z| {worst:.2f}"
    )
    mean_square = sum(row.z**2 for row in rows) / len(rows)
    return {"items": len(rows), "intervals_holding": within, "largest_z": worst, "mean_square_z": mean_square}


@dataclass(frozen=True)
class Compared:
    """An estimate beside the truth, in users; `held` says whether its interval holds the truth."""

    item: str
    truth: int
    count: float
    error: float
    held: bool

    @property
    def z(self) -> float:
        """How many of its own errors the estimate is off."""
        return (self.count - self.truth) / self.error


def _compare(path: Path, truth: Counter[str]) -> list[Compared]:
    with path.open(encoding="utf-8", newline="") as stream:
        return [
            Compared(
                row["item"],
                truth[row["item"]],
                float(row["count"]),
                math.hypot(float(row["standard_error"]), float(row["collision_error"])),
                float(row["low"]) <= truth[row["item"]] <= float(row["high"]),
            )
            for row in csv.DictReader(stream)
        ]
