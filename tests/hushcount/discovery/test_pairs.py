"""Discovery reports: what honest clients make alike, what nobody else can tell, and the attack that made it so."""

from __future__ import annotations

import numpy as np
import pytest
from apache_beam.pvalue import TaggedOutput
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.reveal import Reveal
from hushcount.discovery.keep_rules import KeepRule
from hushcount.discovery.pairs import HASH_BYTES, DiscoveryFormat
from hushcount.errors import UsageError
from hushcount.wire.sealing import SEAL_BYTES, Sealer
from keys.directories import KeyReference
from keys.private import PrivateKey
from tests.support.bins import bins_of_pairs

KEY = PrivateKey(bytes(range(32)))
FORM = DiscoveryFormat(b"campaign binding", b"k" * 32, max_value_bytes=24)
SEALER = Sealer(KEY.public_key)
GOLDEN = (
    "bb5f51297f1b77e47d02d509d7f3b2a92bfafba9b1c53ed3b400ad273749f00f562292f03c6fba4959b059e1596a5493793a"
    "c26d9d1a1563ea91573166620e53a37ad7d8034c17f99763270fcf15cca070a9a004332cefa8918978c27d186b09694f6ff1"
    "f1a45b878ae8b405877b2502be0457b614dd30283633"
)


def pair(value: str, form: DiscoveryFormat = FORM, sealer: Sealer = SEALER) -> bytes:
    """The pair that an honest client makes of a value, spelled out."""
    return form.hash(value) + sealer.seal_alike(form.binding + form.pad(value), form.hash_key)


def reveal(record: bytes) -> tuple[str, str | None]:
    """What the analyzer counts a released pair as, and the value that it believes."""
    opens = Reveal(KeyReference("", "analyzer", ""), FORM)
    opens._key = KEY
    yielded = list(opens.process(record))
    ((reason, _),) = [one.value for one in yielded if isinstance(one, TaggedOutput)]
    believed = [value for _, value in (one for one in yielded if not isinstance(one, TaggedOutput))]
    return reason, believed[0] if believed else None


@given(st.binary(max_size=80), st.binary(min_size=32, max_size=32))
@settings(deadline=None)
def test_a_box_sealed_alike_opens_like_any_other(plain: bytes, seed: bytes) -> None:
    box = SEALER.seal_alike(plain, seed)
    assert len(box) == len(plain) + SEAL_BYTES
    assert KEY.open(box) == plain
    assert SEALER.seal_alike(plain, seed) == box


def test_golden_pair() -> None:
    # Made once by this code: a change of it splits the bins of old and new clients.
    assert pair("golden").hex() == GOLDEN


def test_every_input_of_the_box_changes_all_of_it() -> None:
    other_key = DiscoveryFormat(FORM.binding, b"l" * 32, 24)
    other_campaign = DiscoveryFormat(b"another binding!", FORM.hash_key, 24)
    other_recipient = Sealer(PrivateKey(bytes(32)).public_key)
    boxes = [
        pair("value"),
        pair("valuf"),
        pair("value", other_key),
        pair("value", other_campaign),
        pair("value", FORM, other_recipient),
    ]
    for first in range(len(boxes)):
        for second in range(first):
            left, right = boxes[first], boxes[second]
            # The ephemeral keys differ, so no two boxes share a key and a nonce.
            assert left[HASH_BYTES : HASH_BYTES + 32] != right[HASH_BYTES : HASH_BYTES + 32], (first, second)


def test_planted_reports_do_not_show_whether_another_client_holds_the_value() -> None:
    """A receiver that makes r reports of x itself must not see a pair that is not its own when one more comes.

    With a fresh box for each client it does, with probability about 1/(r+1), whatever epsilon and delta say.
    """
    planted = [pair("x")] * 40
    alone = bins_of_pairs(b"".join(planted), len(pair("x")))
    joined = bins_of_pairs(b"".join([*planted, pair("x")]), len(pair("x")))
    assert alone.pairs.tobytes() == joined.pairs.tobytes() == pair("x")
    fresh = [FORM.hash("x") + SEALER.seal(FORM.binding + FORM.pad("x")) for _ in range(3)]
    assert len(bins_of_pairs(b"".join(fresh), len(fresh[0])).pairs) == 3  # what the attack would see


