"""Signatures (Ed25519), checked with a public key. The package `keys` signs, because signing needs a private key."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, get_args

from nacl.bindings import crypto_sign_open
from nacl.exceptions import BadSignatureError

from hushcount.campaigns.public_keys import KeyId, VerifyKeyPart
from hushcount.errors import HushcountError
from hushcount.formats.models import Part, text_of
from hushcount.formats.reading import parse_model

Purpose = Literal["campaign", "delegation", "restart", "batch", "manifest", "summary", "statement", "receipt"]
"""What a signature is for; a signature for another purpose is refused, even if it signs the same bytes."""
SIGNATURE_BYTES = 4096
"""Longest signature file."""


class SignatureError(HushcountError):
    """The bytes differ from the bytes that were signed, or no trusted key signed them."""


class Signature(Part):
    """A signature, 64 bytes in hexadecimal digits, and the id of its VerifyKeyPart."""

    key_id: KeyId
    signature: Annotated[str, text_of(r"^[0-9a-f]{128}$", "must be 128 hexadecimal digits, in lower case")]


def signed_bytes(payload: bytes, purpose: Purpose) -> bytes:
    """Return the bytes to sign: the purpose, so that a signature is valid for one purpose only, then the payload."""
    if purpose not in get_args(Purpose):
        raise ValueError(f"purpose is {purpose!r}, must be one of {', '.join(get_args(Purpose))}")
    return b"hushcount signature 1\0" + purpose.encode() + b"\0" + payload


def verify(keys: Sequence[VerifyKeyPart], payload: bytes, purpose: Purpose, signature: Signature) -> VerifyKeyPart:
    """Check that one of the trusted keys signed exactly the bytes `payload`, and return this key.

    A valid signature proves neither when it was made, nor that it is the newest one.

    Raises:
        SignatureError: the signature is by another key, for another purpose, or of other bytes.
    """
    message = signed_bytes(payload, purpose)
    key = next((key for key in keys if key.id == signature.key_id), None)
    if key is None:
        trusted = ", ".join(key.id for key in keys) or "none"
        raise SignatureError(f"the {purpose} was signed with key {signature.key_id}, but trusted are {trusted}")
    try:
        crypto_sign_open(bytes.fromhex(signature.signature) + message, bytes.fromhex(key.key))
    except BadSignatureError:
        raise SignatureError(
            f"the signature of the {purpose} by key {key.id} is wrong: it was altered, or signed as something else"
        ) from None
    return key


def signature_path(path: Path) -> Path:
    """Return the path of a file's signature: in the same directory, the file's name followed by `.sig`."""
    return path.with_name(f"{path.name}.sig")


def parse_signature(raw: bytes, name: str) -> Signature:
    """Return the signature in a file's bytes, or raise FormatError, which names the file."""
    return parse_model(Signature, raw, name)
