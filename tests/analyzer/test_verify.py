"""The analyzer verifies opened values with the evaluator: honest pairs are believed, forged ones are refused."""

from __future__ import annotations

import pytest

from analyzer.reveal import open_pair, verify
from hushcount.discovery.oblivious import ELEMENT_BYTES, MOST_EVALUATIONS, Unanswered
from hushcount.discovery.pairs import DiscoveryFormat, Name, blank_name, name_of
from hushcount.wire.sealing import Sealer
from keys.evaluating import EvaluatorKey
from keys.private import PrivateKey

FORM = DiscoveryFormat(b"a campaign of us", b"", 16)
EVALUATOR, ANALYZER = EvaluatorKey.generate(), PrivateKey.generate()


def name(value: str) -> Name:
    return name_of(EVALUATOR.outputs([FORM.input(value)])[0])


def pair(value: str, named: Name, binding: bytes = FORM.binding) -> bytes:
    """Return a pair of a value under any name, honest or not."""
    return named.hash + Sealer(ANALYZER.public_key).seal_alike(binding + FORM.pad(value), named.box_key)


def judged(*records: bytes) -> tuple[list[str], dict[str, int]]:
    """Return what is believed of released records, and the counts of those that open."""
    opened = [(record, value) for record in records if (value := open_pair(ANALYZER, FORM, record)[1]) is not None]
    found, counts = verify(FORM, ANALYZER.public_key, opened, EVALUATOR.evaluate, EVALUATOR.public_key)
    assert sum(counts.values()) == len(opened)
    return [value for _, value in found], dict(counts)


def test_what_honest_clients_make_is_believed() -> None:
    assert judged(pair("größer", name("größer")), pair("", name(""))) == (["größer"], {"accepted": 1, "no_item": 1})


def test_no_forged_pair_is_believed() -> None:
    right, other = name("right"), name("other")
    forged = (
        pair("right", blank_name()),
        # The hash of another value, whose name the forger asked for; then parts of two names.
        pair("right", other),
        pair("right", Name(right.hash, other.box_key)),
        pair("right", Name(other.hash, right.box_key)),
        # Of another campaign's evaluator.
        pair("right", name_of(EvaluatorKey.generate().outputs([FORM.input("right")])[0])),
        # A box that was not made of the name.
        right.hash + Sealer(ANALYZER.public_key).seal(FORM.binding + FORM.pad("right")),
    )
    assert judged(*forged) == ([], {"unverified": len(forged)})
    assert open_pair(ANALYZER, FORM, pair("right", right, b"another campaign")) == ("unverified", None)
    assert judged(*forged, pair("right", right))[0] == ["right"]


def test_evaluations_go_in_batches_that_tell_no_value() -> None:
    values = [f"value {number}" for number in range(MOST_EVALUATIONS + 1)]
    outputs = EVALUATOR.outputs([FORM.input(value) for value in values])
    records = [(pair(value, name_of(output)), value) for value, output in zip(values, outputs, strict=True)]
    asked: list[bytes] = []

    def ask(blinded: bytes) -> bytes:
        asked.append(blinded)
        return EVALUATOR.evaluate(blinded)

    found, counts = verify(FORM, ANALYZER.public_key, records, ask, EVALUATOR.public_key)
    assert (found, counts) == (records, {"accepted": len(values)})
    assert [len(one) // ELEMENT_BYTES for one in asked] == [MOST_EVALUATIONS, 1]
    verify(FORM, ANALYZER.public_key, records[:1], ask, EVALUATOR.public_key)
    elements = {one[start : start + ELEMENT_BYTES] for one in asked for start in range(0, len(one), ELEMENT_BYTES)}
    assert len(elements) == len(values) + 1, "the same value is blinded anew"


def test_an_evaluator_with_another_key_is_not_believed() -> None:
    other = EvaluatorKey.generate()
    records = [(pair("right", name("right")), "right")]
    with pytest.raises(Unanswered, match="evaluator key"):
        verify(FORM, ANALYZER.public_key, records, other.evaluate, EVALUATOR.public_key)
    assert verify(FORM, ANALYZER.public_key, [], other.evaluate, EVALUATOR.public_key) == ([], {})
