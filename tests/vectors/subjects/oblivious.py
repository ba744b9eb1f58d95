"""Evaluations with given blinds and a given scalar of the proof, and the reports that are made of their outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hushcount.discovery.pairs import DiscoveryFormat, name_of
from hushcount.wire.sealing import Sealer
from keys.evaluating import EvaluatorKey
from tests.evaluator import rfc9497 as twin
from tests.vectors.subjects.script import octets, require_refused
from tests.vectors.subjects.sealing import keypair, sealed

SEED = octets(32, "evaluator")
FORM = DiscoveryFormat(octets(16, "binding"), b"", max_value_bytes=24)
_NO_ELEMENTS = {
    "identity": bytes(32),
    "negative": (1).to_bytes(32, "little"),
    "not_reduced": (twin.P + 18).to_bytes(32, "little"),
    "high_bit": bytes(31) + b"\x80",
    "no_square": bytes.fromhex("26948d35ca62e643e26a83177332e6b6afeb9d08e4268b650f1f5bbd8d81d371"),
}
"""Encodings that RFC 9496 or RFC 9497 refuses."""


def _scalar(*name: object) -> int:
    return int.from_bytes(octets(64, *name), "little") % twin.L


def _evaluation(values: Sequence[str], seed: bytes = SEED) -> dict[str, Any]:
    """Return one evaluation of values by the twin; the parts without randomness are compared with the library's."""
    key, inputs = twin.derive_key(seed, b""), [FORM.input(value) for value in values]
    blinds = [_scalar("blind", value) for value in values]
    blinded = [twin.blind(one, by) for one, by in zip(inputs, blinds, strict=True)]
    evaluated, proof = twin.evaluate(key, blinded, _scalar("proof", *values))
    outputs = [twin.finalize(*parts) for parts in zip(inputs, blinds, evaluated, strict=True)]
    library = EvaluatorKey(seed)
    if library.outputs(inputs) != outputs or library.evaluate(b"".join(blinded))[:-64] != b"".join(evaluated):
        raise AssertionError("the library makes something else")
    return {
        "rule": "ask",
        "seed": seed.hex(),
        "public_key": library.public_key.hex(),
        "inputs": [one.hex() for one in inputs],
        "blinds": [one.to_bytes(32, "little").hex() for one in blinds],
        "blinded": b"".join(blinded).hex(),
        "proof_scalar": _scalar("proof", *values).to_bytes(32, "little").hex(),
        "answer": (b"".join(evaluated) + proof).hex(),
        "outputs": [one.hex() for one in outputs],
    }


def _report(value: str) -> dict[str, Any]:
    (output,) = EvaluatorKey(SEED).outputs([FORM.input(value)])
    name, secret = name_of(output), octets(32, "outer of an output", value)
    analyzer, aux = keypair("analyzer")[0], keypair("aux_server")[0]
    inner = Sealer(analyzer).seal_alike(FORM.binding + FORM.pad(value), name.box_key)
    return {
        "rule": "report",
        "binding": FORM.binding.hex(),
        "max_value_bytes": FORM.max_value_bytes,
        "analyzer": analyzer.hex(),
        "aux_server": aux.hex(),
        "value": value,
        "output": output.hex(),
        "ephemeral_secret": secret.hex(),
        "hash": name.hash.hex(),
        "box_key": name.box_key.hex(),
        "inner": inner.hex(),
        "report": sealed(FORM.binding + name.hash + inner, aux, secret).hex(),
    }


