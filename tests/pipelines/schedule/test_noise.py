"""Runs of a campaign with noise of the mixes: what another party reads is one draw, whatever happens to a run."""

from __future__ import annotations

import os
import pickle
import shutil
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.draws import Draw
from hushcount.errors import HushcountError, UsageError
from keys.directories import KeyReference
from pipelines.files import storage
from pipelines.jobs import mix as mix_job
from pipelines.jobs import shuffle as shuffle_job
from pipelines.jobs.dummies import MakeDummies, form_of
from pipelines.jobs.mix import plan_mix
from pipelines.outputs.staging import Output
from pipelines.schedule.run import run
from pipelines.schedule.work import Vouched
from tests.support.clocks import stopped
from tests.support.collecting import collect
from tests.support.jobs import done, refused, summary
from tests.support.noise import NoiseSite
from tests.support.records import read_file
from tests.support.site import account_at, at, values
from tests.support.writes import Killed, acting_at, kill

MIXED = ("shuffled", "mixed")
"""The folders that another party reads."""


@pytest.fixture
def site(tmp_path: Path) -> NoiseSite:
    site = NoiseSite(tmp_path / "site")
    collect(site.store, site.campaign, values(300), day=0)
    return site


def handed(site: NoiseSite, day: int = 0) -> dict[str, list[bytes]]:
    """Return the records that parties elsewhere can read, in their order, by folder."""
    found: dict[str, list[bytes]] = {}
    for folder in MIXED:
        root = site.store / folder / "words" / site.batch(day)
        files = sorted(root.rglob("reports/*.blocks"))
        found[folder] = [row.tobytes() for path in files for row in read_file(path)[1]]
    return found


def hops_before(site: NoiseSite, day: int) -> dict[str, Any]:
    """Return what each hop before the result of a day counted."""
    return {str(hop["hop"]): hop for hop in site.result(day)["upstream"]}  # type: ignore[attr-defined]


def test_each_hop_counts_reports_and_hands_dummies_on_with_them(site: NoiseSite) -> None:
    finished = site.run(1.1)
    assert finished.problems == []
    assert [hop.rpartition(" ")[2] for hop in finished.hops] == ["shuffle", "mix", "analyze"]
    shown = site.result(0)
    assert (shown["received"], shown["accepted"], shown["rejected"]) == (300, 300, {})
    by_hop = hops_before(site, 0)
    assert all(hop["accepted"] == 300 for hop in by_hop.values())
    assert "dummies" not in by_hop["collect"]
    # Four cells of a mean of 29.8 dummies and a deviation of 3: beyond 60 lies less than 1e-9.
    first, both = by_hop["shuffle"]["dummies"], by_hop["mix"]["dummies"]
    assert abs(first - 119) < 60
    assert abs(both - first - 119) < 60
    assert {folder: len(found) for folder, found in handed(site).items()} == {
        "shuffled": 300 + first, "mixed": 300 + both
    }  # fmt: skip
    campaign = Campaign.read(site.campaign)
    assert {folder: {*map(len, found)} for folder, found in handed(site).items()} == {
        "shuffled": {campaign.layer_bytes}, "mixed": {campaign.box_bytes}
    }  # fmt: skip
    account = account_at(site, 1.2, past=True, digests=True)
    assert account.differences == []
    page = site.root / "page.html"
    done("dashboard", "--config", site.config, "--out", page)
    headings = [path.read_text() for path in (page, *(site.store / "results").rglob("report.html"))]
    assert len(headings) == 2
    headings.append(done("ask", "top", "--config", site.config).out)
    assert all("words (sealed, not randomised)" in text for text in headings)


