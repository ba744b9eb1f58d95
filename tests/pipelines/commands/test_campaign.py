"""hushcount campaign new --after: what is not given is as in the epoch before."""

from __future__ import annotations

from pathlib import Path

import pytest

from hushcount.campaigns.campaign import Campaign
from tests.support.jobs import done, new_campaign, new_keys, refused, write_lines

OPTIONS = (
    *("--cap", 2, "--delta", 1e-7, "--memory", "--memory-values", 3, "--discovery-counts", "--max-value-bytes", 32),
    *("--discovery-relation", "add-remove"),
)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return new_keys(tmp_path_factory.mktemp("campaigns") / "keys")


def following(before: Path, keys: Path, *options: object) -> Campaign:
    out = before.with_name("next.json")
    done("campaign", "new", "--after", before, "--keys", keys, "--out", out, *options)
    return Campaign.read(out)


def test_an_epoch_is_like_the_one_before_where_nothing_else_is_given(keys: Path, tmp_path: Path) -> None:
    words = write_lines(tmp_path / "w.txt", ["alpha", "beta", "gamma"])
    path = new_campaign(tmp_path / "words.json", keys, *OPTIONS, dictionary=words, discovery=1.0)
    before, after = Campaign.read(path), following(path, keys)
    assert after.terms == before.terms, "a publisher may sign it"
    assert (after.id, after.epoch, after.previous) == ("words", 2, before.head.hex())
    assert after.read_dictionary() == before.read_dictionary()
    assert after.discovery is not None
    assert before.discovery is not None
    assert after.discovery.hash_key != before.discovery.hash_key


def test_what_is_given_takes_the_place_of_what_was(keys: Path, tmp_path: Path) -> None:
    words = write_lines(tmp_path / "w.txt", ["alpha", "beta", "gamma"])
    path = new_campaign(tmp_path / "words.json", keys, *OPTIONS, dictionary=words, discovery=1.0)
    more = write_lines(tmp_path / "more.txt", ["alpha", "delta"])
    given = ("--dictionary", more, "--epsilon", 1, "--min-batch", 70, "--no-memory", "--no-discovery-counts")
    after = following(path, keys, *given)
    assert after.mechanism is not None
    assert (after.mechanism.name, after.mechanism.epsilon) == ("grr", 1.0)
    assert (after.shuffle.cap, after.shuffle.minimum_batch, after.shuffle.delta) == (2, 70, 1e-7)
    assert after.memory is False
    assert after.discovery is not None
    assert (after.discovery.counts, after.discovery.relation, after.discovery.epsilon) == (False, "add-remove", 1.0)
    assert after.dictionary is not None
    assert after.dictionary.items == 2


def test_discovery_ends_only_when_that_is_said(keys: Path, tmp_path: Path) -> None:
    path = new_campaign(tmp_path / "words.json", keys, mechanism="ais", discovery=1.0)
    again = ("campaign", "new", "--after", path, "--keys", keys, "--out", tmp_path / "n.json")
    refused(*again, "--no-discovery", "--discovery-delta", 1e-9, says=["no-discovery", "delta"])
    after = following(path, keys, "--no-discovery")
    assert (after.discovery, after.dictionary) == (None, None)
    assert after.streams == ("reports",)


def test_an_id_is_that_of_the_epoch_before_or_must_be_given(keys: Path, tmp_path: Path) -> None:
    path = new_campaign(tmp_path / "words.json", keys, mechanism="ais")
    new = ("campaign", "new", "--keys", keys, "--out", tmp_path / "next.json")
    refused(*new, "--mechanism", "ais", "--epsilon", 1, "--open-domain", says=["--id NAME, or --after FILE"])
    refused(*new, "--after", path, "--id", "other", says=[" words", " other"])
    assert not (tmp_path / "next.json").exists()
    done(*new, "--after", path, "--id", "words")
