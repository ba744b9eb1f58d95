"""Who can test a guess against the stored hashes, with whose help: each attack runs, with keyed and oblivious names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from math import sqrt

import numpy as np
import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.delegation import verify_campaign
from hushcount.campaigns.forks import forks, seen_in_file
from hushcount.campaigns.signatures import SignatureError
from hushcount.client import Client
from hushcount.collection.envelopes import envelope_dtype
from hushcount.discovery.names import name_of
from hushcount.discovery.oblivious import ELEMENT_BYTES, MOST_QUESTIONS, Ask, Unanswered, questions_of
from hushcount.discovery.pairs import HASH_BYTES, DiscoveryFormat
from hushcount.policy import Policy
from hushcount.wire.sealing import Sealer
from keys.evaluating import EvaluatorKey
from tests.hushcount.campaigns.test_campaign_file import WORDS, data, public
from tests.hushcount.campaigns.vouched import KEY, delegated, delegation_for, public_part
from tests.hushcount.test_client import ANALYZER, AUX_SERVER
from tests.support.records import envelopes

EVALUATOR, ANOTHER = EvaluatorKey(bytes([7]) * 32), EvaluatorKey(bytes([8]) * 32)
SENT = ["rare disease", "rare disease", "three", "another secret", "", "ten"]
NEW = ["rare disease", "another secret", "ten"]
GUESSES = [*NEW, "three", "wrong guess"]


def oblivious(key: EvaluatorKey = EVALUATOR, **changes: object) -> Campaign:
    """Return the campaign of the other audits, with an evaluator in place of the hash key."""
    made = data()
    del made["discovery"]["hash_key"]
    made["discovery"]["hash"] = "oblivious"
    made["keys"]["evaluator"] = [{**public(1), "id": key.id, "key": key.public_key.hex()}]
    return Campaign.model_validate({**made, **changes})


KEYED, OBLIVIOUS = Campaign.model_validate(data()), oblivious()


def client_of(campaign: Campaign, ask: Ask | None = None) -> Client:
    return Client(campaign, policy=Policy.trusting(), dictionary=WORDS, ask=ask, uncapped=True)


def sent(campaign: Campaign, ask: Ask = EVALUATOR.evaluate, values: list[str] = SENT) -> list[bytes]:
    """Return the discovery reports of a client for each value, sealed."""
    made = client_of(campaign, ask if campaign.is_oblivious else None).discovery_reports(list(values))
    return [bytes(row) for row in made]


def stored(campaign: Campaign, sealed: list[bytes]) -> list[bytes]:
    """Return the pairs that the auxiliary server stores: hash and box, which it cannot open."""
    opened = [AUX_SERVER.open(report) for report in sealed]
    return [plain[len(campaign.binding("discovery")) :] for plain in opened if plain is not None]


def by_a_clients_file(campaign: Campaign) -> Iterator[bytes]:
    """Yield every hash and every box of the guesses that the campaign file gives the means to make."""
    form, sealer = campaign.discovery_format, Sealer(ANALYZER.public_key)
    known = [form.hash_key, bytes(32), campaign.fingerprint, form.binding]
    known += [bytes.fromhex(key.key) for key in campaign.keys.evaluator]
    for guess in GUESSES:
        for key in known:
            named = DiscoveryFormat(form.binding, key, form.max_value_bytes)
            yield named.hash(guess)
            yield sealer.seal_alike(form.binding + form.pad(guess), key)
            for made in (name_of(key), name_of(named.hash(guess)), name_of(form.input(guess).ljust(64)[:64])):
                yield made.hash
                yield sealer.seal_alike(form.binding + form.pad(guess), made.box_key)


def by_the_evaluators_key(campaign: Campaign, key: EvaluatorKey, guesses: list[str] = GUESSES) -> dict[str, bytes]:
    """Return the hash of each guess, as who has an evaluator's key makes it, without asking."""
    form = campaign.discovery_format
    outputs = key.outputs([form.input(guess) for guess in guesses])
    return {guess: name_of(output).hash for guess, output in zip(guesses, outputs, strict=True)}


def test_the_old_attack_finds_a_keyed_value_and_no_oblivious_one() -> None:
    """A client's file, which anyone may have, against all that the auxiliary server stores."""
    for campaign, found in ((KEYED, 6), (OBLIVIOUS, 0)):
        held = b"".join(stored(campaign, sent(campaign)))
        # Of three new values the hash, and the box, which stands for itself.
        assert sum(made in held for made in set(by_a_clients_file(campaign))) == found


