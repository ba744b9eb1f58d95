"""The chain of a campaign's epochs: heads, logs, and what a publisher may change."""

from __future__ import annotations

import copy
import json

import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.log import LOG_BYTES, MOST_EPOCHS, CampaignLog, LogEntry, parse_log
from hushcount.errors import FormatError
from tests.hushcount.campaigns.test_campaign_file import CHANGES, changed, data, with_change
from tests.hushcount.campaigns.vouched import delegated


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


def test_the_head_changes_with_any_file_before() -> None:
    first = changed("mechanism.epsilon", 1.25)
    first["epoch"] = 1
    other = Campaign.model_validate(first)
    second = {**data(), "epoch": 3}
    heads = {Campaign.model_validate({**second, "previous": one.head.hex()}).head for one in (epochs(1)[0], other)}
    assert len(heads) == 2


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
