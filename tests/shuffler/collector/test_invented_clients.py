"""Whoever invents clients counts as many with client tokens, and as many as its issuer says with passes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hushcount.passes.blind_signatures import KEY_BYTES
from hushcount.passes.tokens import Token, key_id_of
from tests.hushcount.delivery.fake_issuer import key
from tests.shuffler.collector.running import make_site, running
from tests.shuffler.collector.test_passes import clients, post, shown, taking, today

INVENTED = int(os.environ.get("INVENTED_CLIENTS", "200"))
OWN = 3


@pytest.mark.parametrize("way", ["client-token", "privacy-pass"])
def test_invented_clients_count_as_tokens_and_not_as_passes(tmp_path: Path, way: str) -> None:
    if way == "client-token":
        site = make_site(tmp_path / "site", collector={"authentication": way, "most_reports_a_client": 1})
        with running(site) as collector:
            body = site.campaign().sealed_bytes("reports")
            said = [
                collector.post(os.urandom(body), headers={"client-token": os.urandom(16).hex()}).status_code
                for _ in range(INVENTED)
            ]
            collector.stop()
        assert said == [202] * INVENTED
        assert len(clients(site)) == INVENTED
        return
    with taking(tmp_path / "site") as collector:
        slot = today(collector.site)
        own = [shown(slot) for _ in range(OWN)]
        key_id = key_id_of(key(1)[0].to_bytes(KEY_BYTES, "big"))
        made = (Token(os.urandom(32), slot.challenge_digest, key_id, os.urandom(KEY_BYTES)) for _ in range(INVENTED))
        assert {post(collector, one.header) for one in made} == {"wrong_signature"}
        assert [post(collector, own[number % OWN]) for number in range(INVENTED)].count("taken") == 2 * OWN
        collector.stop()
        assert len(clients(collector.site)) == OWN
