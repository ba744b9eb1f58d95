"""Peak memory of an analysis that gets junk reports: `python -m benchmarks.junk 0 1000000 10000000`.

A hop keeps only a bounded part of the reports that it rejects, so the peaks are similar for any amount of junk.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.dictionary import Dictionary
from hushcount.many_clients import ManyClients
from hushcount.wire.blocks import Header, Kind, encode_blocks
from keys.directories import PublicFile, create
from pipelines.files import storage
from pipelines.jobs.new_campaign import create_campaign
from pipelines.outputs.counts import StreamCounts
from pipelines.outputs.staging import SUMMARY
from pipelines.outputs.summary import make_summary

HONEST = 60
WORDS = ("alpha", "beta", "gamma")
_ANALYZE = """
import sys
from pathlib import Path
from pipelines.jobs.analyze import plan_analyze
from pipelines.jobs.job import run
campaign, source, keys, out = sys.argv[1:]
run(plan_analyze(Path(campaign), source, Path(keys), out))
# Not ru_maxrss, which a process inherits from its parent.
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
print(int(peak.split()[1]) // 1024)
"""


def make_campaign(folder: Path) -> Path:
    """Write keys and a campaign of three words, and return its path."""
    campaign_of_three_words("junk", create(folder / "keys", 30, ("analyzer",)), folder).write(folder / "junk.json")
    return folder / "junk.json"


def campaign_of_three_words(id: str, keys: PublicFile, folder: Path) -> Campaign:
    """Write a dictionary into a folder, and return a campaign with its words, without writing the campaign file."""
    (folder / "words.txt").write_text("".join(f"{word}\n" for word in WORDS))
    return create_campaign(
        id, keys, folder, mechanism="grr", epsilon=1.0,
        dictionary=folder / "words.txt", shuffle={"minimum_batch": 50},
    )  # fmt: skip


def make_input(folder: Path, campaign: Campaign, junk: int, sealed: bool) -> Path:
    """Write the shuffler's output: a few honest reports and, in a separate file, junk.

    Args:
        folder: the output folder.
        campaign: the campaign of the honest reports.
        junk: number of junk reports.
        sealed: whether the junk's file names this campaign, so that its reports fail to open; else another campaign.
    """
    length = campaign.sealed_bytes("reports")
    honest = ManyClients(campaign, dictionary=Dictionary(WORDS)).reports([WORDS[index % 3] for index in range(HONEST)])
    counts = HONEST
    _write(folder / "reports" / "honest.blocks", campaign.fingerprint, honest.tobytes(), length)
    if junk:
        noise = np.random.default_rng(1).bytes(junk * length)
        _write(folder / "reports" / "junk.blocks", campaign.fingerprint if sealed else bytes(32), noise, length)
        counts += junk if sealed else 0
    streams = {"reports": StreamCounts(counts, counts, {})}
    storage.write_json(str(folder / SUMMARY), make_summary("shuffle", campaign, streams, None).data())  # type: ignore[arg-type]
    return folder


def peak(campaign_path: Path, source: Path, out: Path) -> int:
    """Analyze in a separate process; return the peak of its resident memory in MiB."""
    keys = campaign_path.parent / "keys"
    done = subprocess.run(  # noqa: S603  # our own interpreter and words
        [sys.executable, "-c", _ANALYZE, str(campaign_path), str(source), str(keys), str(out)],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return int(done.stdout.split()[-1])


def _write(path: Path, campaign: bytes, records: bytes, length: int) -> None:
    header = Header(Kind.SEALED_REPORTS, length, len(records) // length, campaign, "junk")
    storage.write_whole(str(path), encode_blocks(header, records))


def main() -> None:
    """Print the peak for each number of junk reports in the arguments."""
    for number in map(int, sys.argv[1:]):
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            path = make_campaign(folder)
            source = make_input(folder / "in", Campaign.read(path), number, sealed=False)
            print(f"{number:>12,} junk reports: {peak(path, source, folder / 'out'):,} MiB")


if __name__ == "__main__":
    main()
