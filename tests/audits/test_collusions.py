"""What parties learn that put together what they have: each attack runs, and stops where the threat model says."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.client import Client
from hushcount.collection.envelopes import envelope_dtype
from hushcount.discovery.pairs import HASH_BYTES
from hushcount.many_clients import ManyClients
from hushcount.memory import ClientMemory
from hushcount.policy import Policy
from hushcount.wire.sealing import SEAL_BYTES, Sealer
from keys.private import PrivateKey
from tests.hushcount.campaigns.test_campaign_file import WORDS, changed, data
from tests.hushcount.test_client import ANALYZER, AUX_SERVER
from tests.support.allowances import Boundless
from tests.support.enumeration import all_reports, laws
from tests.support.records import envelopes

SENT = {"alice": "rare disease", "bob": "three", "carol": "another secret"}
CAMPAIGN = Campaign.model_validate(data())
FORM = CAMPAIGN.discovery_format


def what_the_shuffler_holds(stream: str) -> dict[bytes, bytes]:
    """Return sender's address and sealed report, as they lie in the collector's files."""
    client = ManyClients(CAMPAIGN, dictionary=WORDS)
    make = client.reports if stream == "reports" else client.discovery_reports
    rows = envelopes(CAMPAIGN, make(list(SENT.values())), list(SENT))
    sealed = CAMPAIGN.sealed_bytes("reports" if stream == "reports" else "discovery")
    held = rows.view(envelope_dtype(sealed)).reshape(-1)
    # numpy drops the zeros at the end of a byte string.
    return {row["address"].tobytes(): bytes(row["sealed"]).ljust(sealed, b"\0") for row in held}


def pairs() -> dict[bytes, bytes]:
    """Return what the shuffler and the auxiliary server know together: the pair that each sender sent."""
    opened = {address: AUX_SERVER.open(sealed) for address, sealed in what_the_shuffler_holds("discovery").items()}
    return {address: plain[len(FORM.binding) :] for address, plain in opened.items() if plain is not None}


def values(held: list[bytes]) -> list[str | None]:
    """Return what is in the sealed values of pairs, by the analyzer's key."""
    opened = [ANALYZER.open(pair[HASH_BYTES:]) for pair in held]
    return [FORM.unpad(plain[len(FORM.binding) :]) for plain in opened if plain is not None]


def test_the_shuffler_alone_opens_nothing_of_either_stream() -> None:
    """Both ciphertexts, by a key that is no party's; of their lengths there is one."""
    stranger = PrivateKey(bytes([9]) * 32)
    for stream in ("reports", "discovery"):
        held = list(what_the_shuffler_holds(stream).values())
        assert [stranger.open(sealed) for sealed in held] == [None] * 3
        assert len({len(sealed) for sealed in held}) == 1


def test_the_auxiliary_server_alone_opens_no_value_and_no_frequency_report() -> None:
    assert len(pairs()) == 3
    assert [AUX_SERVER.open(pair[HASH_BYTES:]) for pair in pairs().values()] == [None] * 3
    assert [AUX_SERVER.open(sealed) for sealed in what_the_shuffler_holds("reports").values()] == [None] * 3


def test_the_analyzer_alone_opens_no_discovery_report() -> None:
    """Only what is released reaches it without the outer layer."""
    assert [ANALYZER.open(sealed) for sealed in what_the_shuffler_holds("discovery").values()] == [None] * 3


def test_with_the_hash_key_a_guess_can_be_tested_against_the_hashes() -> None:
    """By the auxiliary server, or whoever sees its pairs: what it guesses it finds, with how often it was sent."""
    hashes = Counter(pair[:HASH_BYTES] for pair in pairs().values())
    assert hashes[FORM.hash("rare disease")] == 1
    assert hashes[FORM.hash("wrong guess")] == 0
    # A listed value is sent under a random hash: the guess of it finds nothing.
    assert hashes[FORM.hash("three")] == 0


def test_without_the_hash_key_a_guess_is_found_neither_by_hash_nor_by_box() -> None:
    blind = CAMPAIGN.redacted().discovery_format
    held = b"".join(pairs().values())
    for value in SENT.values():
        assert blind.hash(value) not in held
        box = Sealer(ANALYZER.public_key).seal_alike(blind.binding + blind.pad(value), bytes(32))
        assert box not in held
        # The very same, with the key, is there where it was sent.
        box = Sealer(ANALYZER.public_key).seal_alike(FORM.binding + FORM.pad(value), FORM.hash_key)
        assert (box in held) == (value not in WORDS)


def test_shuffler_and_auxiliary_server_know_who_sent_a_guessed_value() -> None:
    told = {address for address, pair in pairs().items() if pair[:HASH_BYTES] == FORM.hash("rare disease")}
    assert len(told) == 1


def test_analyzer_and_auxiliary_server_know_every_value_sent_for_discovery_but_no_sender() -> None:
    """However rare it is: the keep rule protects nobody then. The listed value is in no report."""
    assert set(values(list(pairs().values()))) == {"rare disease", None, "another secret"}


def test_all_three_know_who_sent_which_value_for_discovery() -> None:
    told = dict(zip(pairs(), values(list(pairs().values())), strict=True))
    assert sorted(map(str, told.values())) == ["None", "another secret", "rare disease"]
    assert len(told) == 3


def test_shuffler_and_analyzer_know_each_senders_randomised_report_and_no_more() -> None:
    """Exact: of all reports that a client may send, none tells any two items apart by more than epsilon."""
    mechanism = CAMPAIGN.require_frequency()
    opened = [ANALYZER.open(sealed) for sealed in what_the_shuffler_holds("reports").values()]
    for plain in opened:
        assert plain is not None
        _, valid = mechanism.unpack(np.frombuffer(plain[len(CAMPAIGN.binding("reports")) :], np.uint8)[None])
        assert valid.all()
        assert len(plain) == CAMPAIGN.sealed_bytes("reports") - SEAL_BYTES
    logs = np.log(laws(mechanism, all_reports(mechanism), np.arange(4, dtype=np.uint64)))
    worst = (logs.max(axis=0) - logs.min(axis=0)).max()
    assert worst == pytest.approx(mechanism.epsilon, abs=1e-9)
    assert mechanism.epsilon <= data()["mechanism"]["epsilon"]


def test_the_analyzer_sees_which_reports_of_a_remembering_client_are_alike() -> None:
    """The price of the memory: 20 reports of one client under 20 seals, and one plain answer."""
    memory = ClientMemory()
    client = Client(
        Campaign.model_validate(changed("memory", True)),
        policy=Policy.trusting(),
        dictionary=WORDS,
        memory=memory,
        allowance=Boundless(),
    )
    sealed = [client.report("one") for _ in range(20)]
    assert len(set(sealed)) == 20
    assert len({ANALYZER.open(each) for each in sealed}) == 1


def test_an_outsider_with_the_campaign_file_can_send_but_not_read() -> None:
    """The file holds public keys, and the hash key: anyone can make a report, and hash a guess, but has no pairs."""
    made = ManyClients(CAMPAIGN, dictionary=WORDS).report("one")
    assert ANALYZER.open(made) is not None
    text = CAMPAIGN.model_dump_json()
    assert not any((bytes([secret]) * 32).hex() in text for secret in (1, 2))
    assert FORM.hash_key.hex() in text
