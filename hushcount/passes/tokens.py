"""Tokens and requests of Privacy Pass, type 0x0002: the bytes of RFC 9577 and RFC 9578."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass

from hushcount.passes.blind_signatures import EXPONENT, KEY_BYTES
from hushcount.passes.slots import TOKEN_TYPE, Slot

REQUEST_BYTES = 2 + 1 + KEY_BYTES
"""Bytes of a TokenRequest: type, last byte of the key's id, blinded message (RFC 9578, section 6.1)."""
_BEFORE_MODULUS = bytes.fromhex(
    "30820152303d06092a864886f70d01010a3030a00d300b0609608648016503040202a11a301806092a864886f70d010108300b06096086480165"
    "03040202a2030201300382010f003082010a0282010100"
)
"""DER of a key for RSASSA-PSS with SHA-384, MGF1 and 48 bytes of salt, up to its modulus (RFC 9578, section 6.5)."""
_AFTER_MODULUS = b"\x02\x03" + EXPONENT.to_bytes(3, "big")
_HEADER = re.compile(rb'PrivateToken token="([A-Za-z0-9_-]{472})"', re.IGNORECASE)
"""354 bytes in base64url; RFC 9577 allows parameters in other orders and forms, which no client of ours sends."""


@dataclass(frozen=True)
class Token:
    """A pass as a client shows it (RFC 9577, section 2.2).

    Attributes:
        nonce: the client token of the slot, 32 bytes.
        challenge_digest: hash of the slot, 32 bytes.
        key_id: hash of the public key, 32 bytes.
        signature: the signature of `signed`, 256 bytes.
    """

    nonce: bytes
    challenge_digest: bytes
    key_id: bytes
    signature: bytes

    @property
    def signed(self) -> bytes:
        """The message that the issuer signed blindly."""
        return TOKEN_TYPE + self.nonce + self.challenge_digest + self.key_id

    @property
    def header(self) -> str:
        """The value of the header Authorization that shows this pass."""
        return f'PrivateToken token="{base64.urlsafe_b64encode(self.signed + self.signature).decode()}"'


def message_of(nonce: bytes, slot: Slot, key_id: bytes) -> bytes:
    """Return the message that the issuer signs blindly for a slot (RFC 9578, section 6.1)."""
    return Token(nonce, slot.challenge_digest, key_id, b"").signed


def token_of(signed: bytes, signature: bytes) -> Token:
    """Return the pass with a message as `message_of` makes it, and its signature."""
    nonce, digest, key_id = (signed[2 + 32 * part : 34 + 32 * part] for part in range(3))
    return Token(nonce, digest, key_id, signature)


def read_header(value: bytes) -> Token | None:
    """Return the pass in a header Authorization; None if the value is not exactly such a pass."""
    match = _HEADER.fullmatch(value)
    data = b"" if match is None else base64.urlsafe_b64decode(match[1])
    return token_of(data[:-KEY_BYTES], data[-KEY_BYTES:]) if data[:2] == TOKEN_TYPE else None


def public_key(modulus: bytes) -> bytes:
    """Return the DER of a public key, a SubjectPublicKeyInfo for RSASSA-PSS."""
    return _BEFORE_MODULUS + modulus + _AFTER_MODULUS


def key_id_of(modulus: bytes) -> bytes:
    """Return the id of a public key, 32 bytes (RFC 9578, section 6.5)."""
    return hashlib.sha256(public_key(modulus)).digest()


def token_request(key_id: bytes, blinded: bytes) -> bytes:
    """Return a TokenRequest, REQUEST_BYTES bytes."""
    return TOKEN_TYPE + key_id[-1:] + blinded
