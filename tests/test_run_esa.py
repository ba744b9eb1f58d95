"""The protocol on one page: what it learns is true, and is what the jobs learn from the same reports."""

from __future__ import annotations

import io
import math
import re
from pathlib import Path

import numpy as np
import pytest

from examples.run_esa import Learned, collect, count, release, reveal, run_esa, shuffle
from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.dictionary import Dictionary, read_dictionary
from hushcount.errors import NotYet, TooFewOpened
from hushcount.oracles import tally as tallies
from hushcount.wire.sealing import Octets
from keys.private import PrivateKey
from tests.support.jobs import ALPHA, Chain, found, new_campaign, new_keys, values_of, write_lines
from tests.support.records import private_key, write_envelopes

ROOT = Path(__file__).parents[1]
LISTED = {"alpha": 300, "beta": 120, "gamma": 60, "nobody": 0}
POPULAR = {"plantedsecret": 90}
"""In no list, and not kept with probability 1e-15 at most."""
RARE = {f"raresecret{index}": 1 for index in range(10)}
"""In no list, and all together kept with probability 1e-8 at most, delta for each."""
SENT = [(f"client {number}", value) for number, value in enumerate(values_of(LISTED | POPULAR | RARE))]
MECHANISMS = {"grr": (), "gcms": ("--set", "k=512", "--set", "m=64")}
"""One that is tallied by item, and one by cell."""


class Parties:
    """A campaign, its dictionary and the private keys of all parties."""

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self.campaign: Campaign = chain.campaign
        self.dictionary: Dictionary = read_dictionary(chain.dictionary)
        self.analyzer: PrivateKey = private_key(chain.keys, "analyzer")
        self.aux_server: PrivateKey = private_key(chain.keys, "aux_server")

    def learn(self, sent: list[tuple[str, str]]) -> Learned:
        return run_esa(self.campaign, self.dictionary, self.analyzer, self.aux_server, sent)


@pytest.fixture(scope="module", params=sorted(MECHANISMS))
def parties(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Parties:
    place, name = tmp_path_factory.mktemp(request.param), request.param
    keys, listed = new_keys(place / "keys"), write_lines(place / "listed.txt", LISTED)
    options = (*MECHANISMS[name], "--cap", 2)
    path = new_campaign(
        place / "c.json", keys, *options, mechanism=name, epsilon=3.0, dictionary=listed, discovery=4.0, min_batch=100
    )
    return Parties(Chain(path, keys))


def rows(block: bytes, length: int) -> Octets:
    return np.frombuffer(block, dtype=np.uint8).reshape(-1, length)


def agrees(learned: Learned, parties: Parties, truth: dict[str, int]) -> bool:
    """Return whether all counts are as near the truth as right ones are but for a probability of ALPHA.

    Bernstein's inequality for a sum of independent scores, two sides, all items by Bonferroni; collisions of a pool add
    12 of their standard errors, which are exceeded with a far smaller probability.
    """
    mechanism, names = parties.campaign.require_frequency(), parties.dictionary.items
    log = math.log(2 * len(names) / ALPHA)
    step = (1.0 - mechanism.law.least) / float(mechanism.law.gain)
    held = np.array([truth[name] for name in names])
    noise = np.maximum(mechanism.variance(len(SENT), held / len(SENT)), learned.estimate.standard_error**2)
    most = log * step / 3 + np.sqrt((log * step / 3) ** 2 + 2 * log * noise) + 12 * learned.estimate.collision_error
    return bool((np.abs(learned.estimate.count - held) <= most).all())


def test_what_is_learned_is_true(parties: Parties) -> None:
    learned = parties.learn(SENT)
    assert agrees(learned, parties, LISTED)
    assert not agrees(learned, parties, {**LISTED, "alpha": 0, "nobody": 300})
    assert learned.found == set(POPULAR)


def test_the_jobs_learn_the_same_from_the_same_reports(parties: Parties) -> None:
    campaign, chain, shuffled = parties.campaign, parties.chain, {}
    for stream, envelopes in collect(campaign, parties.dictionary, SENT).items():
        each = rows(envelopes, len(envelopes) // len(SENT))
        retried = np.concatenate([each, each[::10]])
        write_envelopes(chain.path("encoded"), campaign, stream, retried)
        shuffled[stream] = shuffle(campaign, stream, retried.tobytes())
    chain.shuffle()
    mine, stored = count(campaign, parties.analyzer, shuffled["reports"]), (chain.analyze() / "tally.npz").read_bytes()
    theirs = tallies.load(io.BytesIO(stored), campaign.fingerprint, mine.counts.size)
    np.testing.assert_array_equal(mine.counts, theirs.counts)
    np.testing.assert_array_equal(mine.items, theirs.items)
    assert mine.reports == theirs.reports == len(SENT)
    released = release(campaign, parties.aux_server, shuffled["discovery"])
    # Files of envelopes do not say how their collector told clients apart.
    listed = found(chain.discover("--uncapped"))
    assert set(listed) == reveal(campaign, parties.analyzer, released) == set(POPULAR)


def test_the_shuffler_forwards_the_cap_of_a_client_in_a_new_order_and_nothing_else(parties: Parties) -> None:
    campaign = parties.campaign
    sent = [*SENT[:200], *((f"client {number}", "loud") for number in (0, 0, 0, 1))]
    envelopes = collect(campaign, parties.dictionary, sent)["discovery"]
    length = campaign.sealed_bytes("discovery")
    came = [row.tobytes() for row in rows(envelopes, len(envelopes) // len(sent))[:, -length:]]
    first, second = ([*map(bytes, rows(shuffle(campaign, "discovery", envelopes), length))] for _ in range(2))
    # Two of client 0's four reports, and all of the others'.
    assert len(set(first)) == len(first) == 202
    assert {*came[1:200], came[203]} <= set(first) <= set(came)
    # Both are equal with probability 1/202!.
    assert first != second


def test_below_the_minimum_batch_nobody_goes_on(parties: Parties) -> None:
    with pytest.raises(NotYet):
        parties.learn(SENT[:99])
    # Junk takes a batch over the minimum at the shuffler, and nowhere else.
    campaign = parties.campaign
    for stream, envelopes in collect(campaign, parties.dictionary, SENT[:100]).items():
        spoiled = rows(envelopes, len(envelopes) // 100).copy()
        spoiled[0, -1] ^= 1
        key = parties.analyzer if stream == "reports" else parties.aux_server
        opens = count if stream == "reports" else release
        opens(campaign, key, shuffle(campaign, stream, envelopes))
        with pytest.raises(TooFewOpened):
            opens(campaign, key, shuffle(campaign, stream, spoiled.tobytes()))


def test_the_page_for_contributors_shows_the_code_as_it_is() -> None:
    page = (ROOT / "docs" / "contributors.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert shown == (ROOT / "examples" / "run_esa.py").read_text(encoding="utf-8"), "put the file into the page"