def test_the_evaluators_key_and_the_stored_hashes_test_guesses() -> None:
    """Evaluator with auxiliary server: what they guess they find, with how often it was sent, without a question."""
    hashes = Counter(pair[:HASH_BYTES] for pair in stored(OBLIVIOUS, sent(OBLIVIOUS)))
    found = {guess: hashes[made] for guess, made in by_the_evaluators_key(OBLIVIOUS, EVALUATOR).items()}
    # A listed value is sent under a random hash: the guess of it finds nothing.
    assert found == {"rare disease": 2, "another secret": 1, "ten": 1, "three": 0, "wrong guess": 0}
    # Nobody has a key that was destroyed, and no other key will do.
    assert not hashes.keys() & by_the_evaluators_key(OBLIVIOUS, ANOTHER).values()


def test_a_key_is_of_use_for_the_epochs_that_name_it_and_an_epoch_has_its_own() -> None:
    """The limit: a publisher that names a key again keeps the guesses of its first epoch alive."""
    again, fresh = oblivious(epoch=3), oblivious(ANOTHER, epoch=3)
    first = {pair[:HASH_BYTES] for pair in stored(OBLIVIOUS, sent(OBLIVIOUS, values=NEW))}
    for later, key in ((again, EVALUATOR), (fresh, ANOTHER)):
        hashes = {pair[:HASH_BYTES] for pair in stored(later, sent(later, key.evaluate, NEW))}
        assert not hashes & first
        assert hashes == set(by_the_evaluators_key(later, key, NEW).values())
    asked = questions_of([OBLIVIOUS.discovery_format.input(guess) for guess in NEW])
    outputs = asked.finish(EVALUATOR.evaluate(asked.blinded), EVALUATOR.public_key)
    assert {name_of(output).hash for output in outputs} == first
    with pytest.raises(Unanswered):
        asked.finish(ANOTHER.evaluate(asked.blinded), EVALUATOR.public_key)


def test_collector_and_evaluator_open_nothing_and_find_no_guess() -> None:
    """The default: one operator sees senders, questions and sealed reports, and has the key."""
    asked: list[bytes] = []
    sealed = b"".join(sent(OBLIVIOUS, recording(asked)))
    for made in by_the_evaluators_key(OBLIVIOUS, EVALUATOR).values():
        assert made not in sealed
        assert made not in b"".join(asked)
    assert len(asked) == 1
    assert len(asked[0]) == len(SENT) * ELEMENT_BYTES


def test_analyzer_and_evaluator_find_no_guess_among_what_is_not_released() -> None:
    sealed = sent(OBLIVIOUS)
    assert [ANALYZER.open(report) for report in sealed] == [None] * len(SENT)
    assert not any(made in b"".join(sealed) for made in by_the_evaluators_key(OBLIVIOUS, EVALUATOR).values())


def test_shuffler_auxiliary_server_and_evaluator_know_who_sent_a_guessed_value() -> None:
    rows = envelopes(OBLIVIOUS, np.frombuffer(b"".join(sent(OBLIVIOUS, values=NEW)), np.uint8).reshape(3, -1), NEW)
    bytes_of_one = OBLIVIOUS.sealed_bytes("discovery")
    held = rows.view(envelope_dtype(bytes_of_one)).reshape(-1)
    pairs = stored(OBLIVIOUS, [row["sealed"].tobytes().ljust(bytes_of_one, b"\0") for row in held])
    guessed = by_the_evaluators_key(OBLIVIOUS, EVALUATOR)["ten"]
    told = {
        row["address"].tobytes() for row, pair in zip(held, pairs, strict=True) if pair[:HASH_BYTES] == guessed
    }
    assert told == {held[2]["address"].tobytes()}


def recording(asked: list[bytes], key: EvaluatorKey = EVALUATOR) -> Ask:
    """Return an evaluator that remembers all that it is asked."""

    def ask(blinded: bytes) -> bytes:
        asked.append(blinded)
        return key.evaluate(blinded)

    return ask


