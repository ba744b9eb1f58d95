"""Boxes sealed in arrays are those of PyNaCl's public functions, bit for bit, each with a secret that is wiped."""

from __future__ import annotations

import gc
import hashlib
from contextlib import nullcontext

import numpy as np
import pytest
from nacl.bindings import crypto_box, crypto_box_keypair, crypto_box_seal_open, crypto_scalarmult_base

from hushcount.wire.sealing import Octets, Sealer, seal_rows
from sealed_lanes.field import P
from tests.sealed_lanes.edges import LOW_ORDER

PUBLIC, SECRET = crypto_box_keypair()
SECRETS = np.frombuffer(SECRET, dtype=np.uint8)[np.newaxis]
KEYS = [bytes([number]) * 32 for number in range(20)]


def sealed_rows(plain: Octets) -> Octets:
    return Sealer(PUBLIC).seal_many(plain)


def opened(sealed: Octets) -> list[bytes]:
    return [crypto_box_seal_open(row.tobytes(), PUBLIC, SECRET) for row in sealed]


def test_rows_of_any_layout_are_read_as_they_are() -> None:
    plain = np.random.default_rng(1).integers(0, 256, (40, 60), dtype=np.uint8)
    for view in (plain[::3, 5:25], plain.T, np.asfortranarray(plain), plain[5:5]):
        assert opened(sealed_rows(view)) == [row.tobytes() for row in view]


def test_keys_of_wrong_length_are_refused_without_naming_them() -> None:
    for key in (b"", PUBLIC[:31], PUBLIC + b"x"):
        with pytest.raises(ValueError, match=f" {len(key)} bytes.* 32") as caught:
            seal_rows(np.zeros((1, 60), dtype=np.uint8), key, SECRETS)
        assert not key or repr(key) not in str(caught.value)


def test_a_key_that_nothing_can_be_sealed_to_is_refused() -> None:
    """The points of low order: whatever is sealed to one, everyone could open."""
    for value in (*LOW_ORDER, P, P + 1):
        for bit in (0, 1 << 255):
            with pytest.raises(ValueError, match="X25519"):
                seal_rows(np.zeros((1, 10), dtype=np.uint8), (value | bit).to_bytes(32, "little"), SECRETS)


def test_arrays_outlive_the_calls_that_read_them() -> None:
    """Temporaries are kept until the library is done with them: garbage is collected while many run."""
    plain = np.random.default_rng(2).integers(0, 256, (2000, 50), dtype=np.uint8)
    gc.collect()
    assert opened(sealed_rows(plain[:, ::-1])) == [row.tobytes() for row in plain[:, ::-1]]


def test_a_box_is_that_of_libsodium_for_its_secret(subtests: pytest.Subtests) -> None:
    """Spelled out as crypto_box_seal is documented: ephemeral key, nonce from both keys, crypto_box."""
    for length in [0, 1, 100]:
        with subtests.test(length=length):
            plain = np.random.default_rng(length).integers(0, 256, (3, length), dtype=np.uint8)
            secrets = np.random.default_rng(9).integers(0, 256, (3, 32), dtype=np.uint8)
            for row, secret, box in zip(plain, secrets, seal_rows(plain, PUBLIC, secrets), strict=True):
                ephemeral = crypto_scalarmult_base(secret.tobytes())
                nonce = hashlib.blake2b(ephemeral + PUBLIC, digest_size=24).digest()
                assert box.tobytes() == ephemeral + crypto_box(row.tobytes(), nonce, PUBLIC, secret.tobytes())


def test_each_row_must_have_a_secret() -> None:
    for secrets in (np.zeros((1, 32), np.uint8), np.zeros((2, 31), np.uint8), np.zeros((3, 32), np.uint8)):
        with pytest.raises(ValueError, match=r"\(2, 32\)"):
            seal_rows(np.zeros((2, 10), dtype=np.uint8), PUBLIC, secrets)


class Watched:
    """Seals by libsodium; keeps the secrets it was given, as memory and as they were."""

    def __init__(self) -> None:
        self.memory: list[Octets] = []
        self.secrets: list[bytes] = []

    def __call__(self, plain: Octets, public_key: bytes, secrets: Octets) -> Octets:
        self.memory.append(secrets)
        self.secrets.extend(row.tobytes() for row in secrets)
        return seal_rows(plain, public_key, secrets)


def test_every_box_has_a_secret_that_no_other_has(subtests: pytest.Subtests) -> None:
    for threads in [1, 3]:
        with subtests.test(threads=threads):
            watched, plain = Watched(), np.zeros((100, 2), dtype=np.uint8)
            for _ in range(2):
                Sealer(PUBLIC, watched).seal_many(plain, threads)
            assert len(watched.memory) == 2 * threads
            assert len(set(watched.secrets)) == 200


def test_secrets_are_wiped(subtests: pytest.Subtests) -> None:
    """Also if nothing can be sealed to the key."""
    for threads in [1, 3]:
        for public_key in [PUBLIC, bytes(32)]:
            with subtests.test(threads=threads, sealed=public_key == PUBLIC):
                watched, plain = Watched(), np.zeros((20, 2), dtype=np.uint8)
                sealer = Sealer(public_key, watched)
                for seal, more in ((sealer.seal_many, ()), (sealer.seal_many_alike, (KEYS,))):
                    with nullcontext() if public_key == PUBLIC else pytest.raises(ValueError, match="X25519"):
                        seal(plain, *more, threads)
                assert all(any(secret) for secret in watched.secrets)
                assert not any(part.any() for part in watched.memory)


def test_rows_sealed_alike_are_each_as_alone() -> None:
    plain, sealer = np.arange(40, dtype=np.uint8).reshape(20, 2), Sealer(PUBLIC)
    boxes = sealer.seal_many_alike(plain, KEYS, 3)
    alone = [sealer.seal_alike(row.tobytes(), key) for row, key in zip(plain, KEYS, strict=True)]
    assert [box.tobytes() for box in boxes] == alone
    assert sealer.seal_many_alike(plain[:0], []).shape == (0, 50)
