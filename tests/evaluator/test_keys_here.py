"""Whose keys answer: pending and active ones that are there; a destroyed one stops within a second, and for good."""

from __future__ import annotations

import json
import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from evaluator import evaluator as module
from evaluator.keys_here import KeysHere
from hushcount.errors import HushcountError
from keys.directories import create, read_public
from keys.listing import PUBLIC_FILE
from keys.rotation import retire, rotate
from tests.evaluator.running import (
    VERIFIER,
    ask,
    destroy_evaluator_key,
    evaluating,
    keys_of,
    make_asked_site,
    make_oblivious,
    reason,
    some,
)
from tests.shuffler.collector.running import Site, add_campaign, now_text, wait_for, write_collection


def key_file(site: Site, epoch: int = 1) -> Path:
    (key,) = site.campaign(epoch=epoch).keys.evaluator
    return keys_of(site) / f"evaluator-{key.id}.key"


def test_a_destroyed_key_answers_nobody_within_a_second(tmp_path: Path) -> None:
    """At its next look: an evaluator looks twice a second, and here more often."""
    assert module._TICK_SECONDS <= 0.5
    site = make_asked_site(tmp_path)
    with evaluating(site) as evaluator:
        assert ask(evaluator, some(1)).status_code == 200
        destroy_evaluator_key(site)
        wait_for(lambda: ask(evaluator, some(1), VERIFIER).status_code == 410)
        for headers in (None, VERIFIER):
            assert reason(ask(evaluator, some(1), headers)) == (410, "key_destroyed")
        assert "holds no key" in evaluator.get("/readyz").text
    with evaluating(site) as evaluator:
        assert reason(ask(evaluator, some(1))) == (410, "key_destroyed")


def test_a_key_whose_file_is_missing_or_damaged_answers_nobody_and_is_tried_again(tmp_path: Path) -> None:
    """It is not taken for destroyed."""
    site = make_asked_site(tmp_path)
    path = key_file(site)
    good = path.read_bytes()
    with evaluating(site) as evaluator:
        for damage, told in ((Path.unlink, "holds no key"), (lambda path: path.write_bytes(b"{}"), path.name)):
            damage(path)
            wait_for(lambda: ask(evaluator, some(1), VERIFIER).status_code == 503)
            assert reason(ask(evaluator, some(1))) == (503, "key_unreadable")
            faults = evaluator.get("/readyz").json()["faults"]
            assert any(told in fault for fault in faults)
            assert not any("/" in fault for fault in faults)
            where = str(path if told == path.name else path.parent)
            wait_for(lambda: any(where in line.get("fault", "") for line in evaluator.events()))  # noqa: B023  # at once
            path.write_bytes(good)
            path.chmod(0o600)
            wait_for(lambda: ask(evaluator, some(1)).status_code == 200)


def test_each_epoch_is_answered_by_its_key_until_that_is_retired(tmp_path: Path) -> None:
    site = make_asked_site(tmp_path)
    first = key_file(site)
    copy = tmp_path / "copy"
    shutil.copy(first, copy)
    add_campaign(site, "words", 2)
    rotate(keys_of(site), overlap=timedelta(days=1))
    make_oblivious(site, epoch=2)
    begins = now_text(-5)
    epochs = [
        {"epoch": 1, "begins": "2020-01-01T00:00:00Z", "ends": begins, "grace_ends": now_text(3600)},
        {"epoch": 2, "begins": begins},
    ]
    write_collection(site, "words", epochs)
    with evaluating(site) as evaluator:
        for epoch in (1, 2):
            assert ask(evaluator, some(1), epoch=epoch).status_code == 200
        retire(keys_of(site), first.stem.rpartition("-")[2], early=True)
        wait_for(lambda: ask(evaluator, some(1), epoch=1).status_code == 410)
        assert ask(evaluator, some(1), epoch=2).status_code == 200
        # The key of an epoch that is over may be gone.
        assert evaluator.get("/readyz").json() == {"ready": True, "faults": []}
        # What is listed as retired answers nothing, also if its file comes back from a backup.
        shutil.copy(copy, first)
        # Nobody answers for a second key that is gone once the evaluator has looked again.
        key_file(site, 2).unlink()
        wait_for(lambda: ask(evaluator, some(1), VERIFIER, epoch=2).status_code == 503)
        assert ask(evaluator, some(1), epoch=1).status_code == 410


def test_after_the_grace_period_only_the_verifier_is_answered(tmp_path: Path) -> None:
    site = make_asked_site(tmp_path)
    ends = now_text(-60)
    write_collection(
        site, "words", [{"epoch": 1, "begins": "2020-01-01T00:00:00Z", "ends": ends, "grace_ends": now_text(-30)}]
    )
    with evaluating(site) as evaluator:
        assert reason(ask(evaluator, some(1))) == (409, "epoch_closed")
        assert ask(evaluator, some(1), VERIFIER).status_code == 200


def test_only_the_keys_that_campaigns_name_are_open(tmp_path: Path) -> None:
    create(tmp_path / "keys", 30, ("evaluator",))
    (key,) = read_public([tmp_path / "keys"]).evaluator
    keys = KeysHere(tmp_path / "keys")
    keys.look(["0" * 16])
    assert (len(keys), keys.faults) == (0, {})
    keys.look([key.id])
    held = keys.find(key.id)
    assert held is not None
    assert held.public_key.hex() == key.key
    keys.look([key.id])
    assert keys.find(key.id) is held
    listing = tmp_path / "keys" / PUBLIC_FILE
    told = json.loads(listing.read_text())
    told["keys"][0]["retired_at"] = told["keys"][0]["not_before"]
    listing.write_text(json.dumps(told))
    keys.look([key.id])
    assert keys.find(key.id) is None


def test_a_key_that_two_campaigns_name_answers_for_the_first_alone(tmp_path: Path) -> None:
    """An element says nothing of its campaign: each place would answer guesses about the other's hashes."""
    site = make_asked_site(tmp_path)
    add_campaign(site, "other", 1)
    make_oblivious(site, "other")
    write_collection(site, "words", [{"epoch": 1, "begins": "2020-01-01T00:00:00Z"}])
    write_collection(site, "other", [{"epoch": 1, "begins": "2021-01-01T00:00:00Z"}])
    with evaluating(site) as evaluator:
        assert ask(evaluator, some(1)).status_code == 200
        for headers in (None, VERIFIER):
            assert reason(ask(evaluator, some(1), headers, campaign="other")) == (503, "key_unreadable")
        assert "serves campaign words epoch 1 alone" in evaluator.get("/readyz").text


def test_while_nobody_knows_which_keys_are_destroyed_none_answers(tmp_path: Path) -> None:
    create(tmp_path / "keys", 30, ("evaluator",))
    (key,) = read_public([tmp_path / "keys"]).evaluator
    keys = KeysHere(tmp_path / "keys")
    keys.look([key.id])
    assert keys.find(key.id) is not None
    listing = tmp_path / "keys" / PUBLIC_FILE
    good = listing.read_text()
    listing.write_text("{")
    with pytest.raises(HushcountError):
        keys.look([key.id])
    assert keys.find(key.id) is None
    listing.write_text(good)
    keys.look([key.id])
    assert keys.find(key.id) is not None