def _refused_answers() -> list[dict[str, Any]]:
    asked, three = _evaluation(["golden"]), _evaluation(["one", "two", "three"])
    answer, several = bytes.fromhex(asked["answer"]), bytes.fromhex(three["answer"])
    element, (c, s) = answer[:32], (int.from_bytes(answer[at : at + 32], "little") for at in (32, 64))
    other = bytes.fromhex(_evaluation(["golden"], octets(32, "another evaluator"))["answer"])
    wrong: list[tuple[str, str, dict[str, Any], bytes]] = [
        ("wrong_length", "nothing", asked, b""),
        ("wrong_length", "a byte less", asked, answer[:-1]),
        ("wrong_length", "a byte more", asked, answer + b"\0"),
        ("wrong_length", "no proof", asked, answer[:32]),
        ("wrong_length", "an answer to three", asked, several),
        ("wrong_length", "an answer to two", three, several[32:]),
        *(("not_an_element", what, asked, bad + answer[32:]) for what, bad in _NO_ELEMENTS.items()),
        ("not_an_element", "the last is the identity", three, several[:64] + bytes(32) + several[96:]),
        ("wrong_proof", "zeros", asked, element + bytes(64)),
        ("wrong_proof", "scalars in the other order", asked, element + answer[64:] + answer[32:64]),
        ("wrong_proof", "a bit of c", asked, element + (c ^ 1).to_bytes(32, "little") + answer[64:]),
        ("wrong_proof", "a bit of s", asked, answer[:64] + (s ^ 2).to_bytes(32, "little")),
        ("wrong_proof", "c not reduced", asked, element + (c + twin.L).to_bytes(32, "little") + answer[64:]),
        ("wrong_proof", "s not reduced", asked, answer[:64] + (s + twin.L).to_bytes(32, "little")),
        ("wrong_proof", "the generator", asked, twin.BASE.encode() + answer[32:]),
        ("wrong_proof", "elements in another order", three, several[32:64] + several[:32] + several[64:]),
        ("wrong_proof", "a proof of one element", three, several[:96] + answer[32:]),
        ("wrong_proof", "an answer by another key", asked, other),
        ("wrong_proof", "an element by another key", asked, other[:32] + answer[32:]),
        ("wrong_proof", "a proof by another key", asked, element + other[32:]),
    ]
    made = []
    for reason, what, to, said in wrong:
        entry = {name: to[name] for name in ("rule", "public_key", "inputs", "blinds", "blinded")}
        if _is_accepted(entry, said):
            raise AssertionError(f"{reason} is not refused")
        made.append({**entry, "answer": said.hex(), "what": what, "reason": reason})
    given = {name: asked[name] for name in ("rule", "inputs", "blinds", "blinded", "answer")}
    keys = [
        {**given, "public_key": bad.hex(), "what": what, "reason": "not_a_key"} for what, bad in _NO_ELEMENTS.items()
    ]
    return [*made, *keys]


def _is_accepted(entry: dict[str, Any], answer: bytes) -> bool:
    blinded = bytes.fromhex(entry["blinded"])
    if len(answer) != len(blinded) + 64:
        return False
    elements, evaluated = ([each[at : at + 32] for at in range(0, len(blinded), 32)] for each in (blinded, answer))
    try:
        return twin.verify(bytes.fromhex(entry["public_key"]), elements, evaluated, answer[len(blinded) :])
    except ValueError:
        return False


def _refused_requests() -> list[dict[str, Any]]:
    good = bytes.fromhex(_evaluation(["golden"])["blinded"])
    wrong = [
        ("wrong_length", b""),
        ("wrong_length", good[:-1]),
        ("wrong_length", good + b"\0"),
        *(("not_an_element", bad) for bad in _NO_ELEMENTS.values()),
        ("not_an_element", good + bytes(32)),
    ]
    for _, blinded in wrong:
        require_refused(ValueError, EvaluatorKey(SEED).evaluate, blinded)
    given = {"rule": "evaluate", "seed": SEED.hex()}
    return [{**given, "blinded": asked.hex(), "reason": reason} for reason, asked in wrong]


def data() -> dict[str, Any]:
    """Return the file's content."""
    values = ("golden", "x", " ", "größer", "a" * 24, "日本語の八文字")
    return {
        "subject": "oblivious",
        "about": "Inputs and blinds to a request, its answer and the outputs; a value and its output to the report",
        "accept": [
            *(_evaluation([value]) for value in values[:4]),
            _evaluation(["one", "two", "three"]),
            _evaluation(["golden", "x"]),
            *(_report(value) for value in values),
        ],
        "refuse": [*_refused_answers(), *_refused_requests()],
    }
