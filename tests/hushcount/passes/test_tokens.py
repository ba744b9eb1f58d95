"""Passes have the bytes of RFC 9577 and RFC 9578, and nothing else is read as one."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from hushcount.passes.blind_signatures import KEY_BYTES, blind, encoded, unblinded
from hushcount.passes.slots import Slot
from hushcount.passes.tokens import Token, key_id_of, public_key, read_header, token_of, token_request

OFFICIAL = [
    entry
    for name in ("go", "rust")
    for entry in json.loads((Path(__file__).parent / f"rfc9578_type2_{name}.json").read_text(encoding="ascii"))
]
"""RFC 9578, appendix B, of cloudflare/privacypass-ts; Apache License 2.0, copyright of its authors."""


def taken(entry: dict[str, Any]) -> tuple[bytes, Token, int, bytes]:
    """Return an entry's modulus, token without signature, encoded message, and blinding."""
    modulus = bytes.fromhex(entry["pkS"])[-5 - KEY_BYTES : -5]
    digest = hashlib.sha256(bytes.fromhex(entry["token_challenge"])).digest()
    token = Token(bytes.fromhex(entry["nonce"]), digest, key_id_of(modulus), b"")
    return modulus, token, encoded(token.signed, bytes.fromhex(entry["salt"])), bytes.fromhex(entry["blind"])


@pytest.mark.parametrize("entry", OFFICIAL)
def test_requests_and_tokens_are_those_of_the_official_vectors(entry: dict[str, Any]) -> None:
    modulus, token, padded, blinding = taken(entry)
    number = int.from_bytes(modulus, "big")
    assert public_key(modulus).hex() == entry["pkS"]
    assert token_request(token.key_id, blind(number, padded, blinding)).hex() == entry["token_request"]
    signature = unblinded(number, padded, blinding, bytes.fromhex(entry["token_response"]))
    assert (token.signed + signature).hex() == entry["token"]
    read = read_header(token_of(token.signed, signature).header.encode())
    assert read == token_of(token.signed, signature)


@pytest.mark.parametrize("entry", OFFICIAL[:2])
def test_a_wrong_answer_is_no_signature(entry: dict[str, Any]) -> None:
    modulus, _, padded, blinding = taken(entry)
    answer = bytes.fromhex(entry["token_response"])
    number = int.from_bytes(modulus, "big")
    over = (int.from_bytes(answer, "big") + number).to_bytes(KEY_BYTES + 1, "big")
    for wrong in (answer[:-1], bytes(KEY_BYTES), bytes([answer[0] ^ 1]) + answer[1:], over):
        with pytest.raises(ValueError, match="signature"):
            unblinded(number, padded, blinding, wrong)


@pytest.mark.parametrize(
    "change",
    [
        lambda header: header[:-1],
        lambda header: header + b" ",
        lambda header: header.replace(b"PrivateToken ", b"PrivateToken  "),
        lambda header: header.replace(b'token="AAI', b'token="AAE'),
        lambda header: header[:-2] + b'+"',
        lambda header: header[:-3] + b'=="',
        lambda header: header.replace(b'"', b""),
        lambda header: header + b", " + header,
        lambda header: header.replace(b'token="', b'token="AAAA'),
        lambda header: b"",
    ],
)
def test_a_header_that_is_not_exactly_a_pass_is_none(change: Any) -> None:
    header = Token(bytes(32), bytes(32), bytes(32), bytes(KEY_BYTES)).header.encode()
    assert read_header(header) is not None
    assert read_header(header.replace(b"PrivateToken", b"privatetoken")) is not None
    assert read_header(change(header)) is None


def test_each_part_of_a_slot_changes_its_challenge() -> None:
    slots = [
        Slot(campaign, role, name, begins)  # type: ignore[arg-type]
        for campaign in ("words", "word")
        for role in ("collector", "evaluator")
        for name in ("sone", "one")
        for begins in (0, 3600)
    ]
    assert len({slot.challenge_digest for slot in slots}) == len(slots) == 16
