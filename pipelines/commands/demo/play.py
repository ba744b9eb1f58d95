"""Run one scene of the demo with the functions that the jobs call, and tell what each party did."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.dictionary import read_items
from hushcount.clock import MACHINE
from keys import directories
from pipelines.commands.demo import told
from pipelines.commands.demo.scenes import Scene
from pipelines.commands.demo.seen import bins_seen
from pipelines.console.answer import progress_console, show
from pipelines.console.job_results import sentences
from pipelines.handover.evaluator_address import Evaluator
from pipelines.jobs.analyze import plan_analyze
from pipelines.jobs.discover import plan_discover
from pipelines.jobs.encode import plan_encode
from pipelines.jobs.job import run
from pipelines.jobs.new_campaign import create_campaign
from pipelines.jobs.shuffle import plan_shuffle
from pipelines.outputs.received_summary import folder_of


def play(scene: Scene, source: Path, directory: Path, console: Console) -> dict[str, Any]:
    """Run one scene in a directory; return the figures of its summary."""
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
        told.tell_clients(console, campaign, scene, run(job, console=progress))
    if evaluator is not None:
        told.tell_evaluator(console, len(values))
    mixed = run(plan_shuffle(path, encoded, shuffled), console=progress)
    told.tell_shuffler(console, campaign, mixed)
    truth, found = Counter(values), None
    result: dict[str, Any] = {"page": "results/report.html"}
    if scene.discovery is not None:
        found = directory / "found"
        released = run(plan_discover(path, shuffled, keys, str(found), evaluator=evaluator), console=progress)
        seen = bins_seen(campaign, keys, folder_of(shuffled, mixed)) if scene.dictionary is None else None
        result["discovery"] = told.tell_discovery(console, scene, campaign, released, found, truth, seen)
    results = directory / "results"
    analyzed = run(plan_analyze(path, shuffled, keys, str(results), found=found), console=progress)
    # Delete the reports after they are counted, as the retention of a deployment does.
    for reports in (encoded, shuffled):
        shutil.rmtree(reports)
    result |= told.tell_analyzer(console, scene, campaign, analyzed, results, truth)
    plain, *exact = sentences(analyzed)
    differs = (
        "The same in (epsilon, delta): delta is not the chance above, so e^epsilon can be smaller (see odds, below)."
    )
    show((plain, Padding(Text(differs), (0, 0, 0, 2)), *exact), console)
    result["seconds"] = round(MACHINE.steady() - began, 1)
    console.print(f"\n  {result['seconds']:g} s\n")
    return result


def _make_campaign(scene: Scene, source: Path, path: Path, keys: Path) -> Evaluator | None:
    """Write the keys and the campaign file of a scene; return the scene's evaluator, or None if it has no evaluator."""
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
        dictionary=None if scene.dictionary is None else source / scene.dictionary,
        discovery=scene.discovery,
    ).write(path)
    return evaluator
