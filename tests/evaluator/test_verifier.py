"""The analyzer asks the real evaluator: by its token, after the epoch too, and as long as the key is there."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from analyzer.reveal import verify
from hushcount.discovery.oblivious import MOST_EVALUATIONS, Unanswered
from hushcount.discovery.pairs import name_of
from hushcount.errors import RetiredKey
from hushcount.wire.sealing import Sealer
from keys.directories import campaign_key
from keys.listing import next_key
from keys.rotation import retire
from pipelines.handover.evaluator_address import Evaluator
from tests.evaluator.running import BEGUN, evaluating, keys_of, make_asked_site, public_key
from tests.shuffler.collector.running import Site, wait_for, write_collection


def verifier(site: Site, address: str) -> Evaluator:
    token = site.base / "token"
    if not token.exists():
        token.touch(0o600)
        token.write_text("v" * 32 + "\n")
    return Evaluator(address, str(token))


def end(site: Site) -> None:
    """Let the epoch and its grace period be over."""
    past = (datetime.now(timezone.utc) - timedelta(minutes=1)).isoformat()
    write_collection(site, "words", [{**BEGUN[0], "ends": past, "grace_ends": past}])


def test_the_analyzer_verifies_after_the_epoch_and_until_the_key_is_destroyed(tmp_path: Path) -> None:
    site = make_asked_site(tmp_path)
    end(site)
    campaign = site.campaign()
    form, analyzer = campaign.discovery_format, bytes.fromhex(campaign.keys.analyzer[0].key)
    key = campaign_key(keys_of(site), "evaluator", campaign.keys.evaluator).read_evaluator()
    values = [f"value {number}" for number in range(MOST_EVALUATIONS + 5)]
    names = [name_of(output) for output in key.outputs([form.input(value) for value in values])]
    boxes = [
        Sealer(analyzer).seal_alike(form.binding + form.pad(value), name.box_key)
        for value, name in zip(values, names, strict=True)
    ]
    # The last ones lie under the hash of another value.
    honest = [*(name.hash for name in names[:-2]), names[0].hash, names[1].hash]
    opened = [(bin_hash + box, value) for bin_hash, box, value in zip(honest, boxes, values, strict=True)]
    with evaluating(site) as running:
        asks = verifier(site, running.url)
        asks.require(campaign)
        found, counts = verify(form, analyzer, opened, asks.ask(campaign), public_key(site))
        assert found == opened[:-2]
        assert counts == {"accepted": len(values) - 2, "unverified": 2}
        with pytest.raises(Unanswered, match=r"4\d\d.*epoch_closed"):
            Evaluator(running.url).require(campaign)
        retire(keys_of(site), next_key([keys_of(site)], datetime.now(timezone.utc)).id, early=True)

        def destroyed() -> bool:
            try:
                asks.require(campaign)
            except RetiredKey as retired:
                return "the released values of that epoch can never be verified" in str(retired)
            return False

        wait_for(destroyed)


def test_too_many_evaluations_name_the_setting_to_raise(tmp_path: Path) -> None:
    site = make_asked_site(tmp_path, evaluator={"most_evaluations_verifier": 2})
    with evaluating(site) as running:
        asks = verifier(site, running.url)
        asks.require(site.campaign())
        asks.require(site.campaign())
        with pytest.raises(Unanswered, match=r"429.*too_many_evaluations.*most_evaluations_verifier"):
            asks.require(site.campaign())


def test_a_wrong_token_is_refused_in_one_sentence(tmp_path: Path) -> None:
    site = make_asked_site(tmp_path)
    (tmp_path / "wrong").touch(0o600)
    (tmp_path / "wrong").write_text("w" * 32)
    with evaluating(site) as running, pytest.raises(Unanswered, match=r"401.*unauthorised"):
        Evaluator(running.url, str(tmp_path / "wrong")).require(site.campaign())
