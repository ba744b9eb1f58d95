"""An evaluator takes passes for itself, and counts a client's evaluations by their nonces."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

from hushcount.passes.slots import slot_at
from tests.evaluator.running import VERIFIER, ask, evaluating, make_asked_site, reason, some
from tests.hushcount.delivery.fake_issuer import pass_keys
from tests.shuffler.collector.running import Site
from tests.shuffler.collector.test_passes import change_passes, shown

MOST = 20
COLLECTOR_KEY, OWN_KEY = 2, 3
"""Numbers of today's keys."""


def site_with_passes(base: Path) -> Site:
    site = make_asked_site(base, window="1d", evaluator={"authentication": "privacy-pass"})
    keys = pass_keys(2)
    change_passes(site, 1, keys.part().model_dump(mode="json"))
    site.campaign_file().with_name("passes.json").write_text(keys.model_dump_json())
    return site


def test_only_its_own_passes_are_taken_and_each_nonce_has_one_limit(tmp_path: Path) -> None:
    now = datetime.now(timezone.utc)
    noon = now.replace(hour=12, minute=0, second=0, microsecond=0)
    site = site_with_passes(tmp_path / "site")
    own = slot_at(site.campaign(), "evaluator", "evaluator", noon.timestamp())
    theirs = slot_at(site.campaign(), "collector", "one", noon.timestamp())
    with evaluating(site, noon - now) as evaluator:
        assert ask(evaluator, some(1), VERIFIER).status_code == 200
        assert reason(ask(evaluator, some(1), {"client-token": "a" * 16})) == (401, "unauthorised")
        assert reason(ask(evaluator, some(1), {"authorization": shown(theirs, COLLECTOR_KEY)})) == (401, "wrong_slot")
        assert reason(ask(evaluator, some(1), {"authorization": shown(own, COLLECTOR_KEY)})) == (401, "wrong_signature")
        one, again = ({"authorization": shown(own, OWN_KEY, b"n" * 32)} for _ in range(2))
        assert ask(evaluator, some(MOST), one).status_code == 200
        assert ask(evaluator, some(1), again).status_code == 429
        assert ask(evaluator, some(MOST), {"authorization": shown(own, OWN_KEY)}).status_code == 200
