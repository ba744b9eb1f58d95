"""Play the scene with noise of the mixes: a small deployment with reports of one window, which a run mixes and counts.

With noise no job runs by hand, because only a run's log has each batch once (docs/adr/0061).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.dictionary import Dictionary, read_items
from hushcount.campaigns.parts import NoisePart
from hushcount.clock import MACHINE, Clock
from hushcount.collection.envelopes import ENVELOPES
from hushcount.collection.epochs import epoch_folder, folder_name
from hushcount.collection.manifests import SUFFIX, Manifest, SegmentPart
from hushcount.collection.windows import Window
from hushcount.errors import HushcountError
from keys import directories
from pipelines.commands.demo.scenes import Scene
from pipelines.console.answer import progress_console, show
from pipelines.console.tables import Table
from pipelines.deployment.publish import publish
from pipelines.deployment.settings import Deployment
from pipelines.files import storage
from pipelines.files.block_files import SUFFIX as BLOCKS
from pipelines.files.block_files import write_file
from pipelines.jobs.encode import envelopes_of
from pipelines.jobs.new_campaign import create_campaign
from pipelines.jobs.results import ESTIMATES
from pipelines.jobs.table_files import read_csv_rows
from pipelines.outputs.received_summary import folder_of
from pipelines.outputs.staging import SUMMARY
from pipelines.schedule.run import run

_COLLECTOR = "demo"
_NOISE = NoisePart(epsilon=1.0, delta=1e-8, seconds=3600)
_DEPLOYMENT = f"""store = "store"
sign_with = "signing"
shuffler_keys = "signing/public.json"
aux_server_keys = "signing/public.json"
collectors = ["{_COLLECTOR}"]
windows = {{length = "1h", grace = "2d"}}
"""
_LISTED = 10
"""Of the known items every tenth is listed, because each listed item costs 60 dummies."""
_RARE, _SHOWN = 3, 4


def play(scene: Scene, source: Path, directory: Path, console: Console) -> dict[str, Any]:
    """Run the scene in a directory; return the figures of its summary."""
    began = MACHINE.steady()
    console.rule(Text(scene.title, "bold"))
    deployment, campaign, window = _deploy(scene, source, directory)
    values, known = list(read_items(source / scene.values)), campaign.read_dictionary() or ()
    _leave_segment(deployment, campaign, window, values)
    done = run(deployment, console=progress_console())
    if done.problems:
        raise HushcountError(done.problems[0])
    batch = f"{window.name}-{folder_name(campaign.epoch, campaign.fingerprint.hex())}"
    shuffled, results = (storage.join(deployment.folder(name), campaign.id, batch) for name in ("shuffled", "results"))
    first, last = (storage.read_json(storage.join(folder, SUMMARY)) for folder in (shuffled, results))
    _tell_parties(console, campaign, first, last)
    found, columns = folder_of(results), ("item", "count", "standard_error", "low", "high")
    rows = [*read_csv_rows(storage.join(found, ESTIMATES), columns), {"item": "other", **last["other"]}]
    result = _tell_errors(console, scene, rows, Counter(value if value in known else "other" for value in values))
    console.print(Padding(Text(" ".join(last["privacy"]["plain"]), style="bold"), (1, 0, 0, 2)))
    # Delete the reports after they are counted, as the retention of a deployment does.
    for reports in Path(deployment.store).rglob(f"*{BLOCKS}"):
        reports.unlink()
    result |= {"dummies": last["dummies"], "seconds": round(MACHINE.steady() - began, 1)}
    console.print(f"\n  {result['seconds']:g} s\n")
    return {**result, "page": storage.relative(storage.join(found, "report.html"), str(directory))}


def _deploy(scene: Scene, source: Path, directory: Path) -> tuple[Deployment, Campaign, Window]:
    """Write a deployment with all parties, and publish the scene's campaign; return the window before the present."""
    public = directories.create(directory / "keys", days=30)
    directories.create(directory / "signing", days=30, roles=("shuffler", "aux_signer"))
    path, file = directory / "deployment.toml", directory / "campaign.json"
    path.write_text(_DEPLOYMENT, encoding="utf-8")
    deployment = Deployment.read(path)
    listed = Dictionary(tuple(read_items(source / str(scene.dictionary)))[::_LISTED])
    create_campaign(scene.name, public, directory, noise=_NOISE, dictionary=listed, shuffle={"minimum_batch": 1}).write(
        file
    )
    window = deployment.windows.tiling.window_at(MACHINE.now() - timedelta(hours=1))
    publish(deployment, file, begins=window.start)
    return deployment, Campaign.read(file), window


