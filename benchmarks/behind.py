"""The cost of a run with many waiting windows of ten minutes: `python -m benchmarks.behind --windows 1000`.

For comparison, a run with fewer windows takes each window through graphs of its own.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import tempfile
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.junk import WORDS, campaign_of_three_words
from hushcount.campaigns.campaign import Campaign
from hushcount.clock import Clock
from hushcount.collection.envelopes import ENVELOPES, client_token, envelope_dtype
from hushcount.collection.epochs import epoch_folder
from hushcount.collection.manifests import Manifest, SegmentPart
from hushcount.many_clients import ManyClients
from keys.directories import create
from pipelines.deployment.settings import Deployment
from pipelines.files.block_files import write_file
from pipelines.schedule.run import run
from pipelines.schedule.work import Vouched

START = datetime(2026, 1, 1, tzinfo=timezone.utc)
LENGTH = timedelta(minutes=10)


def make_deployment(folder: Path, grace: str) -> Deployment:
    """Write keys, a campaign of three words and a deployment."""
    home = folder / "campaigns" / "words"
    home.mkdir(parents=True)
    campaign = campaign_of_three_words("words", create(folder / "keys", 30, ("analyzer",)), home)
    campaign.write(home / "epoch-000001.json")
    epoch = {"epoch": 1, "file": "epoch-000001.json", "begins": START.isoformat(), "ends": None, "grace_ends": None}
    (home / "collection.json").write_text(json.dumps({"epochs": [epoch]}))
    (folder / "deployment.toml").write_text(
        f'store = "store"\nledger = "ledger.db"\n[windows]\nlength = "10m"\ngrace = "{grace}"\npatience = "10m"\n'
    )
    return Deployment.read(folder / "deployment.toml")


def collect(deployment: Deployment, campaign: Campaign, windows: int, reports: int) -> None:
    """Write the files of a collector that received `reports` reports in each window."""
    client = ManyClients(campaign)
    rows = np.zeros(reports, dtype=envelope_dtype(campaign.sealed_bytes("reports")))
    for number in range(windows):
        rows["client_token"] = [client_token(f"{number} {one}", campaign.fingerprint) for one in range(reports)]
        rows["sealed"] = [client.report(WORDS[one % 3]) for one in range(reports)]
        leave(deployment, campaign, START + number * LENGTH, LENGTH, rows)


def leave(
    deployment: Deployment, campaign: Campaign, begins: datetime, length: timedelta, rows: npt.NDArray[np.void]
) -> None:
    """Write the files of a collector that received these envelopes in a window."""
    window = f"{begins:%Y%m%dT%H%M%SZ}"
    folder = Path(deployment.folder("segments", campaign.id, epoch_folder(campaign), window))
    path = folder / "reports" / "one-000000.blocks"
    write_file(str(path), ENVELOPES["reports"], rows.itemsize, rows.tobytes(), campaign.fingerprint, campaign.id)
    data = path.read_bytes()
    digest = hashlib.blake2b(data, digest_size=32).hexdigest()
    part = SegmentPart(name=path.name, records=len(rows), bytes=len(data), digest=digest)
    manifest = Manifest(
        collector="one", campaign=campaign.id, epoch=1, fingerprint=campaign.fingerprint.hex(), window=window,
        seconds=int(length.total_seconds()), authentication="client-token", segments={"reports": (part,)}, refused={},
    )  # fmt: skip
    (folder / "one.manifest.json").write_text(json.dumps(manifest.model_dump(mode="json")))
    ended = (begins + length).timestamp()
    os.utime(folder / "one.manifest.json", (ended, ended))


def catch_up(windows: int, reports: int, grace: str) -> float:
    """Return the CPU seconds for each window of a run that is `windows` windows behind."""
    with tempfile.TemporaryDirectory(prefix="hushcount-behind-") as made:
        deployment = make_deployment(Path(made), grace)
        collect(deployment, Campaign.read(deployment.campaigns / "words" / "epoch-000001.json"), windows, reports)
        now, began = START + (windows + 7) * LENGTH, time.process_time()
        done = run(deployment, clock=Clock(now.timestamp), vouched=Vouched(clock_is_right=True))
        if len(done.hops) != 2 * windows or done.problems:
            raise SystemExit(f"{len(done.hops)} of {2 * windows} hops are done: {done.problems[:3]}")
        return (time.process_time() - began) / windows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--windows", type=int, default=1000)
    parser.add_argument("--reports", type=int, default=100, help="reports of each window")
    asked = parser.parse_args()
    # Windows within one grace close together, and share graphs.
    alone = catch_up(min(asked.windows, 20), asked.reports, "10m")
    shared = catch_up(asked.windows, asked.reports, "1d")
    sys.stdout.write(f"{shared:.3f} CPU seconds for each window, {alone:.3f} if each window has its own graphs\n")


if __name__ == "__main__":
    main()
