"""The chain of a campaign's epochs: heads, logs, and what a publisher may change."""

from __future__ import annotations

import copy
import hashlib
import json

import pytest
from pydantic import ValidationError

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.log import LOG_BYTES, MOST_EPOCHS, CampaignLog, LogEntry, parse_log
from hushcount.errors import FormatError
from hushcount.formats.canonical_json import canonical_json
from tests.hushcount.campaigns.test_campaign_file import CHANGES, changed, data, with_change
from tests.hushcount.campaigns.vouched import KEY, delegated, public_part


def epochs(number: int) -> list[Campaign]:
    """Return the campaign files of a chain, epochs 1, 3, 5, ..."""
    made: list[Campaign] = []
    for index in range(number):
        previous = made[-1].head.hex() if made else None
        made.append(Campaign.model_validate({**data(), "epoch": 2 * index + 1, "previous": previous}))
    return made


def log_of(campaigns: list[Campaign]) -> CampaignLog:
    entries = tuple(LogEntry(epoch=one.epoch, fingerprint=one.fingerprint.hex()) for one in campaigns)
    return CampaignLog(campaign="words", entries=entries)


def test_heads_are_the_hash_chain_that_is_written_down() -> None:
    campaigns = epochs(4)
    expected, head = [], bytes(32)
    for campaign in campaigns:
        head = hashlib.blake2b(head + campaign.fingerprint, digest_size=32, person=b"campaign log").digest()
        expected.append(head)
    assert [campaign.head for campaign in campaigns] == expected == list(log_of(campaigns).heads)


def test_the_head_changes_with_any_file_before() -> None:
    first = changed("mechanism.epsilon", 1.25)
    first["epoch"] = 1
    other = Campaign.model_validate(first)
    second = {**data(), "epoch": 3}
    heads = {Campaign.model_validate({**second, "previous": one.head.hex()}).head for one in (epochs(1)[0], other)}
    assert len(heads) == 2


def test_the_fingerprint_is_of_the_file_as_it_is_written() -> None:
    """Another language computes it from the parsed file: all defaults are written in it."""
    for before in (data(), {**data(), "previous": "12" * 32}):
        campaign = Campaign.model_validate(before)
        written = json.loads(json.dumps(campaign.model_dump(mode="json", exclude_none=True)))
        del written["dictionary"]["path"]
        key = bytes.fromhex(written["discovery"].pop("hash_key"))
        commitment = hashlib.blake2b(key, digest_size=32, person=b"hash key").hexdigest()
        written["discovery"]["hash_key_commitment"] = commitment
        assert hashlib.blake2b(canonical_json(written), digest_size=32).digest() == campaign.fingerprint


FREE = {"epoch", "previous", "dictionary.items", "dictionary.digest", "mechanism.parameters.s",
        "discovery.hash_key", "discovery.hash_key_commitment", "keys.evaluator"}  # fmt: skip
"""What a publisher may change."""


def test_the_terms_change_with_everything_but_what_a_publisher_may_change(subtests: pytest.Subtests) -> None:
    for path in CHANGES:
        with subtests.test(path=path):
            # Another key of an evaluator is free if the delegation lists it; another hash never is.
            reference = with_change("discovery.hash") if path == "keys.evaluator" else data()
            same = Campaign.model_validate(with_change(path)).terms == Campaign.model_validate(reference).terms
            assert same == (path in FREE)


def test_a_dictionary_that_goes_changes_the_terms() -> None:
    unlisted = data()
    del unlisted["mechanism"], unlisted["dictionary"]
    listed = data()
    del listed["mechanism"]
    assert Campaign.model_validate(unlisted).terms != Campaign.model_validate(listed).terms


def test_the_redacted_file_has_the_same_terms_and_head() -> None:
    campaign = Campaign.model_validate(data())
    assert (campaign.redacted().terms, campaign.redacted().head) == (campaign.terms, campaign.head)


def test_a_previous_head_that_is_none_is_refused(subtests: pytest.Subtests) -> None:
    for previous in ["", "ab", "AB" * 32, "0x" + "ab" * 31, 5]:
        with subtests.test(previous=previous), pytest.raises(ValidationError, match="previous"):
            Campaign.model_validate({**data(), "previous": previous})


def test_an_integer_that_javascript_would_round_is_refused(subtests: pytest.Subtests) -> None:
    for size in [2**53, -(2**53), 10**18]:
        with (
            subtests.test(size=size),
            pytest.raises(ValidationError, match=r"s is .*2\*\*53"),
        ):
            Campaign.model_validate(changed("mechanism.parameters.s", size))


def test_an_integer_that_javascript_would_round_travels_as_text() -> None:
    large = {"name": "ais", "epsilon": 1.0, "parameters": {"s": "274863224963336337"}}
    data = {name: part for name, part in changed("mechanism", large).items() if name != "dictionary"}
    campaign = Campaign.model_validate(data)
    assert campaign.mechanism is not None
    assert campaign.mechanism.parameters == {"s": 274863224963336337}
    written = campaign.model_dump(mode="json")
    assert written["mechanism"]["parameters"] == {"s": "274863224963336337"}
    assert Campaign.model_validate(written).fingerprint == campaign.fingerprint


def test_a_log_with_epochs_out_of_order_is_refused(subtests: pytest.Subtests) -> None:
    for order in [(1, 1), (2, 1), (1, 3, 2)]:
        with subtests.test(order=order):
            entries = [{"epoch": epoch, "fingerprint": "ab" * 32} for epoch in order]
            with pytest.raises(FormatError, match="ascend"):
                parse_log(json.dumps({"campaign": "words", "entries": entries}).encode(), "the log")


def test_the_longest_log_fits_its_bound_and_a_longer_one_is_refused() -> None:
    signature = delegated(Campaign.model_validate(data()), last_epoch=2**31 - 1)
    entries = [
        LogEntry(epoch=2**31 - 1 - index, fingerprint="ab" * 32, signature=signature) for index in range(MOST_EPOCHS)
    ]
    text = CampaignLog(campaign="w" * 64, entries=tuple(reversed(entries))).text().encode()
    assert len(text) <= LOG_BYTES
    assert len(parse_log(text, "the log").entries) == MOST_EPOCHS
    longer = json.loads(text)
    longer["entries"].insert(0, copy.deepcopy(longer["entries"][0]) | {"epoch": 1})
    with pytest.raises(FormatError, match=f"entries.* {MOST_EPOCHS}"):
        parse_log(json.dumps(longer).encode(), "the log")
    with pytest.raises(FormatError, match=r"log .*8,388,608"):
        parse_log(text + b" " * LOG_BYTES, "the log")


def test_an_empty_log_has_no_head() -> None:
    assert CampaignLog(campaign="words").heads == ()
    assert public_part(KEY).id == KEY.id
