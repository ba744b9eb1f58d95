"""A collector takes passes of its issuer, for itself and for now, and counts the cap by their nonces."""

from __future__ import annotations

import base64
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.parts import DAY_SECONDS, PassesPart
from hushcount.passes.blind_signatures import KEY_BYTES, encoded
from hushcount.passes.slots import Slot, slot_at
from hushcount.passes.tokens import key_id_of, message_of, token_of
from service.passes import Passes
from service.refusals import Refused
from tests.hushcount.delivery.fake_issuer import key, pass_keys
from tests.shuffler.collector.running import (
    Running,
    Site,
    add_campaign,
    make_site,
    now_text,
    running,
    wait_for,
    write_collection,
)

DAY = timedelta(days=1)
MOST = 2


def site_with_passes(base: Path, window: str = "1d", way: str = "privacy-pass") -> Site:
    """Return a deployment; its keys are good from yesterday on, one for each day."""
    settings = {"authentication": way, **({} if way == "none" else {"most_reports_a_client": MOST})}
    site = make_site(base, window=window, collector=settings)
    keys = pass_keys()
    change_passes(site, 1, keys.part().model_dump(mode="json"))
    site.campaign_file().with_name("passes.json").write_text(keys.model_dump_json())
    return site


@contextmanager
def taking(base: Path) -> Iterator[Running]:
    """Run a collector at noon, so that no test meets midnight."""
    now = datetime.now(timezone.utc)
    noon = now.replace(hour=12, minute=0, second=0, microsecond=0)
    site = site_with_passes(base)
    with running(site, ahead=noon - now) as collector:
        yield collector


def shown(slot: Slot, number: int = 1, nonce: bytes = b"") -> str:
    """Return the header of a pass for a slot, signed with one of the tests' keys; number 1 is today's."""
    modulus, exponent = key(number)
    message = message_of(nonce or os.urandom(32), slot, key_id_of(modulus.to_bytes(KEY_BYTES, "big")))
    signature = pow(encoded(message, os.urandom(48)), exponent, modulus).to_bytes(KEY_BYTES, "big")
    return token_of(message, signature).header


def today(site: Site, days: int = 0, name: str = "one") -> Slot:
    noon = datetime.now(timezone.utc).replace(hour=12) + days * DAY
    return slot_at(site.campaign(), "collector", name, noon.timestamp())


def changed(header: str) -> str:
    """Return a header with another last letter of the signature."""
    return header[:-2] + ("B" if header[-2] == "A" else "A") + '"'


def clients(site: Site) -> set[bytes]:
    """Return the hashes of all client tokens in the store."""
    return {bytes(token) for rows in site.stored() for token in rows["client_token"]}


def post(collector: Running, header: str | None, reports: int = 1) -> str:
    """Post reports, and return "taken" or the name of the problem."""
    body = os.urandom(reports * collector.site.campaign().sealed_bytes("reports"))
    reply = collector.post(body, headers={} if header is None else {"authorization": header})
    return "taken" if reply.status_code == 202 else reply.json()["type"].rpartition(":")[2]


def test_a_pass_is_taken_and_its_repetition_counts_against_the_cap(tmp_path: Path) -> None:
    with taking(tmp_path / "site") as collector:
        mine, other = shown(today(collector.site)), shown(today(collector.site))
        assert [post(collector, mine) for _ in range(MOST + 2)] == ["taken"] * MOST + ["too_many_reports"] * 2
        assert post(collector, other) == "taken"
        # Another signature of the same nonce is the same client.
        nonce = b"n" * 32
        twice = [shown(today(collector.site), nonce=nonce) for _ in range(MOST + 1)]
        assert twice[0] != twice[1]
        assert [post(collector, one) for one in twice] == ["taken"] * MOST + ["too_many_reports"]


def test_the_nonce_and_not_the_pass_names_the_client_in_the_store(tmp_path: Path) -> None:
    with taking(tmp_path / "site") as collector:
        one, other = shown(today(collector.site), nonce=b"n" * 32), shown(today(collector.site), nonce=b"n" * 32)
        assert [post(collector, header) for header in (one, other, shown(today(collector.site)))] == ["taken"] * 3
        collector.stop()
        log = collector.log.read_text()
    assert len(collector.site.sealed()) == 3
    assert len(clients(collector.site)) == 2
    assert one[30:90] not in log


def test_yesterdays_pass_is_taken_and_that_of_two_days_ago_and_of_tomorrow_are_not(tmp_path: Path) -> None:
    with taking(tmp_path / "site") as collector:
        site = collector.site
        assert post(collector, shown(today(site, -1), 0)) == "taken"
        assert post(collector, shown(today(site, 1), 2)) == "wrong_slot"
        early = shown(today(site, -1), 0)
        tomorrow = shown(today(site, 1), 2)
        collector.pass_by(DAY)
        wait_for(lambda: post(collector, early) == "wrong_slot")
        assert post(collector, tomorrow) == "taken"


