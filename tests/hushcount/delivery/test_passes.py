"""A client asks an issuer for its passes, shows them, and waits without them."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, PSS
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.hashes import SHA384
from cryptography.hazmat.primitives.serialization import load_der_public_key

from hushcount.clock import Clock
from hushcount.delivery import Delivery, Issuer, Sender, Site
from hushcount.delivery.passes import pending
from hushcount.delivery.tokens import nonce_of, secret_of
from hushcount.newest import Untrusted
from hushcount.passes.blind_signatures import KEY_BYTES
from hushcount.passes.slots import Slot, slot_at
from hushcount.passes.tokens import REQUEST_BYTES, public_key, read_header
from tests.hushcount.delivery.fake_collector import FakeCollector, campaign, collecting, oblivious, policy, sender
from tests.hushcount.delivery.fake_issuer import FakeIssuer, issuing, key, pass_keys

DAY = 86_400.0
NOON = datetime(2026, 11, 28, 12, tzinfo=timezone.utc)


class Places:
    """A collector, an issuer, and a clock that a test sets; `now` is of clients and of the collector's answers."""

    def __init__(self, collector: FakeCollector, issuer: FakeIssuer) -> None:
        self.collector, self.issuer, self.now = collector, issuer, NOON.timestamp()
        collector.date = ""

    def sender(self, folder: Path | None = None, **options: Any) -> Sender:
        issuer = Issuer(Site(self.issuer.address), lambda: "Bearer account")
        return sender(self.collector, folder, **{"issuer": issuer, "clock": Clock(lambda: self.now), **options})


@pytest.fixture
def places() -> Iterator[Places]:
    keys = pass_keys(first=NOON - timedelta(days=1))
    with collecting(epochs=[campaign(passes=keys.part(), discovery=None)]) as collector, issuing(keys) as issuer:
        yield Places(collector, issuer)


def delivered(one: Sender, value: str = "one") -> Delivery:
    one.report(value)
    return one.deliver(early=True)


def days(issuer: FakeIssuer) -> list[str]:
    return [query.partition("&")[0].removeprefix("day=") for query, _, _ in issuer.requests]


def test_a_post_shows_a_pass_whose_nonce_is_the_client_token_and_whose_signature_verifies(places: Places) -> None:
    one = places.sender()
    assert delivered(one).sent == 1
    token = read_header(places.collector.posts[0].token.encode())
    slot = slot_at(places.collector.campaign, "collector", "one", places.now)
    assert token is not None
    assert token.nonce == nonce_of(secret_of(one._queue), slot)
    assert token.challenge_digest == slot.challenge_digest
    public = load_der_public_key(public_key(key(1)[0].to_bytes(KEY_BYTES, "big")))
    assert isinstance(public, RSAPublicKey)
    public.verify(token.signature, token.signed, PSS(MGF1(SHA384()), 48), SHA384())


def test_all_posts_of_a_period_show_one_pass_and_those_of_the_next_another(places: Places) -> None:
    one = places.sender()
    delivered(one)
    delivered(one)
    places.now += DAY
    delivered(one)
    shown = [post.token for post in places.collector.posts]
    assert shown[0] == shown[1] != shown[2]


def test_the_issuer_sees_the_authorization_and_nothing_that_a_post_shows_later(places: Places) -> None:
    assert delivered(places.sender()).sent == 1
    (query, authorization, body), *_ = places.issuer.requests
    assert query == "day=20261128&collector=one"
    assert authorization == "Bearer account"
    assert len(body) == REQUEST_BYTES
    shown = base64.urlsafe_b64decode(places.collector.posts[0].token.removeprefix('PrivateToken token="')[:-1])
    pieces = {body[at : at + 8] for at in range(3, len(body) - 7)}
    assert not pieces & {shown[at : at + 8] for at in range(len(shown) - 7)}


@pytest.mark.parametrize("fault", ["problem", "loses_answers", "wrong_signatures", "wrong_keys"])
def test_without_a_good_pass_reports_wait_and_are_sent_later(places: Places, tmp_path: Path, fault: str) -> None:
    one = places.sender(tmp_path)
    setattr(places.issuer, fault, (503, "rule_failing") if fault == "problem" else True)
    done = delivered(one)
    assert (done.sent, done.waiting, done.no_pass) == (0, 1, True)
    assert places.collector.posts == []
    setattr(places.issuer, fault, None if fault == "problem" else False)
    places.now += 10.0
    done = one.deliver(early=True)
    assert (done.sent, done.waiting, done.no_pass) == (1, 0, False)


def test_keys_that_the_campaign_file_does_not_name_get_no_request(places: Places) -> None:
    places.issuer.wrong_keys = True
    delivered(places.sender())
    assert places.issuer.gets > 0
    assert places.issuer.requests == []


def test_a_repeated_request_has_the_same_bytes_in_a_new_process_too(places: Places, tmp_path: Path) -> None:
    places.issuer.loses_answers = True
    delivered(places.sender(tmp_path))
    places.issuer.loses_answers = False
    places.now += 10.0
    assert places.sender(tmp_path).deliver(early=True).sent == 1
    assert places.issuer.requests[0] == places.issuer.requests[1]


