"""The twin makes the RFC's vectors byte for byte; the library agrees with the RFC where it can, and with the twin."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from voprf import ristretto

from hushcount.discovery.oblivious import PROOF_BYTES, Unanswered, evaluations_of, joined, require_public_key
from hushcount.discovery.proofs import holds
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
    evaluations = evaluations_of(inputs)
    elements = [evaluations.blinded[start : start + 32] for start in range(0, len(evaluations.blinded), 32)]
    evaluated, proof = twin.evaluate(key, elements, secrets.randbelow(twin.L))
    outputs = evaluations.finish(b"".join(evaluated) + proof, (twin.BASE * key).encode())
    assert outputs == [twin.finalize(one, 1, (twin.hash_to_group(one) * key).encode()) for one in inputs]
    assert outputs == EvaluatorKey(SEED).outputs(inputs)


def test_what_proves_nothing_is_refused_and_the_rest_is_accepted() -> None:
    key, other = EvaluatorKey(secrets.token_bytes(32)), EvaluatorKey(secrets.token_bytes(32))
    evaluations = evaluations_of([b"a", None, b"c"])
    answer = key.evaluate(evaluations.blinded)
    swapped = answer[32:64] + answer[:32] + answer[64:]
    for wrong in (
        b"",
        answer[:-1],
        answer + b"\0",
        other.evaluate(evaluations.blinded),
        swapped,
        bytes(32) + answer[32:],
        b"\xff" * 32 + answer[32:],
        answer[:-1] + bytes([answer[-1] ^ 1]),
        answer[:-64] + key.evaluate(evaluations.blinded[:32])[-64:],
    ):
        with pytest.raises(Unanswered):
            evaluations.finish(wrong, key.public_key)
    with pytest.raises(Unanswered):
        evaluations.finish(answer, other.public_key)
    assert evaluations.finish(answer, key.public_key)[0] == key.outputs([b"a"])[0]


def test_the_clients_own_check_takes_the_rfcs_proofs_and_no_other(subtests: pytest.Subtests) -> None:
    public_key = bytes.fromhex(SUITE["pkSm"])
    for vector in SUITE["vectors"]:
        blinded, evaluated = each(vector["BlindedElement"]), each(vector["EvaluationElement"])
        proof = bytes.fromhex(vector["Proof"]["proof"])
        c, s = scalar(proof[:32]), scalar(proof[32:])
        assert holds(public_key, blinded, evaluated, proof)
        wrong = {
            "c": (public_key, blinded, evaluated, ((c + 1) % twin.L).to_bytes(32, "little") + proof[32:]),
            "s": (public_key, blinded, evaluated, proof[:32] + ((s - 1) % twin.L).to_bytes(32, "little")),
            "c not reduced": (public_key, blinded, evaluated, (c + twin.L).to_bytes(32, "little") + proof[32:]),
            "s not reduced": (public_key, blinded, evaluated, proof[:32] + (s + twin.L).to_bytes(32, "little")),
            "key": (blinded[0], blinded, evaluated, proof),
            "no key": (bytes(32), blinded, evaluated, proof),
            "evaluation": (public_key, evaluated, evaluated, proof),
            "element": (public_key, blinded, blinded, proof),
            "no element": (public_key, blinded, [b"\xff" * 32, *evaluated[1:]], proof),
            "identity": (public_key, blinded, [bytes(32), *evaluated[1:]], proof),
            "fewer": (public_key, blinded[1:], evaluated[1:], proof),
        }
        for name, parts in wrong.items():
            with subtests.test(vector=vector["Blind"], wrong=name):
                assert not holds(*parts)


def test_a_wrong_proof_writes_nothing_to_standard_error_in_any_thread() -> None:
    ended = subprocess.run(  # noqa: S603
        [sys.executable, "-c", _WRONG_PROOFS],
        env={**os.environ, "RUST_BACKTRACE": "1"},
        capture_output=True,
        check=True,
        timeout=120,
    )
    assert ended.stdout.splitlines() == [b"Unanswered"] * 12
    assert ended.stderr == b"the app's own line\n" * 200


_WRONG_PROOFS = """
import os, threading
from hushcount.discovery.oblivious import Unanswered, evaluations_of
from keys.evaluating import EvaluatorKey

key, other = EvaluatorKey(os.urandom(32)), EvaluatorKey(os.urandom(32))

def finish():
    for number in (1, 2, 20):
        evaluations = evaluations_of([None] * number)
        try:
            evaluations.finish(other.evaluate(evaluations.blinded), key.public_key)
        except Unanswered:
            os.write(1, b"Unanswered\\n")

threads = [threading.Thread(target=finish) for _ in range(3)]
for thread in threads:
    thread.start()
for _ in range(200):
    os.write(2, b"the app's own line\\n")
finish()
for thread in threads:
    thread.join()
"""


def test_evaluations_of_several_are_one_exchange() -> None:
    key = EvaluatorKey(secrets.token_bytes(32))
    together = joined([evaluations_of([b"a"]), evaluations_of([b"b", None])])
    assert together.finish(key.evaluate(together.blinded), key.public_key)[:2] == key.outputs([b"a", b"b"])


def test_the_key_refuses_what_is_no_evaluation(subtests: pytest.Subtests) -> None:
    for wrong in [b"", b"x" * 31, b"x" * 33, bytes(32), b"\xff" * 32, bytes(32 * 301)]:
        with subtests.test(length=len(wrong)):
            with pytest.raises(ValueError, match=r"request|element") as error:
                EvaluatorKey(SEED).evaluate(wrong)
            assert len(str(error.value)) < 120


def test_no_public_key_of_an_evaluator_is_refused() -> None:
    for wrong in (bytes(32), b"\xff" * 32):
        with pytest.raises(UsageError, match="public key"):
            require_public_key(wrong)
