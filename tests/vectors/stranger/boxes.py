"""Sealed boxes and discovery reports, by libsodium's plain functions."""

from __future__ import annotations

import hashlib
from typing import Any

from nacl.bindings import (
    crypto_box_beforenm,
    crypto_box_easy_afternm,
    crypto_box_open_easy_afternm,
    crypto_scalarmult,
    crypto_scalarmult_base,
)
from nacl.exceptions import CryptoError

from tests.vectors.stranger.basics import Refused, hashed, require


def _nonce(ephemeral: bytes, to: bytes) -> bytes:
    return hashed(ephemeral + to, size=24)


def seal(to: bytes, secret: bytes, plain: bytes) -> bytes:
    """Return sealed(to, plain) with an ephemeral secret."""
    require(len(to) == 32, "wrong_length")
    try:
        crypto_scalarmult(secret, to)
    except RuntimeError:
        raise Refused("small_order") from None
    ephemeral = crypto_scalarmult_base(secret)
    return bytes(ephemeral + crypto_box_easy_afternm(plain, _nonce(ephemeral, to), crypto_box_beforenm(to, secret)))


def open_box(private: bytes, box: bytes) -> bytes:
    """Return what was sealed."""
    require(len(box) >= 48, "wrong_length")
    to = crypto_scalarmult_base(private)
    try:
        shared = crypto_box_beforenm(box[:32], private)
        return bytes(crypto_box_open_easy_afternm(box[32:], _nonce(box[:32], to), shared))
    except (CryptoError, RuntimeError):
        raise Refused("forged") from None


def seal_alike(to: bytes, key: bytes, plain: bytes) -> bytes:
    """Return the box that all holders of the key make."""
    seed = hashed(to + plain, "seal alike", key=key)
    return seal(to, hashlib.sha512(seed).digest()[:32], plain)


def pad(value: str | None, most: int) -> bytes:
    """Return a padded value."""
    octets = b"" if value is None else value.encode()
    require(len(octets) <= most, "value_too_long")
    return (0xFFFF if value is None else len(octets)).to_bytes(2, "little") + octets.ljust(most, b"\0")


def unpad(padded: bytes, most: int) -> str | None:
    """Return the value."""
    require(len(padded) == 2 + most, "wrong_length")
    length, body = int.from_bytes(padded[:2], "little"), padded[2:]
    used = 0 if length == 0xFFFF else length
    require(used <= most, "length_out_of_range")
    require(not any(body[used:]), "padding_not_zero")
    try:
        return None if length == 0xFFFF else body[:used].decode()
    except UnicodeDecodeError:
        raise Refused("not_utf8") from None


def discovery(entry: dict[str, Any]) -> tuple[bytes, bytes, bytes, bytes]:
    """Return hash, padded value, inner box and report."""
    binding, key = bytes.fromhex(entry["binding"]), bytes.fromhex(entry["hash_key"])
    padded = pad(entry["value"], entry["max_value_bytes"])
    if entry["value"] is None:
        fresh = bytes.fromhex(entry["fresh"])
        bin_hash, key = fresh[:32], fresh[32:]
    else:
        bin_hash = hashed(binding + entry["value"].encode(), key=key)
    return bin_hash, padded, *named(entry, bin_hash, key)


def named(entry: dict[str, Any], bin_hash: bytes, key: bytes) -> tuple[bytes, bytes]:
    """Return inner box and report of a value under its name."""
    binding, secret = bytes.fromhex(entry["binding"]), bytes.fromhex(entry["ephemeral_secret"])
    padded = pad(entry["value"], entry["max_value_bytes"])
    inner = seal_alike(bytes.fromhex(entry["analyzer"]), key, binding + padded)
    return inner, seal(bytes.fromhex(entry["aux_server"]), secret, binding + bin_hash + inner)


def name(output: bytes) -> tuple[bytes, bytes]:
    """Return the hash and the key of the inner box that an evaluator's function gives."""
    return hashed(b"", "bin hash", key=output), hashed(b"", "box key", key=output)
