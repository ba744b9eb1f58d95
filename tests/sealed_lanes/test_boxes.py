"""Boxes open in lanes as by libsodium, refusals included; nothing secret stays, and nobody disturbs another."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from nacl.bindings import (
    crypto_box_keypair,
    crypto_scalarmult,
    crypto_secretbox,
    crypto_secretbox_NONCEBYTES,
    crypto_secretbox_open,
)

from sealed_lanes import Lanes, hashes, make_lanes
from sealed_lanes.arrays import Octets
from tests.sealed_lanes import libsodium, many
from tests.sealed_lanes.edges import POINTS, drawn, expected

PUBLIC, SECRET = crypto_box_keypair()


def sealed(rows: int, length: int) -> tuple[Octets, Octets]:
    """Return plain rows and their boxes."""
    plain = np.random.default_rng((rows, length)).integers(0, 256, (rows, length), dtype=np.uint8)
    return plain, libsodium.sealed_rows(plain, PUBLIC)


def require_alike(lanes: Lanes, boxes: Octets) -> None:
    plain, opened = lanes.open_rows(boxes, PUBLIC, SECRET)
    right, good = libsodium.open_rows(boxes, PUBLIC, SECRET)
    assert np.array_equal(plain, right)
    assert np.array_equal(opened, good)
    assert (plain.dtype, opened.dtype) == (right.dtype, good.dtype)


def test_boxes_open_as_by_libsodium(lanes: Lanes) -> None:
    for length in (0, 1, 52, 100, 5000):
        for rows in (0, 1, 8, 9, 31, 32, 33, 100):
            plain, boxes = sealed(rows, length)
            found, opened = lanes.open_rows(boxes, PUBLIC, SECRET)
            assert np.array_equal(found, plain)
            assert opened.tolist() == [True] * rows
            require_alike(lanes, boxes[::-1])


def test_a_box_is_refused_whichever_byte_is_altered(lanes: Lanes) -> None:
    """Each of its bits, beside boxes that open."""
    plain, (box,) = sealed(1, 20)
    altered = np.tile(box, (8 * len(box) + 1, 1))
    bits = np.arange(8 * len(box))
    altered[bits, bits // 8] ^= (1 << bits % 8).astype(np.uint8)
    found, opened = lanes.open_rows(altered, PUBLIC, SECRET)
    assert np.flatnonzero(opened).tolist() == [len(bits)]
    assert np.array_equal(found[-1], plain[0])
    assert not found[:-1].any()
    require_alike(lanes, altered)


def test_bad_boxes_leave_good_ones_alone(lanes: Lanes) -> None:
    """Points of low order are among them, which have no inverse, and random bytes."""
    plain, boxes = sealed(500, 30)
    bad = np.random.default_rng(1).permutation(500)[:250]
    boxes[bad[:125]] = np.random.default_rng(2).integers(0, 256, (125, boxes.shape[1]), dtype=np.uint8)
    boxes[bad[125:], :32] = POINTS[:125]
    found, opened = lanes.open_rows(boxes, PUBLIC, SECRET)
    assert sorted(np.flatnonzero(~opened)) == sorted(bad)
    assert np.array_equal(found[opened], plain[opened])
    require_alike(lanes, boxes)


def test_a_box_that_everybody_could_seal_is_refused_and_its_content_not_shown(lanes: Lanes) -> None:
    """The product of a point of low order is zero, and with it anybody knows the key: HSalsa20 of zeros."""
    key = many.octets(hashes.box_key(many.words(np.zeros((1, 32), dtype=np.uint8))), 1).tobytes()
    low = POINTS[~expected(np.frombuffer(SECRET, dtype=np.uint8), POINTS).any(axis=1)]
    boxes = []
    for point in (row.tobytes() for row in low):
        nonce = hashlib.blake2b(point + PUBLIC, digest_size=crypto_secretbox_NONCEBYTES).digest()
        sealed_by_anybody = crypto_secretbox(b"not zero", nonce, key)
        assert crypto_secretbox_open(sealed_by_anybody, nonce, key) == b"not zero"
        boxes.append(point + sealed_by_anybody)
    assert len(boxes) == 14
    rows = np.frombuffer(b"".join(boxes), dtype=np.uint8).reshape(len(boxes), -1)
    found, opened = lanes.open_rows(rows, PUBLIC, SECRET)
    assert not opened.any()
    assert not found.any()
    require_alike(lanes, rows)


def test_boxes_of_others_and_boxes_too_short_are_refused(lanes: Lanes) -> None:
    other, secret = crypto_box_keypair()
    _, boxes = sealed(40, 10)
    for key in ((other, secret), (other, SECRET), (PUBLIC, secret)):
        assert not lanes.open_rows(boxes, *key)[1].any()
    for size in (0, 1, 31, 32, 47):
        found, opened = lanes.open_rows(boxes[:, :size], PUBLIC, SECRET)
        assert found.shape == (40, 0)
        assert not opened.any()
    for size in (48, 57):
        require_alike(lanes, boxes[:, :size])


def test_keys_of_another_length_are_refused_and_not_shown(lanes: Lanes) -> None:
    _, boxes = sealed(3, 10)
    for key in ((PUBLIC[:31], SECRET), (PUBLIC, SECRET[:31]), (PUBLIC, SECRET + b"x")):
        with pytest.raises(ValueError, match=r"\d+ bytes.* 32") as refused:
            lanes.open_rows(boxes, *key)
        assert not any(part.hex() in str(refused.value) or repr(part) in str(refused.value) for part in key)


@pytest.mark.parametrize("fails", [False, True], ids=["opened", "failed"])
def test_nothing_secret_is_left_in_the_memory_of_a_call(
    lanes: Lanes, used: list[tuple[Octets, bytes]], fails: bool
) -> None:
    """The scalar, the shared points and the keys of boxes are there before the wiping; afterwards all is zero."""
    plain, boxes = sealed(32, 20)
    if fails:
        with pytest.raises(ValueError, match=r"33 bytes.* 32"):
            lanes.open_rows(boxes, PUBLIC + b"x", SECRET)
    else:
        assert np.array_equal(lanes.open_rows(boxes, PUBLIC, SECRET)[0], plain)
    ((memory, before),) = used
    assert SECRET[:8] * 8 in before, "the scalar, in all lanes"
    if not fails:
        shared = b"".join(crypto_scalarmult(SECRET, box[:32].tobytes())[:8] for box in boxes[:8])
        assert shared in before, "the first word of the products of eight lanes"
    assert memory.nbytes == len(before)
    assert not memory.any()


def test_threads_do_not_disturb_each_other(lanes: Lanes) -> None:
    """Each with a key of its own, many times."""

    def turn(number: int) -> bool:
        public, secret = crypto_box_keypair()
        plain = drawn(100, number)
        found, opened = lanes.open_rows(libsodium.sealed_rows(plain, public), public, secret)
        return bool(opened.all()) and np.array_equal(found, plain)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(turn, range(60)))


_PROCESS = """
import hashlib, os, sys
import numpy as np
from sealed_lanes import make_lanes
boxes = np.frombuffer(sys.stdin.buffer.read(), dtype=np.uint8).reshape(64, -1)
public, secret = bytes.fromhex(os.environ["PUBLIC"]), bytes.fromhex(os.environ["SECRET"])
lanes = make_lanes()
def digest():
    plain, opened = lanes.open_rows(boxes, public, secret)
    return hashlib.sha256(plain.tobytes() + opened.tobytes()).hexdigest()
first = digest()
if os.fork() == 0:
    print("child", digest(), flush=True)
    os._exit(0)
os.wait()
print("parent", first, digest())
"""


@pytest.mark.long
def test_processes_and_their_forks_open_alike(lanes: Lanes) -> None:
    plain, boxes = sealed(64, 40)
    boxes[5, 40] ^= 1
    plain[5] = 0
    opened = np.arange(64) != 5
    digest = hashlib.sha256(plain.tobytes() + opened.tobytes()).hexdigest()
    environment = {"PUBLIC": PUBLIC.hex(), "SECRET": SECRET.hex()}
    ran = subprocess.run(  # noqa: S603  # our own words
        [sys.executable, "-c", _PROCESS], env=environment, input=boxes.tobytes(), stdout=subprocess.PIPE, check=True
    )
    assert ran.stdout.decode().split() == ["child", digest, "parent", digest, digest]


@pytest.mark.long
def test_lanes_made_again_open_alike(lanes: Lanes) -> None:
    _, boxes = sealed(40, 40)
    again = make_lanes()
    assert np.array_equal(again.open_rows(boxes, PUBLIC, SECRET)[0], lanes.open_rows(boxes, PUBLIC, SECRET)[0])
    del again
    require_alike(lanes, boxes)
