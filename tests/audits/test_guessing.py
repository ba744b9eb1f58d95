"""Who can test a guess against the stored hashes, with whose help: each attack runs, with keyed and oblivious names."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pytest

from analyzer.reveal import open_pair, verify
from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.delegation import verify_campaign
from hushcount.campaigns.forks import forks, seen_in_file
from hushcount.campaigns.signatures import SignatureError
from hushcount.collection.envelopes import envelope_dtype
from hushcount.discovery.oblivious import ELEMENT_BYTES, Ask, Unanswered, evaluations_of
from hushcount.discovery.pairs import HASH_BYTES, name_of
from hushcount.errors import UsageError
from hushcount.newest import Untrusted
from hushcount.policy import Policy, terms_of
from hushcount.wire.sealing import Sealer
from keys.directories import KeyReference, create
from keys.evaluating import EvaluatorKey
from keys.listing import read_listing
from keys.rotation import retire, rotate
from tests.audits.guessers import (
    ANOTHER,
    EVALUATOR,
    KEYED,
    NEW,
    OBLIVIOUS,
    SENT,
    by_a_clients_file,
    by_the_evaluators_key,
    oblivious,
    recording,
    sent,
    stored,
)
from tests.hushcount.campaigns.test_campaign_file import data
from tests.hushcount.campaigns.vouched import KEY, delegated, delegation_for, public_part, signed
from tests.hushcount.test_client import ANALYZER
from tests.support.records import envelopes


def test_the_old_attack_finds_a_keyed_value_and_no_oblivious_one() -> None:
    """A client's file, which anyone may have, against all that the auxiliary server stores."""
    for campaign, found in ((KEYED, 6), (OBLIVIOUS, 0)):
        held = b"".join(stored(campaign, sent(campaign)))
        # Of three new values the hash, and the box, which stands for itself.
        assert sum(made in held for made in set(by_a_clients_file(campaign))) == found


def test_the_evaluators_key_and_the_stored_hashes_test_guesses() -> None:
    """Evaluator with auxiliary server: what they guess they find, with how often it was sent, without an evaluation."""
    hashes = Counter(pair[:HASH_BYTES] for pair in stored(OBLIVIOUS, sent(OBLIVIOUS)))
    found = {guess: hashes[made] for guess, made in by_the_evaluators_key(OBLIVIOUS, EVALUATOR).items()}
    # A listed value is sent under a random hash: the guess of it finds nothing.
    assert found == {"rare disease": 2, "another secret": 1, "ten": 1, "three": 0, "wrong guess": 0}
    # Nobody has a key that was destroyed, and no other key will do.
    assert not hashes.keys() & by_the_evaluators_key(OBLIVIOUS, ANOTHER).values()


def test_no_guess_can_be_tested_once_the_key_is_destroyed_but_those_asked_about_before(tmp_path: Path) -> None:
    """With the stored pairs, and all that clients asked and were answered: only outputs that were kept still match."""
    keys = tmp_path / "keys"
    create(keys, days=30, roles=("evaluator",), now=datetime.now(timezone.utc) - timedelta(days=1))
    (part,) = read_listing(keys).of("evaluator")
    rotate(keys, overlap=timedelta(seconds=1))
    reference = KeyReference(str(keys), "evaluator", part.id)
    asked: list[bytes] = []
    key = reference.read_evaluator()
    campaign = oblivious(key)
    pairs = stored(campaign, sent(campaign, recording(asked, key)))
    held = b"".join([*pairs, *asked])
    assert by_the_evaluators_key(campaign, reference.read_evaluator())["ten"] in held
    form = campaign.discovery_format
    # A guesser asks about these while it may, and keeps what it learns.
    guesser = evaluations_of([form.input(guess) for guess in ("ten", "wrong guess")])
    outputs = guesser.finish(key.evaluate(guesser.blinded), key.public_key)
    path = keys / f"evaluator-{part.id}.key"
    secret = path.read_bytes()
    retire(keys, part.id, early=True)
    with pytest.raises(UsageError, match=rf"evaluator-{part.id}\.key"):
        reference.read_evaluator()
    assert not any(secret.strip() in left.read_bytes() for left in keys.rglob("*") if left.is_file())
    for outsider in (ANOTHER, EvaluatorKey(campaign.fingerprint), EvaluatorKey(key.public_key)):
        assert not any(made in held for made in by_the_evaluators_key(campaign, outsider).values())
    assert not any(made in held for made in by_a_clients_file(campaign))
    kept = [name_of(output) for output in outputs]
    assert [name.hash in held for name in kept] == [True, False]
    sealer = Sealer(ANALYZER.public_key)
    assert sealer.seal_alike(form.binding + form.pad("ten"), kept[0].box_key) in held
    # They say nothing of a value that was not asked about.
    for name in kept:
        assert not any(sealer.seal_alike(form.binding + form.pad(guess), name.box_key) in held for guess in NEW[:2])


def test_a_key_is_of_use_for_the_epochs_that_name_it_and_an_epoch_has_its_own() -> None:
    """The limit: a publisher that names a key again keeps the guesses of its first epoch alive."""
    again, fresh = oblivious(epoch=3), oblivious(ANOTHER, epoch=3)
    first = {pair[:HASH_BYTES] for pair in stored(OBLIVIOUS, sent(OBLIVIOUS, values=NEW))}
    for later, key in ((again, EVALUATOR), (fresh, ANOTHER)):
        hashes = {pair[:HASH_BYTES] for pair in stored(later, sent(later, key.evaluate, NEW))}
        assert not hashes & first
        assert hashes == set(by_the_evaluators_key(later, key, NEW).values())
    asked = evaluations_of([OBLIVIOUS.discovery_format.input(guess) for guess in NEW])
    outputs = asked.finish(EVALUATOR.evaluate(asked.blinded), EVALUATOR.public_key)
    assert {name_of(output).hash for output in outputs} == first
    with pytest.raises(Unanswered):
        asked.finish(ANOTHER.evaluate(asked.blinded), EVALUATOR.public_key)


