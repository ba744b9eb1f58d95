"""libsodium opens rows as PyNaCl's public function opens each; nothing is left of what does not open."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from nacl.bindings import crypto_box_keypair, crypto_box_seal

from hushcount.wire.sealing import Octets, Sealer
from keys.libsodium import open_rows

PUBLIC, SECRET = crypto_box_keypair()


def sealed_rows(plain: Octets) -> Octets:
    return Sealer(PUBLIC).seal_many(plain)


def test_boxes_of_the_public_function_open() -> None:
    for length in (0, 1, 20, 100, 1000):
        plain = np.random.default_rng(length).integers(0, 256, (7, length), dtype=np.uint8)
        theirs = b"".join(crypto_box_seal(row.tobytes(), PUBLIC) for row in plain)
        opened, good = open_rows(np.frombuffer(theirs, np.uint8).reshape(7, -1), PUBLIC, SECRET)
        assert good.all()
        assert np.array_equal(opened, plain)


def test_rows_of_any_layout_are_read_as_they_are() -> None:
    plain = np.random.default_rng(1).integers(0, 256, (40, 60), dtype=np.uint8)
    for view in (plain[::3, 5:25], plain.T, np.asfortranarray(plain), plain[5:5]):
        opened, good = open_rows(sealed_rows(view), PUBLIC, SECRET)
        assert good.all()
        assert np.array_equal(opened, view)
    sealed = sealed_rows(plain)
    opened, _ = open_rows(np.concatenate([sealed, sealed], axis=1)[::2, :108], PUBLIC, SECRET)
    assert np.array_equal(opened, plain[::2])


def test_of_a_box_that_does_not_open_nothing_is_shown() -> None:
    """Each of its bytes altered, among boxes that are not."""
    plain = np.full((2, 30), 0x5A, dtype=np.uint8)
    sealed = np.repeat(sealed_rows(plain), 78, axis=0)
    sealed[np.arange(78), np.arange(78)] ^= 0x80
    opened, good = open_rows(sealed, PUBLIC, SECRET)
    assert not good[:78].any()
    assert good[78:].all()
    assert not opened[:78].any()
    assert (opened[78:] == 0x5A).all()


def test_rows_too_short_for_a_box_do_not_open() -> None:
    for length in (0, 1, 47):
        opened, good = open_rows(np.zeros((3, length), dtype=np.uint8), PUBLIC, SECRET)
        assert opened.shape == (3, 0)
        assert not good.any()


def test_keys_of_wrong_length_are_refused_without_naming_them() -> None:
    rows = np.zeros((1, 60), dtype=np.uint8)
    for key in (b"", SECRET[:31], SECRET + b"x"):
        for work in (lambda k=key: open_rows(rows, PUBLIC, k), lambda k=key: open_rows(rows, k, SECRET)):
            with pytest.raises(ValueError, match=f"{len(key)} bytes.* 32") as caught:
                work()
            assert not key or repr(key) not in str(caught.value)


def test_arrays_outlive_the_calls_that_read_them() -> None:
    """Temporaries are kept until the library is done with them: garbage is collected while many run."""
    plain = np.random.default_rng(2).integers(0, 256, (2000, 50), dtype=np.uint8)
    gc.collect()
    opened, good = open_rows(np.asfortranarray(sealed_rows(plain[:, ::-1])), PUBLIC, SECRET)
    assert good.all()
    assert np.array_equal(opened, plain[:, ::-1])