def test_discovery_beside_noise_has_its_own_counts(tmp_path: Path) -> None:
    site = NoiseSite(tmp_path / "site", discovery=True)
    for day, number in enumerate((300, 90)):
        collect(site.store, site.campaign, values(number), day=day)
    twin = site.copied(tmp_path / "twin")
    for one in (site, twin):
        for day in (0, 1):
            finished = one.run(day + 1.1)
            assert finished.problems == []
            hops = [hop.rpartition(" ")[2] for hop in finished.hops]
            assert hops == ["shuffle", "release", "discover", "mix", "analyze"]
    assert account_at(site, 2.2, past=True, digests=True).differences == []
    released = summary(site.store / "released" / "words" / site.batch(0))
    assert released["streams"]["discovery"]["accepted"] == 300  # type: ignore[index]
    # Discovery reports of the first batch leave in another order, on which no dummy of the second depends.
    assert [handed(site, day) for day in (0, 1)] == [handed(twin, day) for day in (0, 1)]


# NOISE 1: one draw, bound to its input.


def test_the_same_input_gives_the_same_bytes_and_another_input_no_dummy_of_before(
    site: NoiseSite, tmp_path: Path
) -> None:
    # Clients over the cap: which report of each counts is drawn too.
    named = [f"client {number % 7}\t{value}" for number, value in enumerate(values(70))]
    collect(site.store, site.campaign, named, day=0, collector="more", clients=True)
    twin, other = (site.copied(tmp_path / name) for name in ("twin", "other"))
    collect(other.store, other.campaign, ["gamma"], day=0, collector="two")
    for one in (site, twin, other):
        assert one.run(1.1).problems == []
    first, again, changed = (handed(one) for one in (site, twin, other))
    assert first == again
    for folder in MIXED:
        # The 300 reports are in both, and some of the clients over the cap. If a dummy were, the rest would tell it.
        assert 300 <= len({*first[folder]} & {*changed[folder]}) <= 307
        assert first[folder] == sorted(first[folder])


def test_jobs_by_hand_and_streams_draw_nothing(site: NoiseSite, tmp_path: Path) -> None:
    lines = tmp_path / "lines.txt"
    lines.write_text("alpha\n")
    common = ("--campaign", site.campaign)
    done("job", "encode", *common, "--values", lines, "--out", tmp_path / "encoded")
    refused(
        "job", "shuffle", *common, "--input", tmp_path / "encoded", "--out", tmp_path / "shuffled",
        says=["has noise", "hushcount run"],
    )  # fmt: skip
    assert not (tmp_path / "shuffled").exists()


def test_a_mix_without_a_key_of_its_own_draws_nothing(site: NoiseSite) -> None:
    text = site.config.read_text()
    site.config.write_text(text.replace('sign_with = "signing"\n', ""))
    (problem,) = site.run(1.1).problems
    assert "sign_with" in problem
    assert handed(site) == {"shuffled": [], "mixed": []}


def of_log(site: NoiseSite, older: Path) -> None:
    shutil.rmtree(site.store / "log")
    shutil.copytree(older / "store" / "log", site.store / "log")


def without_log(site: NoiseSite, _: Path) -> None:
    shutil.rmtree(site.store / "log")


def of_store(site: NoiseSite, older: Path) -> None:
    shutil.rmtree(site.store)
    shutil.copytree(older / "store", site.store)


def of_ledger(site: NoiseSite, older: Path) -> None:
    shutil.copyfile(older / "ledger.db", site.root / "ledger.db")


def without_ledger(site: NoiseSite, _: Path) -> None:
    (site.root / "ledger.db").unlink()


def without_outputs(site: NoiseSite, _: Path) -> None:
    for folder in (*MIXED, "results"):
        shutil.rmtree(site.store / folder)


def of_nothing(_: NoiseSite, __: Path) -> None:
    """Late reports alone."""


def without_a_segment(site: NoiseSite, _: Path) -> None:
    next((site.store / "segments").rglob(f"{site.batch(1)[:16]}/reports/*.blocks")).unlink()


