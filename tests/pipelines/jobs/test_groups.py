"""Groups that are named beforehand: their squares are in the tally, and nothing else changes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hushcount.campaigns.dictionary import Dictionary, known_items
from hushcount.errors import UsageError
from hushcount.maths.objectives import Objective
from hushcount.oracles.catalogue import CATALOGUE, plan
from hushcount.oracles.groups import Groups
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.tally import group_digest
from hushcount.questions.selecting import Choice
from pipelines.jobs.groups import NamedGroups, kept_groups
from pipelines.jobs.results import read_tally
from tests.pipelines.conftest import LISTED
from tests.support.jobs import Chain, new_campaign, new_keys, refused, summary, write_lines

GROUPS = """
letters = {glob = "?????*"}
some = {items = ["alpha", "beta", "unlisted"]}
again = {items = ["beta", "alpha"]}
one = {prefix = "alph"}
listed = {file = "group.txt"}
"""


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Chain:
    """A small collection that is shuffled, and analysed without groups."""
    root = tmp_path_factory.mktemp("groups")
    words, keys = write_lines(root / "words.txt", LISTED), new_keys(root / "keys")
    made = Chain(new_campaign(root / "words.json", keys, mechanism="ais", dictionary=words), keys)
    made.encode(write_lines(root / "values.txt", ["alpha"] * 60 + ["beta"] * 20))
    made.shuffle()
    made.analyze()
    return made


def ais(domain: int | None) -> Mechanism:
    return CATALOGUE["ais"].build(1.0, domain, plan("ais", 1.0, domain, {}, Objective(), "0" * 64))


def numbers(groups: Groups) -> list[list[int]]:
    return [group.tolist() for group in groups.each()]


@pytest.mark.usefixtures("either_engine")
def test_analyze_keeps_the_squares_of_named_groups(chain: Chain, tmp_path: Path) -> None:
    write_lines(tmp_path / "group.txt", ["gamma", "alpha"])
    (tmp_path / "groups.toml").write_text(GROUPS)
    results = chain.analyze("--groups", tmp_path / "groups.toml", "--overwrite", out="grouped")
    plain, kept = (read_tally(str(chain.path(name) / "tally.npz"), chain.campaign) for name in ("results", "grouped"))
    assert not plain.squares
    assert np.array_equal(plain.counts, kept.counts)
    assert (results / "estimates.csv").read_bytes() == (chain.path("results") / "estimates.csv").read_bytes()
    assert {**summary(results), "batch": ""} == {**summary(chain.path("results")), "batch": ""}
    mechanism, dictionary = chain.campaign.require_frequency(), chain.campaign.read_dictionary()
    assert dictionary is not None
    long = [item for item in LISTED if len(item) >= 5]
    # Twice the same, and one of a single item, are no groups of their own.
    named = [["alpha", "beta"], ["gamma", "alpha"], long]
    expected = {group_digest(known_items(mechanism, dictionary, items)): len(items) for items in named}
    assert {one.digest: one.size for one in kept.squares} == expected
    for one in kept.squares:
        # K <= Q <= g K for the supports K of all its items together.
        items = next(items for items in named if group_digest(known_items(mechanism, dictionary, items)) == one.digest)
        supports = int(kept.counts[0, known_items(mechanism, dictionary, items)].sum())
        assert supports <= one.squares <= one.size * supports


def test_groups_that_are_refused(subtests: pytest.Subtests, chain: Chain, tmp_path: Path) -> None:
    for text, says in (
        ('a = {glob = "x", prefix = "y"}', "groups.a: a group has glob and prefix"),
        ('a = {file = "gone.txt"}', "gone.txt"),
        ('[a]\nname = "x"', "groups.a.name"),
        ("a = 1", "groups.a is 1"),
        ('"" = {glob = "x"}', "1 to 64 of a-z"),
    ):
        with subtests.test(text=text):
            (tmp_path / "groups.toml").write_text(text)
            refused(*chain.analyze_arguments(out="refused"), "--groups", tmp_path / "groups.toml", says=[says])


@pytest.mark.long
def test_groups_of_an_open_domain_are_named_and_counted(tmp_path: Path) -> None:
    keys = new_keys(tmp_path / "keys")
    chain = Chain(new_campaign(tmp_path / "open.json", keys, mechanism="ais"), keys)
    chain.encode(write_lines(tmp_path / "values.txt", ["alpha"] * 60 + ["beta"] * 20))
    chain.shuffle()
    groups = tmp_path / "groups.toml"
    groups.write_text('both = {items = ["alpha", "beta"]}')
    chain.analyze("--groups", groups)
    tally = read_tally(str(chain.path("results") / "tally.npz"), chain.campaign)
    named = known_items(chain.campaign.require_frequency(), None, ["alpha", "beta"])
    assert np.array_equal(np.sort(tally.items), np.sort(named))
    assert tally.square_of(named) is not None
    groups.write_text('some = {prefix = "a"}')
    refused(*chain.analyze_arguments(out="x"), "--groups", groups, says=["group some: prefix 'a'"])


def test_campaigns_share_the_groups_of_a_deployment() -> None:
    listed = Dictionary(("alpha", "beta", "gamma"))
    choices = {"all": Choice(glob="*"), "named": Choice(items=("beta", "gone", "alpha")), "gone": Choice(items=("x",))}
    shared, alone = NamedGroups(choices, shared=True), NamedGroups(choices)
    assert numbers(kept_groups(ais(4), listed, shared)) == [[0, 1, 2], [1, 0]]
    in_open = kept_groups(ais(None), None, shared)
    assert numbers(in_open) == [known_items(ais(None), None, ["beta", "gone", "alpha"]).tolist()]
    with pytest.raises(UsageError, match="group all: glob"):
        kept_groups(ais(None), None, alone)
    # Counts of this one tell the error: its files are not even read.
    grr = CATALOGUE["grr"].build(1.0, 4, {})
    assert len(kept_groups(grr, listed, NamedGroups({"f": Choice(file="gone.txt")}))) == 0
