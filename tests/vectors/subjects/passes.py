"""A client's secret, a slot and the issuer's key: what is asked of the issuer, and the pass that its answer makes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from hushcount.delivery.passes import asking_second, finished, pending
from hushcount.passes.blind_signatures import KEY_BYTES
from hushcount.passes.slots import EVALUATOR_NAME, Slot
from hushcount.passes.tokens import REQUEST_BYTES
from tests.vectors.subjects.script import octets, require_refused

_OFFICIAL = Path(__file__).parents[2] / "hushcount" / "passes" / "rfc9578_type2_go.json"
_DAY = 1_795_392_000
_SLOTS = (
    Slot("features", "collector", "one", _DAY),
    Slot("features", "collector", "one", _DAY + 86_400),
    Slot("c" * 64, "collector", "b.c-d_e", -3_600),
    Slot("features", "evaluator", EVALUATOR_NAME, _DAY + 7_200),
)


def data() -> dict[str, Any]:
    """Return the file's content; its keys are public, those of RFC 9578, appendix B."""
    accept, refuse = list[dict[str, Any]](), list[dict[str, Any]]()
    moduli = [_key(number) for number in range(2)]
    for place, slot in enumerate(_SLOTS):
        secret, (modulus, exponent) = octets(32, f"a client {place}"), moduli[place % 2]
        one = pending(secret, slot, modulus.to_bytes(KEY_BYTES, "big"))
        blinded = int.from_bytes(one.request[REQUEST_BYTES - KEY_BYTES :], "big")
        # The private keys are public, so the time of this does not matter.
        answer = pow(blinded, exponent, modulus).to_bytes(KEY_BYTES, "big")
        entry = {
            "secret": secret.hex(),
            "campaign": slot.campaign,
            "role": slot.role,
            "name": slot.name,
            "begins": slot.begins,
            "modulus": modulus.to_bytes(KEY_BYTES, "big").hex(),
            "challenge_digest": slot.challenge_digest.hex(),
            "second": asking_second(secret, slot.begins),
            "request": one.request.hex(),
        }
        accept.append({**entry, "answer": answer.hex(), "header": finished(one, answer).header})
        for wrong in (bytes(KEY_BYTES), answer[:-1], bytes([answer[0] ^ 1]) + answer[1:]):
            require_refused(ValueError, finished, one, wrong)
            refuse.append({**entry, "answer": wrong.hex(), "reason": "wrong_signature"})
    return {
        "subject": "passes",
        "about": "A client's secret, a slot and the issuer's key: the request, and the pass that the answer makes",
        "accept": accept,
        "refuse": refuse[::4],
    }


def _key(number: int) -> tuple[int, int]:
    """Return modulus and private exponent of a key of RFC 9578, appendix B."""
    pem = bytes.fromhex(json.loads(_OFFICIAL.read_text(encoding="ascii"))[number]["skS"])
    key = load_pem_private_key(pem.replace(b"RSASSA-PSS ", b""), None)
    assert isinstance(key, RSAPrivateKey)
    numbers = key.private_numbers()
    return numbers.public_numbers.n, numbers.d