def test_collector_and_evaluator_open_nothing_and_find_no_guess() -> None:
    """The default: one operator sees senders, evaluations and sealed reports, and has the key."""
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
    told = {row["address"].tobytes() for row, pair in zip(held, pairs, strict=True) if pair[:HASH_BYTES] == guessed}
    assert told == {held[2]["address"].tobytes()}


def test_a_publisher_with_an_evaluators_key_of_its_own_is_refused() -> None:
    """With the auxiliary server it could test all guesses. What the operator delegated it may name."""
    trusted = (public_part(KEY, -10, 60),)
    delegation = delegation_for(OBLIVIOUS, evaluator_keys=(EVALUATOR.public_key.hex(),))
    verify_campaign(trusted, OBLIVIOUS, delegated(OBLIVIOUS, delegation))
    own = oblivious(ANOTHER)
    assert own.terms == OBLIVIOUS.terms
    for allowed in (delegation, delegation_for(own)):
        with pytest.raises(SignatureError, match="evaluator's key"):
            verify_campaign(trusted, own, delegated(own, allowed))
    # Nor may it bring the hash key back.
    with pytest.raises(SignatureError, match=KEYED.terms.hex()):
        verify_campaign(trusted, KEYED, delegated(KEYED, delegation))


def test_a_policy_that_demands_an_evaluator_takes_no_keyed_campaign_whoever_signed_it() -> None:
    """Else an operator could go back to a hash key without an app's developer noticing."""
    terms = terms_of(OBLIVIOUS, (public_part(KEY, -10, 60),))
    assert terms.oblivious
    assert not terms_of(KEYED, (public_part(KEY),)).oblivious
    policy = Policy(**dict(terms))
    policy.check(OBLIVIOUS, signed(OBLIVIOUS))
    with pytest.raises(Untrusted, match=r"campaign words .*oblivious"):
        policy.check(KEYED, signed(KEYED))
    with pytest.raises(Untrusted, match=r"campaign words .*oblivious"):
        policy.check(KEYED.redacted(), signed(KEYED))
    # Without discovery there is nothing to guess.
    frequencies = Campaign.model_validate({**data(), "discovery": None})
    policy.check(frequencies, signed(frequencies))
    Policy(**{**dict(terms), "oblivious": False}).check(KEYED, signed(KEYED))


def test_two_evaluators_keys_for_one_epoch_are_a_fork() -> None:
    assert not forks([seen_in_file("here", OBLIVIOUS), seen_in_file("there", oblivious())])
    (fork,) = forks([seen_in_file("here", OBLIVIOUS), seen_in_file("there", oblivious(ANOTHER))])
    assert "epoch 2" in str(fork)


def verified(pairs: list[bytes], ask: Ask) -> tuple[list[str], dict[str, int]]:
    """Return what the analyzer believes of released pairs, which it verifies by asking, and what it counts."""
    form, opened, counts = OBLIVIOUS.discovery_format, [], Counter[str]()
    for pair in pairs:
        reason, value = open_pair(ANALYZER, form, pair)
        if value is None:
            counts[reason] += 1
        else:
            opened.append((pair, value))
    found, more = verify(form, ANALYZER.public_key, opened, ask, EVALUATOR.public_key)
    return [value for _, value in found], dict(counts + Counter(more))


def test_the_analyzers_evaluations_tell_the_evaluator_no_value_and_not_who_asked_before() -> None:
    clients: list[bytes] = []
    analyzer: list[bytes] = []
    pairs = stored(OBLIVIOUS, sent(OBLIVIOUS, recording(clients)))
    found, counts = verified(pairs, recording(analyzer))
    assert sorted(found) == ["another secret", "rare disease", "rare disease", "ten"]
    assert counts == {"accepted": 4, "nothing": 2}
    seen = [
        {batch[at : at + 32] for batch in asked for at in range(0, len(batch), 32)} for asked in (clients, analyzer)
    ]
    assert [len(elements) for elements in seen] == [len(SENT), len(found)]
    assert not seen[0] & seen[1]
    told = b"".join([*clients, *analyzer])
    assert not any(value.encode() in told for value in found)


def test_the_analyzer_answers_no_guess_of_who_forges_pairs() -> None:
    """Under a stored hash, a box of the right guess is refused as that of a wrong one: nothing is told apart."""
    (pair,) = stored(OBLIVIOUS, sent(OBLIVIOUS, values=["ten"]))
    form, sealer = OBLIVIOUS.discovery_format, Sealer(ANALYZER.public_key)
    told = []
    for guess in ("ten", "wrong guess"):
        boxes = [sealer.seal_alike(form.binding + form.pad(guess), bytes([number]) * 32) for number in range(3)]
        asked: list[bytes] = []
        told.append((*verified([pair[:HASH_BYTES] + box for box in boxes], recording(asked)), [*map(len, asked)]))
    assert told[0] == told[1] == ([], {"unverified": 3}, [3 * 32])
    # Nor is a hash of the right name with the box of another value, which needs an answer for both.
    names = [name_of(output) for output in EVALUATOR.outputs([form.input(value) for value in ("ten", "rare disease")])]
    forged = names[0].hash + sealer.seal_alike(form.binding + form.pad("rare disease"), names[1].box_key)
    assert verified([forged, pair], EVALUATOR.evaluate) == (["ten"], {"unverified": 1, "accepted": 1})
