"""The twin makes the RFC's vectors byte for byte; the library agrees with the RFC where it can, and with the twin."""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import Any

import pytest
from voprf import ristretto

from hushcount.discovery.oblivious import PROOF_BYTES, Unanswered, joined, questions_of, require_public_key
from hushcount.errors import UsageError
from keys.evaluating import EvaluatorKey
from tests.evaluator import rfc9497 as twin

SUITE: dict[str, Any] = json.loads(Path(__file__).with_name("rfc9497_voprf.json").read_text())["suite"]
SEED, INFO = bytes.fromhex(SUITE["seed"]), bytes.fromhex(SUITE["keyInfo"])


def each(text: str) -> list[bytes]:
    return [bytes.fromhex(part) for part in text.split(",")]


def scalar(octets: bytes) -> int:
    return int.from_bytes(octets, "little")


def test_the_twin_makes_each_byte_of_the_rfcs_vectors(subtests: pytest.Subtests) -> None:
    for vector in SUITE["vectors"]:
        with subtests.test(blind=vector["Blind"]):
            key = twin.derive_key(SEED, INFO)
            assert key.to_bytes(32, "little").hex() == SUITE["skSm"]
            inputs, blinds, blinded = each(vector["Input"]), each(vector["Blind"]), each(vector["BlindedElement"])
            assert [twin.blind(one, scalar(by)) for one, by in zip(inputs, blinds, strict=True)] == blinded
            evaluated, proof = twin.evaluate(key, blinded, scalar(bytes.fromhex(vector["Proof"]["r"])))
            assert evaluated == each(vector["EvaluationElement"])
            assert proof.hex() == vector["Proof"]["proof"]
            assert twin.verify(bytes.fromhex(SUITE["pkSm"]), blinded, evaluated, proof)
            outputs = [twin.finalize(*parts) for parts in zip(inputs, map(scalar, blinds), evaluated, strict=True)]
            assert outputs == each(vector["Output"])


def test_the_library_makes_the_rfcs_key_elements_and_outputs_and_a_proof_that_the_twin_accepts(
    subtests: pytest.Subtests,
) -> None:
    for vector in SUITE["vectors"]:
        with subtests.test(blind=vector["Blind"]):
            evaluator = ristretto.Evaluator.from_seed(SEED, INFO)
            assert evaluator.public_key.serialize().hex() == SUITE["pkSm"]
            blinded = each(vector["BlindedElement"])
            answer = evaluator.evaluate_batch([ristretto.BlindedInput.deserialize(one) for one in blinded]).serialize()
            proof, evaluated = answer[:PROOF_BYTES], answer[PROOF_BYTES:]
            assert evaluated == b"".join(each(vector["EvaluationElement"]))
            assert twin.verify(bytes.fromhex(SUITE["pkSm"]), blinded, each(vector["EvaluationElement"]), proof)
            outputs = [evaluator.evaluate_known_input(one) for one in each(vector["Input"])]
            assert outputs == each(vector["Output"])


def test_a_client_of_the_library_accepts_the_twins_proof_and_gets_the_twins_output() -> None:
    key = twin.derive_key(SEED, b"")
    inputs = [b"a value", b"another", b"\0", b"x" * 4112]
    questions = questions_of(inputs)
    elements = [questions.blinded[start : start + 32] for start in range(0, len(questions.blinded), 32)]
    evaluated, proof = twin.evaluate(key, elements, secrets.randbelow(twin.L))
    outputs = questions.finish(b"".join(evaluated) + proof, (twin.BASE * key).encode())
    assert outputs == [twin.finalize(one, 1, (twin.hash_to_group(one) * key).encode()) for one in inputs]
    assert outputs == EvaluatorKey(SEED).outputs(inputs)


def test_what_proves_nothing_is_refused_and_the_rest_is_accepted() -> None:
    key, other = EvaluatorKey(secrets.token_bytes(32)), EvaluatorKey(secrets.token_bytes(32))
    questions = questions_of([b"a", None, b"c"])
    answer = key.evaluate(questions.blinded)
    swapped = answer[32:64] + answer[:32] + answer[64:]
    for wrong in (
        b"",
        answer[:-1],
        answer + b"\0",
        other.evaluate(questions.blinded),
        swapped,
        bytes(32) + answer[32:],
        b"\xff" * 32 + answer[32:],
        answer[:-1] + bytes([answer[-1] ^ 1]),
        answer[:-64] + key.evaluate(questions.blinded[:32])[-64:],
    ):
        with pytest.raises(Unanswered):
            questions.finish(wrong, key.public_key)
    with pytest.raises(Unanswered):
        questions.finish(answer, other.public_key)
    assert questions.finish(answer, key.public_key)[0] == key.outputs([b"a"])[0]


def test_questions_of_several_are_one_exchange() -> None:
    key = EvaluatorKey(secrets.token_bytes(32))
    together = joined([questions_of([b"a"]), questions_of([b"b", None])])
    assert together.finish(key.evaluate(together.blinded), key.public_key)[:2] == key.outputs([b"a", b"b"])


def test_the_key_refuses_what_is_no_question(subtests: pytest.Subtests) -> None:
    for wrong in [b"", b"x" * 31, b"x" * 33, bytes(32), b"\xff" * 32, bytes(32 * 301)]:
        with subtests.test(length=len(wrong)):
            with pytest.raises(ValueError, match="question") as error:
                EvaluatorKey(SEED).evaluate(wrong)
            assert len(str(error.value)) < 120


def test_no_public_key_of_an_evaluator_is_refused() -> None:
    for wrong in (bytes(32), b"\xff" * 32):
        with pytest.raises(UsageError, match="public key"):
            require_public_key(wrong)
