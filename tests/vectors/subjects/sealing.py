"""Sealed boxes with a given ephemeral secret, and boxes that are sealed alike."""

from __future__ import annotations

from typing import Any

import numpy as np
from nacl.bindings import crypto_box_seed_keypair

from hushcount.wire.sealing import Sealer, seal_rows
from tests.vectors.subjects.script import octets, require_refused

_PRIME = (1 << 255) - 19
SMALL_ORDER = (
    0,
    1,
    325606250916557431795983626356110631294008115727848805560023387167927233504,
    39382357235489614581723060781553021112529911719440698176882885853963445705823,
    _PRIME - 1,
    _PRIME,
    _PRIME + 1,
)
"""The u-coordinates, below 2**255, of points of order 1, 2, 4 and 8; the last two are written without reduction."""


def keypair(name: str) -> tuple[bytes, bytes]:
    """Return the public and the private key of a name."""
    public, private = crypto_box_seed_keypair(octets(32, "key pair", name))
    return bytes(public), bytes(private)


def sealed(plain: bytes, public: bytes, secret: bytes) -> bytes:
    """Return the sealed box of one plain text with an ephemeral secret."""
    return seal_rows(_row(plain), public, _row(secret)).tobytes()


def _row(plain: bytes) -> Any:
    return np.frombuffer(bytearray(plain), dtype=np.uint8)[np.newaxis]


def _accepted() -> list[dict[str, Any]]:
    public, private = keypair("analyzer")
    made = []
    for length in (0, 1, 17, 24, 64, 65, 300):
        plain, secret = b"".join(octets(60, length, part) for part in range(5))[:length], octets(32, "secret", length)
        box = sealed(plain, public, secret)
        given = {"public_key": public.hex(), "private_key": private.hex(), "ephemeral_secret": secret.hex()}
        made.append({"rule": "seal", **given, "plain": plain.hex(), "sealed": box.hex()})
    # X25519 clamps the secret and takes the last bit of a public key for no part of it.
    marked = public[:-1] + bytes([public[-1] | 0x80])
    for secret, key in ((bytes(32), public), (b"\xff" * 32, public), (octets(32, "marked"), marked)):
        given = {"public_key": key.hex(), "private_key": private.hex(), "ephemeral_secret": secret.hex()}
        box = sealed(b"clamped", key, secret)
        made.append({"rule": "seal", **given, "plain": b"clamped".hex(), "sealed": box.hex()})
    for length in (0, 16, 82, 300):
        plain, key = b"".join(octets(60, "alike", part) for part in range(5))[:length], octets(32, "hash key", length)
        box = Sealer(public).seal_alike(plain, key)
        given = {"public_key": public.hex(), "private_key": private.hex(), "key": key.hex()}
        made.append({"rule": "seal_alike", **given, "plain": plain.hex(), "sealed": box.hex()})
    return made


def _refused() -> list[dict[str, Any]]:
    public, private = keypair("analyzer")
    secret, plain = octets(32, "secret", "refused"), b"a report"
    keys = [(u.to_bytes(32, "little"), "small_order") for u in SMALL_ORDER]
    keys += [((u | 1 << 255).to_bytes(32, "little"), "small_order") for u in SMALL_ORDER]
    keys += [(public[:31], "wrong_length"), (public + b"\0", "wrong_length"), (b"", "wrong_length")]
    made = []
    for key, reason in keys:
        require_refused(ValueError, sealed, plain, key, secret)
        given = {"public_key": key.hex(), "ephemeral_secret": secret.hex(), "plain": plain.hex()}
        made.append({"rule": "seal", **given, "reason": reason})
    box = sealed(plain, public, secret)
    wrong = [
        *((box[:place] + bytes([box[place] ^ 1]) + box[place + 1 :], "forged") for place in (0, 31, 32, 47, 48, 55)),
        (box[:-1], "forged"),
        (box + b"\0", "forged"),
        (box[:47], "wrong_length"),
        (b"", "wrong_length"),
        (bytes(32) + box[32:], "forged"),
    ]
    other = keypair("somebody else")[1]
    opened = [(octets_, private, reason) for octets_, reason in wrong] + [(box, other, "forged")]
    made += [
        {"rule": "open", "private_key": key.hex(), "sealed": one.hex(), "reason": reason} for one, key, reason in opened
    ]
    return made


def data() -> dict[str, Any]:
    """Return the file's content."""
    return {
        "subject": "sealing",
        "about": "Sealed boxes: seal with a given ephemeral secret, seal alike with a key, open",
        "accept": _accepted(),
        "refuse": _refused(),
    }
