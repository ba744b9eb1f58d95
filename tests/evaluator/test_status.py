"""`hushcount status` tells how much evaluators were asked, from their manifests."""

from __future__ import annotations

import json
from pathlib import Path

from tests.evaluator.running import VERIFIER, ask, evaluating, make_asked_site, manifests, some
from tests.shuffler.collector.running import LENGTH, wait_for
from tests.support.jobs import done


def test_status_adds_up_what_the_manifests_say(tmp_path: Path) -> None:
    site = make_asked_site(tmp_path)
    with evaluating(site) as evaluator:
        ask(evaluator, some(12))
        ask(evaluator, bytes(32))
        ask(evaluator, some(30), VERIFIER)
        evaluator.pass_by(LENGTH)
        wait_for(lambda: manifests(site))
    (path,) = (site.base / "store" / "evaluations").rglob("*.json")
    damaged = path.with_name("other-0123456789abcdef.json")
    damaged.write_text("{")
    (told,) = json.loads(done("status", "--config", site.config, "--json").out)
    asked = told["evaluations"]
    assert (asked["clients"], asked["verifier"], asked["refused"]) == (12, 30, {"bad_element": 1})
    assert asked["windows"] == [path.parent.name]
    assert [name.rpartition("/")[2] for name in asked["unreadable"]] == [damaged.name]
    shown = done("status", "--config", site.config).out
    assert "words: evaluations" in shown
    assert "bad_element 1" in " ".join(shown.split())
    assert damaged.name in shown.replace("\n", "")
