"""What is done is not made again, whatever became of its files: the log alone says what is to be done."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from pipelines.log.log import Logs
from pipelines.outputs.staging import SUMMARY
from tests.support.collecting import collect
from tests.support.jobs import done, files_under
from tests.support.plain_jobs import PlainJobs, leave
from tests.support.site import Site, account_at, values

KEEP = '[retention]\nsegments = "7d"\nshuffled = "7d"\nreleased = "6d"\ndead_letters = "7d"\n'
PARTIES = ("shuffler", "aux-server", "analyzer")


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> PlainJobs:
    return PlainJobs(monkeypatch)


def of_parties(site: Site, *parties: str) -> None:
    """Let only these parties run from now on."""
    whole = "".join(line for line in site.config.read_text().splitlines(True) if not line.startswith("parties"))
    site.config.write_text(f"parties = {json.dumps(parties)}\n{whole}")


def test_nothing_is_released_again_after_retention(tmp_path: Path) -> None:
    site = Site(tmp_path, discovery=True, tail=KEEP)
    collect(site.store, site.campaign, values(200), day=0)
    site.run(1.1)
    assert site.run(9, sure=True).deleted
    charged = done("ledger", "show", "--ledger", site.root / "ledger.db", "--json").json["charges"]
    result, account = files_under(site.store / "results"), account_at(site, 9)
    assert (len(charged), account.differences) == (2, [])
    finished = site.run(9.1, sure=True)
    assert (finished.problems, finished.hops) == ([], [])
    assert done("ledger", "show", "--ledger", site.root / "ledger.db", "--json").json["charges"] == charged
    assert files_under(site.store / "results") == result
    assert account_at(site, 9.1).hops == account.hops


def test_each_party_alone_does_its_own_once_and_nothing_after_retention(tmp_path: Path, jobs: PlainJobs) -> None:
    site = Site(tmp_path, discovery=True, tail=KEEP)
    leave(site.store, site.campaign, 0, {"reports": 100, "discovery": 100})
    for party in (*PARTIES, *PARTIES):
        of_parties(site, party)
        assert site.run(1.1).problems == []
    ran = list(jobs.ran)
    assert [hop for hop, _ in ran] == ["shuffle", "release", "discover", "analyze"]
    assert {path.parent.name for path in site.store.glob("log/*/words")} == set(PARTIES)
    for day in (7.5, 7.6, 8.5, 8.6):
        for party in PARTIES:
            of_parties(site, party)
            assert site.run(day, sure=True).problems == []
            assert account_at(site, day).differences == []
    assert jobs.ran == ran
    left = {path.relative_to(site.store).parts[0] for path in site.store.rglob("*") if path.is_file()}
    assert left == {"log", "found", "results", "estimates", "stated", "receipts"}


def test_an_output_that_was_deleted_by_hand_is_said_and_not_made_again(tmp_path: Path, jobs: PlainJobs) -> None:
    """found/ and results/ were made from it, and a second release would be charged."""
    site = Site(tmp_path, discovery=True)
    leave(site.store, site.campaign, 0, {"reports": 100, "discovery": 100})
    site.run(1.1)
    ran = list(jobs.ran)
    for folder in ("shuffled", "released"):
        shutil.rmtree(site.store / folder)
    problems = site.run(1.2).problems
    assert [problem.partition("what ")[2].partition(" wrote is gone")[0] for problem in problems] == [
        "shuffle",
        "release",
    ]
    assert site.run(1.3).problems == []
    assert jobs.ran == ran
    hops = Logs(site.deployment).read("words").hops_of(site.batch(0))
    assert {name for name, hop in hops.items() if hop.gone} == {"shuffle", "release"}
    assert len(account_at(site, 1.4).differences) == 2
    assert not list(site.store.glob("shuffled/**/*"))


def test_a_summary_of_another_attempt_is_a_difference(tmp_path: Path, jobs: PlainJobs) -> None:
    site = Site(tmp_path)
    leave(site.store, site.campaign, 0, {"reports": 100})
    site.run(1.1)
    assert account_at(site, 1.2).differences == []
    out = site.store / "shuffled" / "words" / site.batch(0)
    mark = json.loads((out / SUMMARY).read_text())
    (out / mark["folder"]).rename(out / ("f" * 16))
    (out / SUMMARY).write_text(json.dumps({**mark, "folder": "f" * 16}))
    (said,) = account_at(site, 1.2).differences
    assert str(out) in said
    assert len(jobs.ran) == 2