@pytest.mark.parametrize(
    "incident",
    [of_log, without_log, of_store, of_ledger, without_ledger, without_outputs, of_nothing, without_a_segment],
)
def test_no_restore_makes_a_batch_anew(
    site: NoiseSite, tmp_path: Path, incident: Callable[[NoiseSite, Path], None]
) -> None:
    """Each row of docs/backup.md, what the page says, and more runs, each time with another input."""
    assert site.run(1.1).problems == []
    older = site.copied(tmp_path / "older")
    collect(site.store, site.campaign, values(200), day=1)
    assert site.run(2.1).problems == []
    published = [handed(site, day) for day in (0, 1)]
    assert all(len(found[folder]) > 200 for found in published for folder in MIXED)
    incident(site, older.root)
    collect(site.store, site.campaign, ["gamma"], day=1, collector="two", came=1.5)
    said = Vouched(), Vouched(log_was_restored=True), Vouched(ledger_was_lost=True), Vouched(clock_is_right=True)
    for number, vouched in enumerate(said):
        # A run may refuse to begin, which is as good.
        with suppress(HushcountError):
            run(site.deployment, clock=stopped(at(3.1 + number)), vouched=vouched)
        for day, before in enumerate(published):
            now = handed(site, day)
            assert all(now[folder] in ([], before[folder]) for folder in MIXED), (incident.__name__, vouched)


@pytest.mark.long
def test_a_run_that_is_killed_anywhere_hands_on_one_draw(site: NoiseSite, tmp_path: Path) -> None:
    whole = site.copied(tmp_path / "whole")
    assert whole.run(1.1).problems == []
    expected = handed(whole)
    for number in count(1):
        twin = site.copied(tmp_path / "twin")
        with acting_at(number, kill) as writes, suppress(Killed):
            twin.run(1.1)
        seen = handed(twin)
        assert all(seen[folder] in ([], expected[folder]) for folder in MIXED), writes.names
        assert twin.run(1.1).problems == []
        assert handed(twin) == expected, writes.names
        if not writes.is_over:
            break
        shutil.rmtree(twin.root)
    assert number > 20


# NOISE 2: a batch is one window.


def renamed(site: NoiseSite, segments: list[Path], day: int) -> None:
    """Let reports of a window arrive in the window of another day."""
    (old,) = {path.parents[1] for path in segments}
    new = old.with_name(site.batch(day)[:16])
    shutil.move(old, new)
    for path in new.glob("*.manifest.json"):
        path.write_text(path.read_text().replace(old.name, new.name))
        os.utime(path, (at(day + 1).timestamp(), at(day + 1).timestamp()))


def test_reports_that_arrive_after_their_window_are_counted_and_lost(site: NoiseSite) -> None:
    assert site.run(1.1).problems == []
    collect(site.store, site.campaign, values(30), day=0, collector="two", came=1.5)
    collect(site.store, site.campaign, values(60), day=1)
    finished = site.run(2.1)
    assert finished.problems == []
    shown = site.result(1)
    # No client has more reports in this batch than before.
    assert (shown["accepted"], shown["ledger"]["charged"]["epsilon"]) == (60, 1.0)  # type: ignore[index]
    by_hop = hops_before(site, 1)
    assert by_hop["shuffle"]["rejected"] == {"other_window": 30}
    assert account_at(site, 2.2).differences == []


def test_reports_of_other_windows_alone_wait_for_a_batch_that_counts_them_as_lost(site: NoiseSite) -> None:
    renamed(site, collect(site.store, site.campaign, values(3), day=1), day=2)
    finished = site.run(3.1, sure=True)
    assert [hop for hop in finished.hops if site.batch(2) in hop] == []
    assert handed(site, 2) == {"shuffled": [], "mixed": []}
    collect(site.store, site.campaign, values(9), day=3)
    assert site.run(4.1, sure=True).problems == []
    by_hop = hops_before(site, 3)
    assert (by_hop["shuffle"]["accepted"], by_hop["shuffle"]["rejected"]) == (9, {"other_window": 3})