def test_a_blinding_is_of_one_slot_and_one_key() -> None:
    """With one blinding under two keys, an issuer could test whether two requests are of one client."""
    secret, slot, moduli = bytes(32), Slot("words", "collector", "one", 0), [key(0)[0], key(1)[0]]
    first, second = (pending(secret, slot, modulus.to_bytes(KEY_BYTES, "big")) for modulus in moduli)
    third = pending(secret, Slot("words", "collector", "one", 86400), moduli[0].to_bytes(KEY_BYTES, "big"))
    assert len({first.blinding, second.blinding, third.blinding}) == 3


def test_each_client_asks_for_the_next_day_at_a_second_of_its_own_whether_it_reports_or_not(places: Places) -> None:
    """Of 300 uniform seconds, 30 or fewer lie in one of the quarters with probability 3e-10."""
    counts = [0] * 4
    midnight = NOON - timedelta(hours=12)
    clients = [places.sender() for _ in range(300)]
    for quarter in range(4):
        places.now = midnight.timestamp() + (quarter + 1) * DAY / 4 - 1
        before = days(places.issuer).count("20261129")
        for one in clients:
            one.deliver()
        counts[quarter] = days(places.issuer).count("20261129") - before
    assert sum(counts) == 300
    assert min(counts) > 30
    assert days(places.issuer).count("20261128") == 300
    assert places.collector.posts == []


def test_clients_ask_for_passes_in_the_sample_or_not(places: Places) -> None:
    """All 30 clients are on one side of the sample with probability 2e-9."""
    half = {"layer": "words", "buckets": [[0, 5000]]}
    places.collector.epochs = [campaign(passes=places.issuer.keys.part(), sample=half, discovery=None)]
    clients = [places.sender(policy=policy(layers=("words",)), strict=False) for _ in range(30)]
    for one in clients:
        one.deliver()
    assert days(places.issuer).count("20261128") == 30
    assert {one.report("one") for one in clients} == {"queued", "not_asked"}


def test_the_evaluator_gets_a_pass_of_its_own(places: Places) -> None:
    keys = pass_keys(2, NOON - timedelta(days=1))
    places.issuer.keys = keys
    places.collector.epochs = [oblivious(passes=keys.part())]
    one = places.sender()
    one.report("unlisted")
    one.deliver(early=True)
    (asked,) = places.collector.asked
    token = read_header((asked.authorization or "").encode())
    assert token is not None
    slot = slot_at(places.collector.campaign, "evaluator", "evaluator", places.now)
    assert token.challenge_digest == slot.challenge_digest
    assert asked.token is None
    assert asked.authorization not in {post.token for post in places.collector.posts}


def test_a_report_that_was_tried_keeps_its_old_pass(places: Places, tmp_path: Path) -> None:
    one = places.sender(tmp_path)
    places.collector.answers = [(503, "storage_failing", {})]
    delivered(one)
    places.now += DAY
    places.collector.answers = [(401, "wrong_slot", {})]
    assert one.deliver(early=True).dropped == {"wrong_slot": 1}


def test_a_campaign_with_passes_needs_an_issuer(places: Places) -> None:
    with pytest.raises(Untrusted, match="issuer"):
        places.sender(issuer=None).report("one")


@pytest.mark.parametrize("shown", ["Bearer a\r\nHost: b", "Bearer ä", None, "raises"])
def test_an_authorization_that_is_no_header_is_not_sent_and_not_repeated(places: Places, shown: str | None) -> None:
    def authorization() -> Any:
        return {}["secret"] if shown == "raises" else shown

    one = places.sender(issuer=Issuer(Site(places.issuer.address), authorization))
    done = delivered(one)
    assert (done.waiting, done.no_pass, places.issuer.requests) == (1, True, [])
    assert "secret" not in str(one.log)


def test_forget_deletes_the_passes(places: Places, tmp_path: Path) -> None:
    one = places.sender(tmp_path)
    delivered(one)
    one.forget()
    assert one._queue.fact("passes") is None


def test_passes_that_come_after_an_opt_out_are_not_kept(places: Places, tmp_path: Path) -> None:
    one = places.sender(tmp_path)

    def opts_out() -> str:
        one.forget()
        return "Bearer account"

    two = places.sender(tmp_path, issuer=Issuer(Site(places.issuer.address), opts_out))
    two.deliver(early=True)
    assert len(places.issuer.requests) == 1
    assert one._queue.fact("passes") is None


def test_old_passes_are_deleted(places: Places, tmp_path: Path) -> None:
    one = places.sender(tmp_path)
    for _ in range(3):
        one.deliver(early=True)
        places.now += DAY
    assert (one._queue.fact("passes") or "").count("PrivateToken") <= 3


def test_the_campaign_allows_a_client_24_passes_a_day() -> None:
    hourly = {**pass_keys().part().model_dump(), "seconds": 3600}
    assert campaign(passes=hourly).passes_a_day == 24
    with pytest.raises(ValueError, match="48"):
        oblivious(passes=hourly)
