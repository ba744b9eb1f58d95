"""What an adversary found of the mends: outputs that outlived the state, hostile names, folders of runs in a store."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hushcount.campaigns.campaign import Campaign
from pipelines.asking.items import items_table
from pipelines.asking.sources import from_store
from pipelines.audit.doctor import examine
from pipelines.files import storage
from pipelines.handover.names import Batch
from pipelines.outputs.received_summary import folder_of
from pipelines.outputs.staging import Writer, staged, sweep
from pipelines.outputs.summary import make_summary
from tests.support import site as support_site
from tests.support.collecting import collect
from tests.support.plain_jobs import PlainJobs, leave
from tests.support.site import Site, account_at, at, values
from tests.support.stub_store import StubStore

EARLY = '[retention]\nshuffled = "7d"\nreleased = "7d"\ndead_letters = "7d"\n'
ALL = f'{EARLY}segments = "7d"\n'


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> PlainJobs:
    monkeypatch.setattr("pipelines.schedule.hops.require_keys", lambda *_: None)
    return PlainJobs(monkeypatch)


@pytest.mark.parametrize("kept", [EARLY, ALL], ids=["segments-stand", "all-gone"])
def test_what_may_have_been_in_a_batch_whose_file_is_gone_is_said_and_not_counted_again(
    tmp_path: Path, jobs: PlainJobs, kept: str
) -> None:
    site = Site(tmp_path, tail=kept)
    leave(site.store, site.campaign, 0, {"reports": 200})
    assert site.run(1.1).problems == []
    site.run(9, sure=True)
    for file in (site.store / "batches" / "words").iterdir():
        file.unlink()
    site.run(9.1, sure=True)
    Path(site.deployment.state).unlink()
    leave(site.store, site.campaign, 0, {"reports": 80}, collector="two")
    done = site.run(9.2, sure=True)
    assert [hop for hop, _ in jobs.ran] == ["shuffle", "analyze"]
    dropped = 280 if kept == EARLY else 80
    assert sum(window.states.get("too_late", 0) for window in account_at(site, 9.2).windows) == dropped
    assert len(done.dropped) == (2 if kept == EARLY else 1)


def test_a_folder_named_after_no_window_stops_nobody(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for party in ["analyzer", "aux-server"]:
        with subtests.test(party=party):
            (tmp_path / party).mkdir()
            site = Site(tmp_path / party, discovery=True)
            site.config.write_text(f'parties = ["{party}"]\n{site.config.read_text()}')
            campaign = Campaign.read(site.campaign)
            window = "20261399T999999Z"
            name = f"{window}-000001-{campaign.fingerprint.hex()[:16]}"
            folder = site.store / "shuffled" / "words" / name
            folder.mkdir(parents=True)
            summary = replace(make_summary("shuffle", campaign, {}, None), batch=name, window=window)
            (folder / "summary.json").write_text(json.dumps(summary.data()))
            assert Batch.named("words", name) is None
            for day in (1.1, 1.2):
                assert site.run(day).problems == []
            examine(site.deployment, at(1.3))


def test_dead_letters_in_the_folder_of_a_run_are_deleted(tmp_path: Path) -> None:
    site = Site(tmp_path, tail='[retention]\ndead_letters = "7d"\n', settings=f'state = "{tmp_path}/state.db"')
    folder = "stub://bucket/store"
    site.config.write_text(site.config.read_text().replace('store = "store"', f'store = "{folder}"'))
    StubStore.clear()
    collect(site.store, site.campaign, values(100), day=0)
    for path in sorted(one for one in site.store.rglob("*") if one.is_file()):
        StubStore.put(f"{folder}/{path.relative_to(site.store)}", path.read_bytes())
    assert site.run(1.1).problems == []
    out = f"{folder}/shuffled/words/{site.batch(0)}"
    # Of the run that the mark names, and of one that lost its lock.
    for one in (folder_of(out), f"{out}/0000000009-0123456789abcdef"):
        StubStore.put(f"{one}/dead_letter/part.blocks", b"sealed reports")
    site.run(9.1, sure=True)
    assert [path for path in StubStore.objects if "dead_letter" in path] == []
    assert f"{out}/summary.json" in StubStore.objects


def test_on_a_disk_too_a_sweep_leaves_what_a_later_run_makes(tmp_path: Path) -> None:
    out = str(tmp_path / "shuffled" / "batch")
    with staged(out, False, Writer(2)) as made:
        sweep(out, Writer(1))
        storage.write_json(storage.join(made, "summary.json"), {"hop": "shuffle"})
    assert (tmp_path / "shuffled" / "batch" / "summary.json").exists()
    killed = tmp_path / "shuffled" / ".batch.0000000001-0123456789abcdef.partial"
    killed.mkdir()
    sweep(out, Writer(2))
    assert not killed.exists()


def test_a_question_answers_for_both_spellings_of_an_item(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In an open domain the other spelling would be another item, which nobody reported: a wrong answer, unsaid."""
    made = support_site.new_campaign
    monkeypatch.setattr(
        support_site, "new_campaign",
        lambda *given, **other: made(*given, **{**other, "dictionary": None, "mechanism": "gcms", "epsilon": 8.0}),
    )  # fmt: skip
    site = Site(tmp_path)
    collect(site.store, site.campaign, ["cafe\u0301", "caf\u00e9"] * 100, day=0)
    assert site.run(1.1).problems == []
    source = from_store(site.deployment, "words")
    one, other = (items_table(source, [item]).to_pylist() for item in ("caf\u00e9", "cafe\u0301"))
    assert one == other
    # By chance less often than 1 in 1,000,000: ten standard errors, and no other item that could collide.
    assert one[0]["standard_error"] < 10.0
    assert one[0]["count"] > 100.0