def _leave_segment(deployment: Deployment, campaign: Campaign, window: Window, values: list[str]) -> None:
    """Make a report of each value, and leave what a collector that took them in a window would."""
    envelopes = envelopes_of(campaign, values, Clock(window.start.timestamp))
    home = storage.join(deployment.folder("segments"), campaign.id, epoch_folder(campaign), window.name)
    name, length = f"{_COLLECTOR}-000000.blocks", len(envelopes) // len(values)
    path = storage.join(home, "reports", name)
    write_file(path, ENVELOPES["reports"], length, envelopes, campaign.fingerprint, campaign.id)
    size, digest = storage.digest_of(path)
    manifest = Manifest(
        collector=_COLLECTOR,
        campaign=campaign.id,
        epoch=campaign.epoch,
        fingerprint=campaign.fingerprint.hex(),
        window=window.name,
        seconds=int(window.length.total_seconds()),
        authentication="client-token",
        segments={"reports": (SegmentPart(name=name, records=len(values), bytes=size, digest=digest),)},
    )
    storage.write_json(storage.join(home, _COLLECTOR + SUFFIX), manifest.model_dump(mode="json"))


def _tell_parties(
    console: Console, campaign: Campaign, shuffled: Mapping[str, Any], counted: Mapping[str, Any]
) -> None:
    """Tell what the parties did, from the summaries of their hops; and what they see, alone and together."""
    listed = campaign.require_frequency().encoder.domain or 0
    law, first, both = _NOISE.dummies(listed, campaign.shuffle.cap), shuffled["dummies"], counted["dummies"]
    did = (
        f"  {shuffled['received']:,} clients sealed the number of their item to the analyzer, not randomised, and this "
        f"box and its window to the auxiliary server: {campaign.sealed_bytes('reports')} bytes each. The shuffler "
        f"took {shuffled['accepted']:,} reports and added {first:,} dummies; the auxiliary server added "
        f"{both - first:,}. The analyzer opened {counted['accepted'] + both:,} boxes, counted {listed:,} items, and "
        f"subtracted {law.mean:.1f} from each, the mean number of its dummies."
    )
    counts = f"counts with the other mix's noise, of standard deviation {math.sqrt(law.variance / law.mixes):.2f}"
    rows = (
        ("shuffler, with the collector", "who sends, and when; its own dummies", "any value"),
        ("auxiliary server", "sealed boxes in random order; its own dummies", "any sender, any value"),
        ("analyzer", "items in random order, dummies among them", "who sent what; exact counts"),
        ("shuffler and analyzer", counts, "who sent what; exact counts"),
        ("auxiliary server and analyzer", counts, "who sent what; exact counts"),
        ("shuffler and auxiliary server", "with the published counts: every exact count", "who sent what"),
        ("all three, or one operator with all keys", "the value of every client", "nothing"),
    )
    demo = (
        "  The demo is one process with all keys: from whoever runs it, nothing is hidden. Its clients' clock shows "
        "the window before the present one, so that nobody waits for the end of a window."
    )
    heads = ("party", "sees", "cannot see")
    show((did, Table("", heads, rows, words=heads), demo), console)


def _tell_errors(
    console: Console, scene: Scene, rows: Sequence[Mapping[str, Any]], truth: Counter[str]
) -> dict[str, Any]:
    """Show counts beside the truth: of frequent, rare and absent items, in the order of their names if equal."""
    rows = sorted(rows, key=lambda row: (-truth[row["item"]], row["item"]))
    true = np.array([truth[row["item"]] for row in rows], dtype=np.int64)
    count, low, high = (np.array([float(row[name]) for row in rows]) for name in ("count", "low", "high"))
    cells = []
    for kind, are in (("frequent", true > _RARE), ("rare", (true > 0) & (true <= _RARE)), ("absent", true == 0)):
        for at in np.flatnonzero(are)[:_SHOWN]:
            interval, error = f"{low[at]:,.0f} to {high[at]:,.0f}", f"{count[at] - true[at]:+.1f}"
            cells.append((kind, rows[at]["item"], f"{true[at]:,}", f"{count[at]:,.1f}", interval, error))
    within, error_of_all = int(((low <= true) & (true <= high)).sum()), math.sqrt(float(((count - true) ** 2).mean()))
    predicted = float(rows[0]["standard_error"])
    line = (
        f"  {within:,} of {len(rows):,} intervals hold the truth, {100 * within / len(rows):.1f} %; the error of all "
        f"{scene.things} is {error_of_all:.2f} (root mean square), predicted {predicted:.2f}, the same for each"
    )
    heads = ("", scene.thing, "truth", "estimate", "95 % interval", "error")
    show((Table("", heads, cells, words=(scene.thing,)), line), console)
    return {"items": len(rows), "intervals_holding": within, "error": error_of_all, "predicted_error": predicted}
