"""Noise of the mixes: what parties learn that put together what they have; each attack runs as far as it gets."""

from __future__ import annotations

import numpy as np
import pytest

from hushcount.arrays import IntArray, Octets
from hushcount.campaigns.campaign import BINDING_BYTES
from hushcount.dummies import DummyForm, Layer, dummies_of
from hushcount.many_clients import ManyClients
from hushcount.window_starts import WINDOW_BYTES
from hushcount.wire.sealing import seal_rows
from keys.private import PrivateKey
from tests.hushcount.campaigns.test_campaign_file import WORDS
from tests.hushcount.test_client import ANALYZER, AUX_SERVER
from tests.support.noise_campaigns import noise_campaign

SENT = {"alice": "two", "bob": "three", "carol": "two"}
CAMPAIGN = noise_campaign()
MECHANISM = CAMPAIGN.require_frequency()
ITEMS = MECHANISM.encoder.domain
"""The items of the dictionary, and other."""


def what_the_shuffler_holds() -> dict[str, bytes]:
    """Return each sender's layer; the window before it is open."""
    rows = ManyClients(CAMPAIGN, dictionary=WORDS).reports(list(SENT.values()))
    return {sender: row[WINDOW_BYTES:].tobytes() for sender, row in zip(SENT, rows, strict=True)}


def boxes() -> dict[str, bytes]:
    """Return what shuffler and auxiliary server know together: the box of each sender."""
    opened = {sender: AUX_SERVER.open(layer) for sender, layer in what_the_shuffler_holds().items()}
    return {sender: plain[BINDING_BYTES + WINDOW_BYTES :] for sender, plain in opened.items() if plain is not None}


def items_in(reports: Octets) -> IntArray:
    """Return int64[n], the items of opened reports."""
    unpacked, valid = MECHANISM.unpack(reports)
    assert valid.all()
    return np.asarray(unpacked["cell"], dtype=np.int64)


def counts_in(held: list[bytes]) -> IntArray:
    """Return int64[d], the counts that the analyzer's key finds in boxes."""
    opened = [ANALYZER.open(box) for box in held]
    reports = [np.frombuffer(plain[BINDING_BYTES:], dtype=np.uint8) for plain in opened if plain is not None]
    assert len(reports) == len(held)
    return np.bincount(items_in(np.stack(reports)), minlength=ITEMS)


def dummies(secret: bytes) -> list[bytes]:
    """Return the boxes that a mix adds; for the shuffler's, without the layer that the auxiliary server opens."""
    form = DummyForm(MECHANISM, (Layer(CAMPAIGN.binding("reports"), ANALYZER.public_key),))
    return [row.tobytes() for row in dummies_of(form, range(ITEMS), secret, seal_rows)]


def known_to_its_mix(secret: bytes) -> IntArray:
    """Return int64[d], how many dummies of each item a mix made: it opens none of them for this."""
    return np.bincount(items_in(dummies_of(DummyForm(MECHANISM, ()), range(ITEMS), secret, seal_rows)), minlength=ITEMS)


def test_the_shuffler_alone_and_with_the_analyzer_opens_no_report() -> None:
    held = list(what_the_shuffler_holds().values())
    for key in (PrivateKey(bytes([9]) * 32), ANALYZER):
        assert [key.open(layer) for layer in held] == [None] * 3
    assert len({len(layer) for layer in held}) == 1
    # No box that the analyzer gets is in what the shuffler has, so nothing links it to a sender.
    assert not any(box in b"".join(held) for box in boxes().values())


def test_the_auxiliary_server_alone_opens_no_value() -> None:
    assert [AUX_SERVER.open(box) for box in boxes().values()] == [None] * 3
    assert len({len(box) for box in boxes().values()}) == 1


def test_all_three_or_one_operator_with_their_keys_read_the_value_of_every_client() -> None:
    found = {sender: int(np.argmax(counts_in([box]))) for sender, box in boxes().items()}
    items = {sender: WORDS.items.index(value) for sender, value in SENT.items()}
    assert found == items


@pytest.mark.parametrize("honest", ["shuffler", "auxiliary server"])
def test_one_mix_beside_the_analyzer_does_not_know_the_other_ones_dummies(honest: str) -> None:
    """What they know leaves the counts with the whole noise of the honest mix, which has the whole guarantee."""
    ours, theirs = (b"o" * 32, b"t" * 32) if honest == "shuffler" else (b"t" * 32, b"o" * 32)
    published = counts_in([*boxes().values(), *dummies(ours), *dummies(theirs)])
    left = published - known_to_its_mix(theirs)
    exact = counts_in(list(boxes().values()))
    assert (left - exact == known_to_its_mix(ours)).all()
    assert (left != exact).all()


def test_both_mixes_with_the_published_result_know_every_exact_count() -> None:
    ours, theirs = b"o" * 32, b"t" * 32
    published = counts_in([*boxes().values(), *dummies(ours), *dummies(theirs)])
    found = published - known_to_its_mix(ours) - known_to_its_mix(theirs)
    assert (found == counts_in(list(boxes().values()))).all()
    assert found.sum() == 3
