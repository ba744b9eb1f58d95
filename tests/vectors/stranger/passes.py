"""A pass, by docs/wire-format.md, RFC 9474, RFC 9577 and RFC 9578."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from tests.vectors.stranger.basics import require

E = 65537
BEFORE = bytes.fromhex(
    "30820152303d06092a864886f70d01010a3030a00d300b0609608648016503040202a11a301806092a864886f70d010108300b06096086480165"
    "03040202a2030201300382010f003082010a0282010100"
)


def passed(entry: dict[str, Any]) -> dict[str, Any]:
    """Return the challenge, when the client asks, the request and the header."""
    secret, modulus = bytes.fromhex(entry["secret"]), bytes.fromhex(entry["modulus"])
    n, begin = int.from_bytes(modulus, "big"), entry["begins"].to_bytes(8, "big", signed=True)
    slot = sized(entry["role"]) + sized(entry["campaign"]) + sized(entry["name"]) + begin
    context = hashlib.blake2b(slot, digest_size=32, person=b"pass context").digest()
    challenge = hashlib.sha256(b"\0\2" + sized(entry["campaign"]) + b"\x20" + context + b"\0\0").digest()
    nonce = hashlib.blake2b(slot, digest_size=32, key=secret, person=b"window token").digest()
    key_id = hashlib.sha256(BEFORE + modulus + b"\2\3\1\0\1").digest()
    drawn = b""
    for block in range(5):
        drawn += hashlib.blake2b(slot + key_id + bytes([block]), key=secret, person=b"pass blinding").digest()
    message, r = b"\0\2" + nonce + challenge + key_id, int.from_bytes(drawn[:272], "big") % n
    padded = pss(message, drawn[272:320])
    seconds = hashlib.blake2b(begin, digest_size=8, key=secret, person=b"asking").digest()
    request = b"\0\2" + key_id[-1:] + (padded * pow(r, E, n) % n).to_bytes(256, "big")
    made = {
        "challenge_digest": challenge.hex(),
        "second": int.from_bytes(seconds, "big") % 86400,
        "request": request.hex(),
    }
    if "reason" in entry:
        assert made == {name: entry[name] for name in made}, entry
    answer = bytes.fromhex(entry["answer"])
    signature = int.from_bytes(answer, "big") * pow(r, -1, n) % n
    require(len(answer) == 256 and pow(signature, E, n) == padded, "wrong_signature")
    token = base64.urlsafe_b64encode(message + signature.to_bytes(256, "big")).decode()
    return {**made, "header": f'PrivateToken token="{token}"'}


def sized(text: str) -> bytes:
    return len(text.encode()).to_bytes(2, "big") + text.encode()


def pss(message: bytes, salt: bytes) -> int:
    """Return EMSA-PSS of RFC 8017 with SHA-384 and 48 bytes of salt, for a modulus of 2048 bits."""
    digest = hashlib.sha384(message).digest()
    h = hashlib.sha384(b"\0" * 8 + digest + salt).digest()
    mask = b"".join(hashlib.sha384(h + bytes([0, 0, 0, counter])).digest() for counter in range(5))
    data = b"\0" * 158 + b"\1" + salt
    encoded = bytearray(a ^ b for a, b in zip(data, mask, strict=False)) + h + b"\xbc"
    encoded[0] &= 0x7F
    return int.from_bytes(encoded, "big")