def test_an_epoch_in_its_grace_takes_passes_of_days_that_only_the_next_epoch_names(tmp_path: Path) -> None:
    now = datetime.now(timezone.utc)
    noon = now.replace(hour=12, minute=0, second=0, microsecond=0) + DAY
    site = site_with_passes(tmp_path / "site")
    passes = pass_keys().part().model_dump(mode="json")
    change_passes(site, 1, {**passes, "days": passes["days"][:2]})
    add_campaign(site, "words", 2)
    change_passes(site, 2, passes)
    first = {"epoch": 1, "begins": "2020-01-01T00:00:00Z", "ends": now_text(), "grace_ends": now_text(9 * DAY_SECONDS)}
    write_collection(site, "words", [first, {"epoch": 2, "begins": first["ends"]}])
    with running(site, ahead=noon - now) as collector:
        for epoch in (1, 2):
            body, header = os.urandom(site.campaign(epoch=epoch).sealed_bytes("reports")), shown(today(site, 1), 2)
            assert collector.post(body, headers={"authorization": header}, epoch=epoch).status_code == 202


def change_passes(site: Site, epoch: int, passes: dict[str, Any]) -> None:
    path = site.campaign_file(epoch=epoch)
    path.write_text(json.dumps({**json.loads(path.read_text()), "passes": passes}))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda site: shown(today(site), 2), "wrong_signature"),
        (lambda site: shown(Slot("words", "collector", "two", today(site).begins)), "wrong_slot"),
        (lambda site: shown(Slot("words", "evaluator", "evaluator", today(site).begins)), "wrong_slot"),
        (lambda site: shown(Slot("other", "collector", "one", today(site).begins)), "wrong_slot"),
        (lambda site: changed(shown(today(site))), "wrong_signature"),
        (lambda site: shown(today(site))[:-1], "unauthorised"),
        (lambda site: shown(today(site)) + ", " + shown(today(site)), "unauthorised"),
        (lambda site: "Bearer " + "a" * 32, "unauthorised"),
        (lambda site: "PrivateToken token=\"" + "A" * 472 + "\"", "unauthorised"),
        (lambda site: "x" * 6000, "unauthorised"),
        (lambda site: None, "unauthorised"),
    ],
)  # fmt: skip
def test_another_pass_is_one_problem(tmp_path: Path, change: Callable[[Site], str | None], problem: str) -> None:
    with taking(tmp_path / "site") as collector:
        header = change(collector.site)
        assert post(collector, header) == problem
        assert post(collector, shown(today(collector.site))) == "taken"


def test_no_bit_of_a_pass_may_change() -> None:
    """Also with a signature that nobody asked for before: good passes are remembered, and wrong ones are not."""
    part = PassesPart(seconds=DAY_SECONDS, first=date(2026, 11, 28), days=("0" * 64,))
    campaign = Campaign.model_construct(id="words", passes=part, collectors=("one",), discovery=None)
    slot = slot_at(campaign, "collector", "one", time.time())
    passes = Passes(campaign, "collector", "one", {slot: key(1)[0].to_bytes(KEY_BYTES, "big")})
    header = shown(slot, nonce=b"n" * 32).encode()
    good = base64.urlsafe_b64decode(header[header.index(b'"') + 1 : -1])
    for bit in range(8 * len(good)):
        data = (int.from_bytes(good, "big") ^ 1 << bit).to_bytes(len(good), "big")
        with pytest.raises(Refused) as refused:
            passes.redeemed(b'PrivateToken token="' + base64.urlsafe_b64encode(data) + b'"', time.time())
        # From its start: type, nonce, challenge digest, key id, signature.
        place = len(good) - 1 - bit // 8
        wanted = "unauthorised" if place < 2 else "wrong_slot" if 34 <= place < 66 else "wrong_signature"
        assert refused.value.reason.name == wanted, bit
    assert passes.redeemed(header, time.time()) == b"n" * 32
    assert passes.redeemed(header.replace(b"PrivateToken", b"privatetoken"), time.time()) == b"n" * 32


def test_the_cap_of_a_pass_survives_a_restart(tmp_path: Path) -> None:
    """The collector's own limit begins anew, but the shuffler's cap counts by the nonce under the window's key."""
    with taking(tmp_path / "site") as collector:
        header = shown(today(collector.site))
        assert post(collector, header) == "taken"
        collector.stop()
    now = datetime.now(timezone.utc)
    with running(collector.site, ahead=now.replace(hour=12, minute=1) - now) as again:
        assert post(again, header) == "taken"
        again.stop()
    assert len(collector.site.sealed()) == 2
    assert len(clients(collector.site)) == 1


@pytest.mark.parametrize("fault", ["no file", "other keys", "authentication", "window"])
def test_a_campaign_whose_passes_cannot_be_taken_is_a_fault_and_clients_try_again(tmp_path: Path, fault: str) -> None:
    way = "none" if fault == "authentication" else "privacy-pass"
    site = site_with_passes(tmp_path / "site", "2d" if fault == "window" else "1d", way)
    file = site.campaign_file().with_name("passes.json")
    if fault == "no file":
        file.unlink()
    if fault == "other keys":
        data = json.loads(file.read_text())
        file.write_text(json.dumps({**data, "days": [*reversed(data["days"])]}))
    with running(site) as collector:
        assert post(collector, shown(today(site))) == "campaign_unreadable"
        assert any("words" in event.get("fault", "") for event in collector.events())


def test_a_campaign_without_passes_is_a_fault_of_a_collector_that_demands_them(tmp_path: Path) -> None:
    site = make_site(tmp_path / "site", window="1d", collector={"authentication": "privacy-pass"})
    assert Campaign.read(site.campaign_file()).passes is None
    with running(site) as collector:
        assert post(collector, None) == "campaign_unreadable"
