"""The account of a campaign: what is stored and not taken in, and outputs that differ from the log."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hushcount.collection.windows import window_text
from pipelines.audit.doctor import examine
from tests.support.collecting import collect, window_name
from tests.support.jobs import cli
from tests.support.site import Site, account_at, at, values


def test_what_is_stored_and_not_looked_at_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the first run, and when the run is down."""
    monkeypatch.setenv("COLUMNS", "400")
    site = Site(tmp_path)
    # Days ago: the command goes by the real clock.
    collect(site.store, site.campaign, values(60), day=-3)
    status = cli("status", "--config", site.config)
    assert status.status == 1
    assert "WAITS 60 reports are stored, but no run has taken them in: its log is empty" in status.out
    assert (
        f"DIFFERENCE words: no run has closed window {window_text(window_name(-3))}, which is due since" in status.out
    )
    assert "all numbers agree" not in status.out
    site.run(-1.9)
    status = cli("status", "--config", site.config)
    assert (status.status, "WAITS" in status.out) == (0, False)
    collect(site.store, site.campaign, values(70), day=-2)
    status = cli("status", "--config", site.config, "--json")
    assert status.status == 1
    (account,) = status.json
    assert account["windows"][-1] == {
        "window": window_name(-2), "stream": "reports", "received": 70, "states": {"stored": 70},
    }  # fmt: skip
    assert account["latest"] == at(-1.9).isoformat()


def test_a_manifest_that_cannot_be_read_is_named_by_its_path(site: Site) -> None:
    (manifest,) = site.store.glob("segments/words/*/*/one.manifest.json")
    broken = manifest.with_name("two.manifest.json")
    broken.write_text("{}")
    (says,) = account_at(site, 1.2).differences
    assert says.startswith(str(broken))


def test_a_batch_that_no_run_can_shuffle_is_a_difference_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(tmp_path)
    collect(site.store, site.campaign, values(60), day=0)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("pipelines.jobs.together._run_graph", full)
        assert len(site.run(1.1).problems) == 1
    # The next window and the grace of this one.
    assert account_at(site, 4).differences == []
    (said,) = account_at(site, 4.1).differences
    assert f"{site.batch(0)}: 60 reports are in this batch since" in said
    assert site.run(4.1).problems == []
    assert account_at(site, 4.2).differences == []


def lose_output(output: Path) -> None:
    shutil.rmtree(output)


def lose_files(output: Path) -> None:
    shutil.rmtree(output / json.loads((output / "summary.json").read_text())["folder"])


def alter_summary(output: Path) -> None:
    summary = json.loads((output / "summary.json").read_text())
    (output / "summary.json").write_text(json.dumps({**summary, "accepted": summary["accepted"] - 1}))


OUTPUTS = [
    (lose_output, "{output} is missing, though hushcount job analyze wrote it"),
    (lose_files, " is missing, though hushcount job analyze wrote it"),
    (alter_summary, "{output}/summary.json is not what entry 3 of the log says, though hushcount job analyze wrote it"),
]


@pytest.mark.parametrize(("change", "says"), OUTPUTS)
def test_an_output_that_is_not_what_its_entry_says_is_a_difference(
    site: Site, change: Callable[[Path], None], says: str
) -> None:
    output = site.store / "results" / "words" / site.batch(0)
    assert account_at(site, 1.2).differences == []
    change(output)
    (difference,) = account_at(site, 1.2).differences
    assert says.format(output=output) in difference


def test_a_stream_that_was_handed_on_and_is_gone_is_a_difference(site: Site) -> None:
    (stream,) = site.store.glob(f"shuffled/words/{site.batch(0)}/*/reports")
    shutil.rmtree(stream)
    (difference,) = account_at(site, 1.2).differences
    assert str(stream) in difference


def test_files_of_windows_that_are_long_over_are_compared_only_if_asked(site: Site) -> None:
    for day in range(1, 8):
        collect(site.store, site.campaign, values(60), day=day)
    site.run(8.1, sure=True)
    lose_output(site.store / "results" / "words" / site.batch(0))
    assert account_at(site, 8.2).differences == []
    (difference,) = account_at(site, 8.2, digests=True).differences
    assert site.batch(0) in difference
    (numbers,) = (check for check in examine(site.deployment, at(8.2)) if check.name == "numbers of words")
    assert (numbers.verdict, numbers.says) == ("bad", f"1 do not agree: hushcount status --digests -c {site.config}")
    lose_output(site.store / "results" / "words" / site.batch(1))
    (difference,) = account_at(site, 8.2).differences
    assert site.batch(1) in difference


def test_an_output_that_the_log_does_not_know_is_a_difference(site: Site) -> None:
    """The log is an older copy; a run that believed it would count the same reports again."""
    before = site.copied(site.root.parent / "before")
    collect(site.store, site.campaign, values(60), day=1)
    site.run(2.1)
    assert account_at(site, 2.2).differences == []
    shutil.rmtree(site.store / "log")
    shutil.copytree(before.store / "log", site.store / "log")
    for past in (False, True):
        told = account_at(site, 2.2, past=past).differences
        unknown = [says for says in told if "was lost, or is an older copy" in says]
        assert [says.partition(" was lost")[0] for says in unknown] == [
            f"the log of {party}" for party in ("shuffler", "analyzer")
        ]
        assert all("1 outputs are of batches that it does not know" in says for says in unknown)
    (problem,) = site.run(2.2).problems
    assert problem == f"words: {unknown[0]}"
    # The log of one party alone is lost.
    shutil.rmtree(site.store / "log")
    shutil.copytree(before.store / "log", site.store / "log")
    shutil.rmtree(site.store / "log" / "analyzer")
    (says,) = (one for one in account_at(site, 1.2).differences if "the log of analyzer was lost" in one)
    assert f"ledger {site.root / 'ledger.db'} follows its entry" in says
    (site.root / "ledger.db").unlink()
    assert any("1 outputs are of batches" in says for says in account_at(site, 1.2).differences)