def test_honest_pairs_are_revealed() -> None:
    for value in ("x", " ", "größer", "a" * 24):
        assert reveal(pair(value)) == ("accepted", value)


def test_pairs_that_no_honest_client_makes_are_not_believed(subtests: pytest.Subtests) -> None:
    cases = {
        "another hash": FORM.hash("other") + pair("x")[HASH_BYTES:],
        "a box of its own": FORM.hash("x") + SEALER.seal(FORM.binding + FORM.pad("x")),
        "another campaign": FORM.hash("x") + SEALER.seal_alike(b"another binding!" + FORM.pad("x"), FORM.hash_key),
        "padding that is not zero": FORM.hash("x")
        + SEALER.seal_alike(FORM.binding + b"\x01\x00x" + b"\x01" * 23, bytes(32)),
        "no box": FORM.hash("x") + bytes(len(pair("x")) - HASH_BYTES),
    }
    for name, forged in cases.items():
        with subtests.test(name):
            assert len(forged) == len(pair("x"))
            assert reveal(forged) == ("unverified", None)


def test_a_report_with_no_value_reveals_nothing() -> None:
    padded = FORM.pad(None)
    blank = b"h" * HASH_BYTES + SEALER.seal_alike(FORM.binding + padded, b"s" * 32)
    assert reveal(blank) == ("nothing", None)


def test_what_may_be_no_item_does_not_get_into_a_table() -> None:
    for value in ("", "\ufeff", "a\rb", "a\nb", "a\x00b", "\x1b[31m", "a\u2028b", "\u202egpj", "cafe\u0301"):
        assert reveal(pair(value)) == ("no_item", None)


@given(st.one_of(st.none(), st.text(st.characters(codec="utf-8"), max_size=24)))
@settings(deadline=None)
def test_padding_has_one_length_and_comes_back(value: str | None) -> None:
    if value is not None and len(value.encode()) > FORM.max_value_bytes:
        with pytest.raises(UsageError, match=r"\d+ UTF-8 bytes,.* 24$"):
            FORM.pad(value)
        return
    padded = FORM.pad(value)
    assert len(padded) == 26
    assert FORM.unpad(padded) == value


@given(st.binary(min_size=26, max_size=26))
def test_what_is_not_padded_is_refused_or_pads_to_itself(padded: bytes) -> None:
    try:
        value = FORM.unpad(padded)
    except ValueError:
        return
    assert FORM.pad(value) == padded


def test_the_hash_is_keyed() -> None:
    assert FORM.hash("x") != DiscoveryFormat(FORM.binding, b"l" * 32, 24).hash("x")
    assert np.unique([FORM.hash(str(number)) for number in range(1000)]).size == 1000


def test_a_value_with_a_count_that_no_draw_shows_is_not_believed() -> None:
    """Who releases it did not draw it by the rule: the threshold is public, and so is how many reports there were."""
    law = KeepRule("optimal", 1.0, 1e-8, counts=True).count_law
    opens = Reveal(KeyReference("", "analyzer", ""), FORM, law, 100)
    opens._key = KEY
    most = 100 + law.most
    shown = (law.threshold, most, -1, 0, law.threshold - 1, most + 1, 10**15, (1 << 62) - 1)
    records = [pair("value") + count.to_bytes(8, "little", signed=True) for count in shown]
    seen = [list(opens.process(record)) for record in records]
    assert [[one.value for one in yielded if isinstance(one, TaggedOutput)] for yielded in seen] == [
        *[[("accepted", 1)]] * 2,
        *[[("unverified", 1)]] * 6,
    ]
    believed = [one for yielded in seen for one in yielded if not isinstance(one, TaggedOutput)]
    assert believed == [(record, "value") for record in records[:2]]
