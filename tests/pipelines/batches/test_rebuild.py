"""A state that was restored from a copy, or deleted: what was done stands in the store, and is taken from there."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from keys.listing import read_listing
from keys.rotation import retire, rotate
from pipelines.schedule.run import Done
from tests.support.collecting import DAY, collect
from tests.support.jobs import done, files_under, refused
from tests.support.site import Site, account_at, values

EARLY = '[retention]\nshuffled = "7d"\nreleased = "7d"\ndead_letters = "7d"\n'
ALL = f'{EARLY}segments = "7d"\n'


def charges(site: Site) -> Any:
    return done("ledger", "show", "--ledger", site.root / "ledger.db", "--json").json


def counted(site: Site, day: float) -> dict[tuple[str, str, str], tuple[int, int]]:
    """Return what each hop received and accepted, by batch, hop and stream; no two numbers may differ."""
    account = account_at(site, day)
    assert account.differences == []
    return {(hop.batch, hop.hop, hop.stream): (hop.received, hop.accepted) for hop in account.hops}


@pytest.mark.parametrize("loss", ["restored", "deleted"])
@pytest.mark.long(but=("restored",))
def test_what_comes_late_joins_no_batch_that_the_state_forgot(tmp_path: Path, loss: str) -> None:
    site = Site(tmp_path)
    state = Path(site.deployment.state)
    site.run(0.5)
    yesterday = shutil.copy(state, tmp_path / "yesterday.db")
    collect(site.store, site.campaign, values(200), day=0)
    assert site.run(1.1).problems == []
    before = counted(site, 1.1)
    state.unlink()
    if loss == "restored":
        shutil.copy(yesterday, state)
    collect(site.store, site.campaign, values(70), day=0, collector="two")
    assert site.run(1.2).problems == []
    assert counted(site, 1.2) == before
    collect(site.store, site.campaign, values(100), day=1)
    site.run(2.1)
    assert [site.result(day)["received"] for day in (0, 1)] == [200, 170]
    account = account_at(site, 2.1)
    assert [window.states for window in account.windows] == [{"batched": 270}, {"batched": 100}]
    assert account.differences == []


@pytest.mark.parametrize("kept", [EARLY, ALL], ids=["segments-stand", "all-gone"])
@pytest.mark.long(but=("segments-stand",))
def test_nothing_is_released_again_after_retention(tmp_path: Path, kept: str) -> None:
    site = Site(tmp_path, discovery=True, tail=kept)
    collect(site.store, site.campaign, values(200), day=0)
    site.run(1.1)
    assert site.run(9, sure=True).deleted
    before, numbers = charges(site), counted(site, 9)
    Path(site.deployment.state).unlink()
    result = files_under(site.store / "results")
    assert site.run(9.1, sure=True).problems == []
    assert (charges(site), files_under(site.store / "results")) == (before, result)
    assert not (site.store / "shuffled" / "words" / site.batch(0)).exists()
    assert counted(site, 9.1) == (numbers if kept == EARLY else {})


@pytest.mark.parametrize("fault", ["retired", "damaged", "missing"])
@pytest.mark.long(but=("retired",))
def test_nothing_is_released_that_the_analyzer_cannot_open(tmp_path: Path, fault: str) -> None:
    site = Site(tmp_path, discovery=True)
    (key,) = site.keys.glob("analyzer-*.key")
    if fault == "retired":
        id = key.stem.removeprefix("analyzer-")
        (listed,) = (one for one in read_listing(site.keys).keys if one.id == id)
        # Whatever the day is by now: no key is pending any more a second after it began.
        later = listed.not_before + timedelta(seconds=1)
        rotate(site.keys, overlap=DAY, now=later)
        retire(site.keys, id, early=True, now=later)
    elif fault == "damaged":
        key.write_bytes(key.read_bytes()[:-20])
    else:
        aside = key.rename(tmp_path / "aside.key")
    collect(site.store, site.campaign, values(200), day=0)
    finished = site.run(1.1)
    assert finished.problems
    assert not (site.root / "ledger.db").exists() or charges(site) == []
    if fault == "retired":
        assert [(hop, number[1]) for (_, hop, _), number in counted(site, 1.1).items() if hop != "shuffle"] == [
            ("release", 0), ("discover", 0), ("analyze", 0),
        ]  # fmt: skip
        assert site.run(1.2) == Done()
    if fault == "missing":
        aside.rename(key)
        assert site.run(1.2).problems == []
        assert site.result(0)["accepted"] == 200


def test_a_key_by_hand_is_looked_at_before_anything_is_charged(tmp_path: Path) -> None:
    site = Site(tmp_path, discovery=True)
    (key,) = site.keys.glob("analyzer-*.key")
    key.write_bytes(key.read_bytes()[:-20])
    ledger, given = tmp_path / "ledger.db", ("--campaign", site.campaign, "--keys", site.keys, "--input", tmp_path)
    for job in ("discover", "analyze"):
        refused(job, *given, "--out", tmp_path / "out", "--ledger", ledger, says=[key.name])
    assert not ledger.exists()
