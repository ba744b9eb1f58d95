"""Blind RSA signatures: RSABSSA-SHA384-PSS-Deterministic of RFC 9474, with a modulus of 2048 bits and exponent 65537.

The issuer signs a message that it cannot see, and cannot recognise the signature later. The issuer's part, with the
private key, is in `keys/issuing.py`.
"""

from __future__ import annotations

import hashlib

EXPONENT = 65537
KEY_BYTES = 256
"""Bytes of a modulus, a blinded message and a signature."""
SALT_BYTES = 48
BLIND_BYTES = KEY_BYTES + 16
"""Random bytes of a blinding factor: 128 bits above the modulus, so that the factor is uniform up to 2^-128."""
_HASH_BYTES = 48
_ENCODED_BITS = 8 * KEY_BYTES - 1


def require_modulus(modulus: int) -> None:
    """Raise ValueError unless a modulus has 2048 bits and is odd; an even one has no inverse of some blindings."""
    if modulus.bit_length() != 8 * KEY_BYTES or not modulus % 2:
        raise ValueError(f"modulus has {modulus.bit_length()} bits, must be odd and have {8 * KEY_BYTES}")


def encoded(message: bytes, salt: bytes) -> int:
    """Return EMSA-PSS-ENCODE with SHA-384 and MGF1 (RFC 8017, section 9.1.1), as a number below 2^2047.

    Args:
        salt: SALT_BYTES bytes.
    """
    hashed = hashlib.sha384(bytes(8) + hashlib.sha384(message).digest() + salt).digest()
    block = bytes(KEY_BYTES - SALT_BYTES - _HASH_BYTES - 2) + b"\x01" + salt
    masked = int.from_bytes(block, "big") ^ int.from_bytes(_mask(hashed, len(block)), "big")
    number = int.from_bytes(masked.to_bytes(len(block), "big") + hashed + b"\xbc", "big")
    return number & ((1 << _ENCODED_BITS) - 1)


def blind(modulus: int, encoded_message: int, blinding: bytes) -> bytes:
    """Return the blinded message, KEY_BYTES bytes (RFC 9474, section 4.2).

    The law is uniform over the units modulo `modulus`, whatever the message is, so the issuer learns nothing of it.

    Args:
        blinding: BLIND_BYTES uniform bytes, which the caller keeps until the signature is there.
    """
    factor = int.from_bytes(blinding, "big") % modulus
    return (encoded_message * pow(factor, EXPONENT, modulus) % modulus).to_bytes(KEY_BYTES, "big")


def unblinded(modulus: int, encoded_message: int, blinding: bytes, blind_signature: bytes) -> bytes:
    """Return the signature of the message (RFC 9474, section 4.4); ValueError: the issuer's answer is no signature.

    Args:
        blinding: as given to `blind`.
    """
    factor = int.from_bytes(blinding, "big") % modulus
    signed = int.from_bytes(blind_signature, "big") * pow(factor, -1, modulus) % modulus
    if len(blind_signature) != KEY_BYTES or pow(signed, EXPONENT, modulus) != encoded_message:
        raise ValueError("the answer of the issuer is no signature by the key of the campaign file")
    return signed.to_bytes(KEY_BYTES, "big")


def pieces(octets: bytes, length: int) -> list[bytes]:
    """Return bytes cut after each `length` of them: moduli, requests or signatures that stand one after another."""
    return [octets[begin : begin + length] for begin in range(0, len(octets), length)]


def _mask(seed: bytes, length: int) -> bytes:
    """Return MGF1 with SHA-384 (RFC 8017, appendix B.2.1)."""
    blocks = range(-(-length // _HASH_BYTES))
    return b"".join(hashlib.sha384(seed + number.to_bytes(4, "big")).digest() for number in blocks)[:length]
