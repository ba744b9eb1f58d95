"""Every released state's files are read: a deployment with its log, ledger and results, campaigns, and an app's folder.

SECURITY.md promises this. An archive is frozen: where a test fails, mend what reads it.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zipfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.newest import Newest
from hushcount.policy import Policy
from tests.golden.by_hand import SIGNED
from tests.golden.frozen import FIGURES, FROZEN, campaign_files
from tests.golden.site import restored
from tests.hushcount.delivery.fake_collector import collecting, sender
from tests.shuffler.collector.running import Site as Running
from tests.shuffler.collector.running import running, wait_for
from tests.support.clocks import Hands
from tests.support.jobs import cli, done, files_under, summary

RELEASES = sorted(path.stem for path in FROZEN.glob("release-*.zip"))
DIGESTS = {"release-0": "a7d7103a256d20efa404b3f17edac72ec3b7e6dace59ac7c2886c22c3dc795b0"}
MOST_BYTES = 200_000


@dataclass(frozen=True)
class Release:
    """What an archive holds, unpacked into a directory."""

    root: Path

    @property
    def kept(self) -> Path:
        return self.root / "kept"

    @property
    def figures(self) -> dict[str, Any]:
        return json.loads((self.root / FIGURES).read_text())

    def results(self) -> dict[str, Path]:
        """Return the folder of each result, by the day of its window."""
        paths = (self.kept / "after" / "store" / "results" / "words").glob("*/*/estimates.csv")
        return {path.parts[-3][:8]: path.parent for path in paths}


@pytest.fixture(params=RELEASES)
def release(request: pytest.FixtureRequest, tmp_path: Path) -> Release:
    root = tmp_path.resolve() / "release"
    with zipfile.ZipFile(FROZEN / f"{request.param}.zip") as archive:
        archive.extractall(root)
    return Release(root)


def test_an_archive_is_never_written_again() -> None:
    assert sorted(DIGESTS) == RELEASES
    for name, digest in DIGESTS.items():
        data = (FROZEN / f"{name}.zip").read_bytes()
        assert hashlib.sha256(data).hexdigest() == digest
        assert len(data) < MOST_BYTES


def test_a_run_makes_the_same_results_of_the_collected_reports(release: Release, tmp_path: Path) -> None:
    site = restored(tmp_path / "site", kept=release.kept)
    limit = ("--campaign", "words", "--epsilon", 50, "--delta", 1e-4)
    done("ledger", "set", "--ledger", site / "ledger.db", *limit)
    run = cli("run", "--config", site / "deployment.toml", "--clock-is-right")
    # One segment was altered after it was listed.
    assert run.status == 1
    expected = release.results()
    assert len(expected) == 2
    for day, before in expected.items():
        (batch,) = (site / "store" / "results" / "words").glob(f"{day}*")
        now = batch / summary(batch)["folder"]
        assert (now / "tally.npz").read_bytes() == (before / "tally.npz").read_bytes()
        assert (now / "estimates.csv").read_bytes() == (before / "estimates.csv").read_bytes()


def test_a_finished_deployment_is_read_and_nothing_is_done_or_charged_again(release: Release, tmp_path: Path) -> None:
    site = restored(tmp_path / "site", over=release.kept / "after", kept=release.kept)
    config = ("--config", site / "deployment.toml")
    (status,) = done("status", *config, "--digests", "--json").json
    assert status["campaign"] == "words"
    assert done("ledger", "check", "--ledger", site / "ledger.db", "--json").json["charges"] == 3
    before = files_under(site / "store")
    done("run", *config, "--clock-is-right")
    after = files_under(site / "store")
    assert {name: after.get(name) for name in before} == before
    assert {name.partition("/")[0] for name in after.keys() - before.keys()} <= {"log", "leases"}
    with closing(sqlite3.connect(site / "ledger.db")) as ledger:
        assert ledger.execute("SELECT count(*) FROM charges").fetchone() == (3,)


def test_a_collector_uploads_what_a_killed_one_took(release: Release, tmp_path: Path) -> None:
    site = Running(restored(tmp_path / "site", over=release.kept / "collector", kept=release.kept))
    with running(site) as one:
        wait_for(lambda: list(site.segments.glob("*/*/20210315T000000Z/*.manifest.json")), what="a manifest")
        assert one.stop() == 0
    (manifest,) = site.segments.glob("*/*/20210315T000000Z/*.manifest.json")
    listed = json.loads(manifest.read_text())["segments"]
    records = {stream: sum(part["records"] for part in parts) for stream, parts in listed.items()}
    assert records == {"reports": 4, "discovery": 4}


def test_campaign_files_keep_their_fingerprints_and_the_signature_holds(release: Release) -> None:
    fingerprints = release.figures["fingerprints"]
    assert {path.name: Campaign.read(path).fingerprint.hex() for path in campaign_files(release.kept)} == fingerprints
    signed = release.kept / "campaigns"
    done("campaign", "verify", "--campaign", signed / SIGNED, "--keys", signed / "operator")


def test_an_apps_folder_sends_what_waited_and_knows_what_was_spent(release: Release) -> None:
    home, figures = release.root / "client", release.figures
    home.chmod(0o700)
    for path in home.iterdir():
        path.chmod(0o600)
    policy = Policy.read(release.root / "policy.json", Newest(home / "newest.json"))
    campaign = Campaign.model_validate(json.loads((release.root / "campaign.json").read_text()))
    with collecting(epochs=[campaign]) as collector:
        one = sender(collector, home, policy=policy, clock=Hands(figures["now"]).clock)
        assert one.spent().streams[0].reports == figures["reports"]
        while one.deliver(early=True).waiting:
            pass
        for stream, sent in figures["sent"].items():
            assert sorted(hashlib.sha256(data).hexdigest() for data in collector.received(stream)) == sorted(sent)
        assert {post.token for post in collector.posts} == {figures["token"]}
