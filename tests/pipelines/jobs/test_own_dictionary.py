"""A new campaign has a dictionary file of its own, in random order, and nobody's file is written over."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.dictionary import in_random_order
from tests.support.jobs import Chain, new_campaign, new_keys, refused, write_lines

ITEMS = sorted(f"item {number}" for number in range(50))


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return new_keys(tmp_path_factory.mktemp("keys") / "keys")


@pytest.mark.parametrize("where", [".", "elsewhere"])
def test_the_file_is_in_random_order_and_the_given_one_stays(keys: Path, tmp_path: Path, where: str) -> None:
    (tmp_path / where).mkdir(exist_ok=True)
    given = write_lines(tmp_path / where / "words.list", ITEMS)
    chain = Chain(new_campaign(tmp_path / "words.json", keys, dictionary=given), keys)
    assert chain.dictionary == tmp_path / "words-000001.dictionary.txt"
    assert tuple(chain.dictionary.read_text().splitlines()) == in_random_order(ITEMS)
    assert given.read_text().splitlines() == ITEMS
    dictionary = chain.campaign.read_dictionary()
    assert dictionary is not None
    assert dictionary.is_in_random_order


def test_the_order_of_the_given_file_makes_no_other_dictionary(keys: Path, tmp_path: Path) -> None:
    digests, packed = set(), []
    for number, listed in enumerate((ITEMS, ITEMS[::-1])):
        given = tmp_path / f"{number}.txt.gz"
        given.write_bytes(gzip.compress("\n".join(listed).encode()))
        folder = tmp_path / str(number)
        folder.mkdir()
        chain = Chain(new_campaign(folder / "words.json", keys, dictionary=given), keys)
        assert chain.dictionary.name == "words-000001.dictionary.txt.gz"
        packed.append(chain.dictionary.read_bytes())
        part = chain.campaign.dictionary
        assert part is not None
        digests.add(part.digest)
    assert len(digests) == 1
    assert packed[0] == packed[1]
    assert gzip.decompress(packed[0]).decode().split("\n")[:-1] == list(in_random_order(ITEMS))


def test_a_second_try_takes_the_file_of_the_first(keys: Path, tmp_path: Path) -> None:
    given = write_lines(tmp_path / "words.txt", ITEMS)
    path = new_campaign(tmp_path / "words.json", keys, dictionary=given)
    path.unlink()
    assert Campaign.read(new_campaign(path, keys, dictionary=given)).read_dictionary() is not None


def test_a_file_that_is_there_is_not_written_over(keys: Path, tmp_path: Path) -> None:
    own = tmp_path / "words-000001.dictionary.txt"
    new = ("campaign", "new", "--id", "words", "--mechanism", "grr", "--epsilon", 1, "--keys", keys, "--dictionary")
    write_lines(own, ITEMS)
    before = own.read_bytes()
    refused(*new, own, "--out", tmp_path / "words.json", says=["words-000001.dictionary.txt"])
    other = write_lines(tmp_path / "other.txt", ["a", "b"])
    refused(*new, other, "--out", tmp_path / "words.json", says=[str(own)])
    assert own.read_bytes() == before
    assert not (tmp_path / "words.json").exists()
