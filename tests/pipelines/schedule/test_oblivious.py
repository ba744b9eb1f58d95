"""Runs of an oblivious campaign: nothing is released that the evaluator does not verify, and what it does is found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from keys.listing import listed_keys
from keys.rotation import retire
from pipelines.audit.doctor import examine
from tests.support.collecting import collect
from tests.support.jobs import cli, done, found, refused
from tests.support.next_epoch import newest
from tests.support.site import Site, at, values

NAMED = 'evaluator = "evaluator"'
AWAY = 'evaluator = "http://127.0.0.1:1"'


@pytest.fixture
def site(tmp_path: Path) -> Site:
    site = Site(tmp_path, discovery=True, evaluator_keys=2)
    collect(site.store, site.campaign, values(300), day=0, evaluator=site.evaluator)
    return site


def name(site: Site, evaluator: str, more: str = "") -> None:
    """Let the analyzer ask another evaluator."""
    text = site.config.read_text()
    for named in (NAMED, AWAY):
        text = text.replace(named, evaluator)
    site.config.write_text(text + more)


def finding(site: Site, name: str, day: float) -> tuple[str, str] | None:
    said = [(check.verdict, check.says) for check in examine(site.deployment, at(day)) if check.name == name]
    return said[0] if said else None


def batch(site: Site, folder: str) -> Path:
    return site.store / folder / "words" / site.batch(0)


def test_what_is_found_was_verified_by_the_evaluator(site: Site) -> None:
    finished = site.run(1.1)
    assert finished.problems == []
    assert [hop.rpartition(" ")[2] for hop in finished.hops] == ["shuffle", "release", "discover", "analyze"]
    assert found(batch(site, "found")) == ["nobody"]
    (key,) = newest(site).keys.evaluator
    assert finding(site, "evaluator of words", 1.2) == ("good", f"answers with key {key.id}")


def test_while_the_evaluator_is_away_nothing_is_released_and_the_next_run_takes_it_up(site: Site) -> None:
    name(site, AWAY)
    finished = site.run(1.1)
    assert [hop.rpartition(" ")[2] for hop in finished.hops] == ["shuffle"]
    (problem,) = finished.problems
    assert "did not answer, so no discovered value can be verified" in problem
    assert not batch(site, "released").exists()
    said = finding(site, "evaluator of words", 1.2)
    assert said is not None
    assert said[0] == "bad"
    assert said[1] in problem
    name(site, NAMED)
    assert site.run(1.2).problems == []
    assert found(batch(site, "found")) == ["nobody"]


def test_without_an_evaluator_run_status_and_doctor_say_so(site: Site) -> None:
    text = site.config.read_text()
    site.config.write_text(text.replace(f"[analyzer]\n{NAMED}\n", ""))
    (problem,) = site.run(1.1).problems
    assert "campaign words is oblivious, so its values cannot be named without the evaluator" in problem
    assert "set evaluator under [analyzer]" in problem
    assert finding(site, "evaluator of words", 1.2) == (
        "bad",
        "epoch 1 is oblivious, but no evaluator is set: no discovered value can be verified: set evaluator under "
        "[analyzer] to its address or its key directory",
    )
    assert "warning: words: epoch 1 is oblivious, but no evaluator is set" in cli("status", "--config", site.config).err
    site.config.write_text(text.replace(NAMED, 'evaluator_token = "env:TOKEN"'))
    refused("run", "--config", site.config, says=["evaluator_token: needs evaluator"])


def test_after_its_key_was_destroyed_reports_are_counted_and_the_frequencies_come(site: Site) -> None:
    (key,) = newest(site).keys.evaluator
    retire(site.evaluator, key.id, early=True)
    finished = site.run(1.1)
    assert [hop.rpartition(" ")[2] for hop in finished.hops] == ["shuffle", "release", "discover", "analyze"]
    assert "the released values of that epoch can never be verified" in finished.problems[0]
    assert site.run(1.2).problems == []
    counted = json.loads((batch(site, "released") / "summary.json").read_text())
    assert counted["rejected"] == {"retired_key": 300}
    assert site.result(0)["accepted"] == 300


def test_the_doctor_says_when_a_key_is_due_and_overdue(site: Site) -> None:
    first, second = listed_keys([site.evaluator])
    one, two = (f"end of the evaluator key of epoch {number} of words" for number in (1, 2))
    site.run(1.1)
    assert finding(site, one, 1.2) == ("good", f"key {first.id} is in use")
    site.publish(2)
    # Reports of the first epoch come until the third day, so that the last window ends with the fourth day at most.
    collection = site.root / "campaigns" / "words" / "collection.json"
    data = json.loads(collection.read_text())
    data["epochs"][0]["grace_ends"] = at(3).isoformat()
    collection.write_text(json.dumps(data))
    assert newest(site).keys.evaluator == (second,)
    due = at(6).isoformat()
    assert finding(site, one, 5) == ("good", f"key {first.id} is needed until {due}")
    cure = f"hushcount keys retire --keys {site.evaluator} --id {first.id} --early"
    for day, verdict in ((6.1, "warning"), (13.1, "bad")):
        says = f"nothing has needed key {first.id} since {due}, and until it is destroyed guesses can be tested"
        assert finding(site, one, day) == (verdict, f"{says}: {cure}")
    done("keys", "retire", "--keys", site.evaluator, "--id", first.id, "--early", "--yes")
    assert finding(site, one, 13.1) is None
    assert finding(site, two, 13.1) == ("good", f"key {second.id} is in use")


def test_a_key_is_kept_for_what_waits_to_be_verified(site: Site) -> None:
    name(site, AWAY, '[evaluator]\nname = "one"\nkeys = "evaluator"\n')
    site.run(1.1)
    collection = site.root / "campaigns" / "words" / "collection.json"
    data = json.loads(collection.read_text())
    data["epochs"][0] |= {"ends": at(1).isoformat(), "grace_ends": at(3).isoformat()}
    collection.write_text(json.dumps(data))
    said = finding(site, "end of the evaluator key of epoch 1 of words", 13.1)
    assert said is not None
    assert said[0] == "warning"
    assert f"but job discover has not finished {site.batch(0)}" in said[1]