def test_a_damaged_segment_loses_the_reports_of_its_window_and_the_run_says_so(site: NoiseSite, tmp_path: Path) -> None:
    (damaged,) = collect(site.store, site.campaign, values(9), day=0, collector="two")
    for number in count(1):
        twin = site.copied(tmp_path / "twin")
        with acting_at(number, kill), suppress(Killed):
            twin.run(1.1)
        if list((twin.store / "attempts").rglob("*.blocks")):
            break
        shutil.rmtree(twin.root)
    path = twin.store / damaged.relative_to(site.store)
    path.write_bytes(path.read_bytes()[:-7])
    problems = twin.run(1.2).problems
    assert any("other_window" in problem for problem in problems)
    assert handed(twin) == {"shuffled": [], "mixed": []}
    collect(twin.store, twin.campaign, values(60), day=1)
    twin.run(2.1, sure=True)
    by_hop = hops_before(twin, 1)
    assert (by_hop["shuffle"]["accepted"], by_hop["shuffle"]["rejected"]) == (60, {"other_window": 300})


# NOISE 3: who reads the secret subtracts the noise.


def test_the_secret_of_a_draw_is_in_no_graph_file_or_folder(
    site: NoiseSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draws: list[Draw] = []
    for module in (shuffle_job, mix_job):
        made = partial(_kept, draws, module.Draw)
        monkeypatch.setattr(module, "Draw", made)
    temporary, removed = tmp_path / "temporary", storage.remove_directory
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    # Nothing is removed, so that all is searched that a disk may keep.
    monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: None)
    assert site.run(1.1).problems == []
    assert removed is storage.remove_directory
    assert len({draw.context for draw in draws}) == 2
    secrets = [draw.opened() for draw in draws]
    campaign = Campaign.read(site.campaign)
    graph = pickle.dumps([MakeDummies(form_of(campaign, 0), draw, 9) for draw in draws])
    files = [path for path in (*site.root.rglob("*"), *temporary.rglob("*")) if path.is_file()]
    assert len(files) > 20
    held = [graph, *(path.read_bytes() for path in files)]
    for secret in secrets:
        assert not any(secret[:8] in content or secret.hex()[:16].encode() in content for content in held)
    # The search finds what is there: the context, which is no secret.
    assert draws[0].context in graph


def _kept(draws: list[Draw], draw: Callable[[KeyReference, bytes], Draw], *arguments: object) -> Draw:
    made = draw(*arguments)  # type: ignore[arg-type]
    draws.append(made)
    return made


# NOISE 5 and 8: another campaign file, and the bound.


def test_a_mix_takes_no_batch_of_another_campaign_file(site: NoiseSite, tmp_path: Path) -> None:
    assert site.run(1.1).problems == []
    other = tmp_path / "words.json"
    other.write_text(site.campaign.read_text().replace("1e-08", "1.1e-08"))
    for path in site.campaign.parent.glob("*.txt"):
        shutil.copy(path, tmp_path)
    source = str(site.store / "shuffled" / "words" / site.batch(0))
    with pytest.raises(UsageError, match="campaign"):
        plan_mix(other, source, site.keys, Output(str(tmp_path / "out")), window=site.batch(0)[:16])
    assert not (tmp_path / "out").exists()


def test_dummies_look_like_reports(site: NoiseSite) -> None:
    """Each record's bytes behind the clear key of its box are uniform: their mean tells no dummy from a report."""
    assert site.run(1.1).problems == []
    for found in handed(site).values():
        lengths = {len(record) for record in found}
        assert len(lengths) == 1
        octets = np.frombuffer(b"".join(found), dtype=np.uint8).reshape(len(found), -1)
        # More than 400 records of more than 90 bytes: six deviations of a mean of uniform bytes, 2e-9.
        assert abs(octets.mean() - 127.5) < 6 * 74 / np.sqrt(octets.size)