@pytest.mark.parametrize("prime", [23, 107, 467])
def test_a_blinded_element_is_as_likely_for_every_value(prime: int) -> None:
    """Exact, in a group of prime order: an element of one value is that of each other one under just one other blind.

    ristretto255 has prime order too, and EvaluatorKey refuses the only element that generates less, the identity.
    """
    order = (prime - 1) // 2
    values = sorted({pow(base, 2, prime) for base in range(2, prime - 1)})
    assert len(values) == order - 1
    views = [Counter(pow(value, blind, prime) for blind in range(1, order)) for value in values]
    assert all(view == Counter(values) for view in views)
    for identity in (bytes(ELEMENT_BYTES), bytes(ELEMENT_BYTES) * 2):
        with pytest.raises(ValueError, match="no element of ristretto255"):
            EVALUATOR.evaluate(identity)


def test_an_evaluator_that_knows_its_key_and_the_value_sees_elements_of_one_law() -> None:
    """By draws: every byte of the elements, and of what the key makes of them, by a chi-square of all three kinds."""
    form, number = OBLIVIOUS.discovery_format, 20 * MOST_QUESTIONS
    seen: list[bytes] = []
    for asked in (form.input("rare disease"), form.input("x" * 32), None):
        batches = [questions_of([asked] * MOST_QUESTIONS).blinded for _ in range(number // MOST_QUESTIONS)]
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


VALUES = {
    "all new": ["a", "b", "c", "d"] * 76,
    "all alike": ["a"] * 304,
    "all listed": ["one", "two", "three", "one"] * 76,
    "no items": ["", "\0", "one\n", "\ud800"] * 76,
    "nothing": [None] * 304,
}


@pytest.mark.parametrize("kind", VALUES)
def test_as_many_questions_are_asked_and_reports_made_whatever_the_values_are(kind: str) -> None:
    """Beyond one batch too, and for a report that is made to be asked about later."""
    asked: list[bytes] = []
    client = client_of(OBLIVIOUS, recording(asked))
    assert client.discovery_reports(VALUES[kind]).shape == (304, OBLIVIOUS.sealed_bytes("discovery"))
    assert [len(batch) for batch in asked] == [300 * ELEMENT_BYTES, 4 * ELEMENT_BYTES]
    elements = {batch[start : start + 32] for batch in asked for start in range(0, len(batch), ELEMENT_BYTES)}
    assert len(elements) == 304
    pending = client.pending_discovery(VALUES[kind][0])
    assert len(pending.question) == ELEMENT_BYTES
    finished = pending.finish(EVALUATOR.evaluate(pending.question))
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
    return EVALUATOR.evaluate(questions_of([b"earlier"] * (len(blinded) // ELEMENT_BYTES)).blinded)


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


@pytest.mark.parametrize("answer", WRONG)
def test_an_answer_that_is_not_of_the_campaigns_key_names_nothing(answer: str) -> None:
    """Blank reports, as many as values: so an evaluator chooses whom it keeps from discovery, and never which value."""
    pairs = stored(OBLIVIOUS, sent(OBLIVIOUS, WRONG[answer]))
    assert len(pairs) == len(SENT)
    assert blanks(pairs) == len(SENT)
    assert len({pair[:HASH_BYTES] for pair in pairs}) == len(SENT)
    guessed = [by_the_evaluators_key(OBLIVIOUS, key) for key in (EVALUATOR, ANOTHER)]
    assert not any(made in b"".join(pairs) for hashes in guessed for made in hashes.values())


def test_a_publisher_with_an_evaluators_key_of_its_own_is_refused() -> None:
    """With the auxiliary server it could test all guesses. What the operator delegated it may name."""
    trusted = (public_part(KEY, -10, 60),)
    delegation = delegation_for(OBLIVIOUS, evaluator_keys=(EVALUATOR.public_key.hex(),))
    verify_campaign(trusted, OBLIVIOUS, delegated(OBLIVIOUS, delegation))
    own = oblivious(ANOTHER)
    assert own.terms == OBLIVIOUS.terms
    for allowed in (delegation, delegation_for(own)):
        with pytest.raises(SignatureError, match="none of the"):
            verify_campaign(trusted, own, delegated(own, allowed))
    # Nor may it bring the hash key back.
    with pytest.raises(SignatureError, match="has the terms"):
        verify_campaign(trusted, KEYED, delegated(KEYED, delegation))


def test_two_evaluators_keys_for_one_epoch_are_a_fork() -> None:
    assert not forks([seen_in_file("here", OBLIVIOUS), seen_in_file("there", oblivious())])
    (fork,) = forks([seen_in_file("here", OBLIVIOUS), seen_in_file("there", oblivious(ANOTHER))])
    assert "epoch 2" in str(fork)
