"""Issuer, collector, evaluator and the client's sender, all real: passes are signed, shown and taken."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from hushcount.delivery import Issuer, Sender, Site
from tests.hushcount.delivery.test_real_collector import policy
from tests.issuer.running import ask_for_passes, authorization, issuing, make_issuer
from tests.shuffler.collector.running import make_site, running


def test_reports_of_accounts_arrive_and_a_cap_holds_for_each(tmp_path: Path) -> None:
    issuer_site = make_issuer(tmp_path / "issuer")
    site = make_site(tmp_path / "site", window="1d", collector={"authentication": "privacy-pass"})
    ask_for_passes(site, issuer_site)
    with issuing(issuer_site) as issuer, running(site) as collector:
        sent = 0
        for account in ("ann", "bob", "cid"):
            one = Sender(
                collector.url,
                policy(site),
                tmp_path / account,
                issuer=Issuer(Site(issuer.url), lambda account=account: authorization(account)),
                delay=timedelta(),
                strict=True,
            )
            one.report("word-1")
            sent += one.deliver(early=True).sent
        nobody = Sender(
            collector.url,
            policy(site),
            tmp_path / "nobody",
            issuer=Issuer(Site(issuer.url), lambda: "Bearer nobody"),
            delay=timedelta(),
        )
        nobody.report("word-1")
        done = nobody.deliver(early=True)
        assert (done.sent, done.waiting, done.no_pass) == (0, 2, True)
        assert any(event.what == "no_pass" and event.reason == "not_entitled" for event in nobody.log)
        collector.stop()
    assert sent == len(site.sealed()) + len(site.sealed("discovery")) == 6
    assert len({bytes(token) for rows in site.stored() for token in rows["client_token"]}) == 3
