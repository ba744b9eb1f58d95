"""What an adversary found: hostile names of folders, dead letters in folders of a store, two spellings of an item."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hushcount.campaigns.campaign import Campaign
from pipelines.audit.doctor import examine
from pipelines.handover.paths import Batch
from pipelines.outputs.received_summary import folder_of
from pipelines.outputs.summary import make_summary
from pipelines.questions.items import items_table
from pipelines.questions.sources import from_store
from tests.support import site as support_site
from tests.support.collecting import collect
from tests.support.records import spoil
from tests.support.site import OBJECTS, Site, at, values
from tests.support.stub_store import StubStore


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


def test_dead_letters_in_the_folder_of_a_run_are_deleted(tmp_path: Path, store: type[StubStore]) -> None:
    site = Site(tmp_path, tail='[retention]\ndead_letters = "7d"\n')
    (segment,) = collect(site.store, site.campaign, values(101), day=0)
    spoil(segment)
    site.move_to_objects()
    assert site.run(1.1).problems == []
    out = f"{OBJECTS}/results/words/{site.batch(0)}"
    assert [path for path in store.objects if path.startswith(f"{folder_of(out)}/dead_letter/reports/not_opened")]
    site.run(9.1, sure=True)
    assert [path for path in store.objects if "dead_letter" in path] == []
    assert f"{out}/summary.json" in store.objects


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
