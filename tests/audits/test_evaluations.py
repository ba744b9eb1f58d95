"""What an evaluator sees of values, and what it can do to clients: nothing that depends on a value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from math import sqrt

import numpy as np
import pytest

from hushcount.client import Client
from hushcount.discovery.oblivious import ELEMENT_BYTES, MOST_EVALUATIONS, Unanswered, evaluations_of
from hushcount.discovery.pairs import HASH_BYTES
from hushcount.policy import Policy
from tests.audits.guessers import (
    ANOTHER,
    EVALUATOR,
    OBLIVIOUS,
    SENT,
    by_the_evaluators_key,
    client_of,
    recording,
    sent,
    stored,
)
from tests.evaluator import rfc9497
from tests.hushcount.campaigns.test_campaign_file import WORDS
from tests.hushcount.test_client import ANALYZER


def test_a_blinded_element_is_as_likely_for_every_value(subtests: pytest.Subtests) -> None:
    """Exact, in a group of prime order: an element of one value is that of each other one under just one other blind.

    ristretto255 has prime order too. The element of a value is not the identity, the only one that generates less.
    """
    for prime in (23, 107, 467):
        with subtests.test(prime=prime):
            order = (prime - 1) // 2
            values = sorted({pow(base, 2, prime) for base in range(2, prime - 1)})
            assert len(values) == order - 1
            views = [Counter(pow(value, blind, prime) for blind in range(1, order)) for value in values]
            assert all(view == Counter(values) for view in views)
            assert pow(2, rfc9497.L - 1, rfc9497.L) == pow(3, rfc9497.L - 1, rfc9497.L) == 1
            for value in ("rare disease", "x" * 32):
                element = rfc9497.hash_to_group(OBLIVIOUS.discovery_format.input(value))
                assert element.encode() != rfc9497.IDENTITY.encode() == (element * rfc9497.L).encode()


def test_a_blinded_element_of_one_value_is_answered_like_that_of_another() -> None:
    """The evaluator's own view in ristretto255: every value explains an element, and its answer fits each.

    The element of b is t times that of a, with a t that the test knows. So the blind r of b makes the element that the
    blind t r makes of a, and the one answer names both.
    """
    order, key = rfc9497.L, rfc9497.derive_key(bytes([7]) * 32, b"")
    t, r = 3**100 % order, 5**100 % order
    a = rfc9497.hash_to_group(b"a")
    b = a * t
    element = (b * r).encode()
    assert element == (a * (t * r % order)).encode()
    evaluated = rfc9497.decode(EVALUATOR.evaluate(element)[:ELEMENT_BYTES])
    for value, blind in ((b, r), (a, t * r % order)):
        assert (evaluated * pow(blind, order - 2, order)).encode() == (value * key).encode()


def test_an_evaluator_that_knows_its_key_and_the_value_sees_elements_of_one_law() -> None:
    """By draws: every byte of the elements, and of what the key makes of them, by a chi-square of all three kinds."""
    form, number = OBLIVIOUS.discovery_format, 20 * MOST_EVALUATIONS
    seen: list[bytes] = []
    for asked in (form.input("rare disease"), form.input("x" * 32), None):
        batches = [evaluations_of([asked] * MOST_EVALUATIONS).blinded for _ in range(number // MOST_EVALUATIONS)]
        seen.append(b"".join(batches))
    elements = [np.frombuffer(view, np.uint8).reshape(-1, ELEMENT_BYTES) for view in seen]
    assert len({row.tobytes() for view in elements for row in view}) == 3 * number
    for byte in range(ELEMENT_BYTES):
        # An element is even and below 2**255, so its first byte has 128 values, and so has its last.
        counts = np.array([np.bincount(view[:, byte] >> 1, minlength=128) for view in elements])
        held = counts.sum(axis=0) > 0
        expected = np.broadcast_to(counts.sum(axis=0) / 3, counts.shape)[:, held]
        score = ((counts[:, held] - expected) ** 2 / expected).sum()
        freedom = 2 * (held.sum() - 1)
        # A normal bound of five standard deviations: 32 bytes, one false alarm in 100,000 runs.
        assert score < freedom + 5 * sqrt(2 * freedom), byte


VALUES: dict[str, list[str | None]] = {
    "all new": ["a", "b", "c", "d"] * 76,
    "all alike": ["a"] * 304,
    "all listed": ["one", "two", "three", "one"] * 76,
    "no items": ["", "\0", "one\n", "\ud800"] * 76,
    "nothing": [None] * 304,
}


def test_as_many_evaluations_are_asked_and_reports_made_whatever_the_values_are(subtests: pytest.Subtests) -> None:
    """Beyond one batch too, and for a report that is made to be asked about later."""
    for kind, values in VALUES.items():
        with subtests.test(kind=kind):
            asked: list[bytes] = []
            client = client_of(OBLIVIOUS, recording(asked))
            assert client.discovery_reports(values).shape == (304, OBLIVIOUS.sealed_bytes("discovery"))
            assert [len(batch) for batch in asked] == [300 * ELEMENT_BYTES, 4 * ELEMENT_BYTES]
            elements = {batch[start : start + 32] for batch in asked for start in range(0, len(batch), ELEMENT_BYTES)}
            assert len(elements) == 304
            person = Client(OBLIVIOUS, policy=Policy.trusting(), dictionary=WORDS)
            pending = person.pending_discovery(values[0])
            assert len(pending.evaluation) == ELEMENT_BYTES
            finished = pending.finish(EVALUATOR.evaluate(pending.evaluation))
            assert len(finished) == len(pending.blank) == OBLIVIOUS.sealed_bytes("discovery")
            # What is on the device changes too, so that a look before and a look after tell nothing.
            assert finished != pending.blank


def blanks(pairs: list[bytes]) -> int:
    """Count the pairs without a value, as the analyzer opens them."""
    form = OBLIVIOUS.discovery_format
    opened = [ANALYZER.open(pair[HASH_BYTES:]) for pair in pairs]
    return sum(plain is not None and form.unpad(plain[len(form.binding) :]) is None for plain in opened)


def _refuses(blinded: bytes) -> bytes:
    raise Unanswered("the evaluator is away")


def _identities(blinded: bytes) -> bytes:
    return bytes(len(blinded)) + EVALUATOR.evaluate(blinded)[-64:]


def _swapped(blinded: bytes) -> bytes:
    answer = EVALUATOR.evaluate(blinded)
    return answer[32:64] + answer[:32] + answer[64:]


def _again(blinded: bytes) -> bytes:
    return EVALUATOR.evaluate(evaluations_of([b"earlier"] * (len(blinded) // ELEMENT_BYTES)).blinded)


WRONG: dict[str, Callable[[bytes], bytes]] = {
    "none": _refuses,
    "another key": ANOTHER.evaluate,
    "an earlier answer": _again,
    "two elements swapped": _swapped,
    "identities": _identities,
    "one element more": lambda blinded: EVALUATOR.evaluate(blinded + blinded[:32]),
    "bytes behind": lambda blinded: EVALUATOR.evaluate(blinded) + b"\0",
    "no proof": lambda blinded: EVALUATOR.evaluate(blinded)[:-64],
    "no proof but zeros": lambda blinded: EVALUATOR.evaluate(blinded)[:-64] + bytes(64),
    "what was asked": lambda blinded: blinded + bytes(64),
}


def test_an_answer_that_is_not_of_the_campaigns_key_names_nothing(subtests: pytest.Subtests) -> None:
    """Blank reports, as many as values: so an evaluator chooses whom it keeps from discovery, and never which value."""
    for wrong, answer in WRONG.items():
        with subtests.test(wrong=wrong):
            pairs = stored(OBLIVIOUS, sent(OBLIVIOUS, answer))
            assert len(pairs) == len(SENT)
            assert blanks(pairs) == len(SENT)
            assert len({pair[:HASH_BYTES] for pair in pairs}) == len(SENT)
            guessed = [by_the_evaluators_key(OBLIVIOUS, key) for key in (EVALUATOR, ANOTHER)]
            assert not any(made in b"".join(pairs) for hashes in guessed for made in hashes.values())
