"""Boxes that the lanes seal are those of libsodium for the same secrets, byte for byte; nothing of a secret is left."""

from __future__ import annotations

import numpy as np
import pytest
from nacl.bindings import crypto_box_keypair, crypto_box_seal_open

from sealed_lanes import Lanes, NoLanes, boxes, make_lanes, self_test
from sealed_lanes.arrays import Octets
from sealed_lanes.field import P
from tests.sealed_lanes.edges import LOW_ORDER
from tests.sealed_lanes.libsodium import seal_rows

PUBLIC, SECRET = crypto_box_keypair()
# And other spellings of 0 and 1.
SMALL_ORDER = (*LOW_ORDER, P, P + 1)


def some(rows: int, length: int) -> tuple[Octets, Octets]:
    """Return plain rows, and a secret for each."""
    drawn = np.random.default_rng((rows, length))
    return (
        drawn.integers(0, 256, (rows, length), dtype=np.uint8),
        drawn.integers(0, 256, (rows, 32), dtype=np.uint8),
    )


def point(value: int) -> bytes:
    return value.to_bytes(32, "little")


def test_boxes_are_those_of_libsodium(lanes: Lanes) -> None:
    for length in (0, 1, 31, 32, 33, 100, 5000):
        for rows in (0, 1, 7, 8, 9, 31, 32, 33, 1000):
            plain, secrets = some(rows, length)
            if rows == 1000 and length == 5000:
                plain = plain[:, ::-1]  # of another layout
            assert np.array_equal(lanes.seal_rows(plain, PUBLIC, secrets), seal_rows(plain, PUBLIC, secrets))


def test_libsodium_opens_them(lanes: Lanes) -> None:
    plain, secrets = some(50, 100)
    sealed = lanes.seal_rows(plain, PUBLIC, secrets)
    assert [crypto_box_seal_open(row.tobytes(), PUBLIC, SECRET) for row in sealed] == [row.tobytes() for row in plain]


def test_secrets_and_recipients_at_the_edges(lanes: Lanes) -> None:
    values = [0, 1, 7, 8, (1 << 255) - 1, (1 << 256) - 1, 1 << 254, 1 << 255, (1 << 255) - 8]
    secrets = np.frombuffer(b"".join(map(point, values)), dtype=np.uint8).reshape(-1, 32)
    plain, _ = some(len(values), 20)
    for value in (2, 9, P - 2, P + 2, P + 18, P // 2, (1 << 255) + 9, (1 << 255) + P + 5):
        assert np.array_equal(lanes.seal_rows(plain, point(value), secrets), seal_rows(plain, point(value), secrets)), (
            value
        )


def test_nothing_is_sealed_to_a_point_of_small_order(lanes: Lanes) -> None:
    for bit in (0, 1 << 255):
        for value in SMALL_ORDER:
            for number in (1, 9):
                plain, secrets = some(number, 20)
                with pytest.raises(ValueError, match="public_key"):
                    lanes.seal_rows(plain, point(value | bit), secrets)


def test_what_has_another_length_is_refused(lanes: Lanes) -> None:
    plain, secrets = some(8, 20)
    for key in (b"", PUBLIC[:31], PUBLIC + b"x"):
        with pytest.raises(ValueError, match=f"{len(key)} bytes.* 32"):
            lanes.seal_rows(plain, key, secrets)
    for wrong in (secrets[:7], secrets[:, :31], np.repeat(secrets, 2, axis=0)[::2]):
        with pytest.raises(ValueError, match=r"\(8, 32\)"):
            lanes.seal_rows(plain, PUBLIC, wrong)


@pytest.mark.parametrize("public_key", [PUBLIC, bytes(32)], ids=["sealed", "refused"])
def test_no_secret_is_left_in_the_memory_of_a_call(
    lanes: Lanes, used: list[tuple[Octets, bytes]], public_key: bytes
) -> None:
    plain, secrets = some(8, 20)
    try:
        lanes.seal_rows(plain, public_key, secrets)
    except ValueError:
        assert public_key != PUBLIC
    ((memory, before),) = used
    assert secrets.view("<u8")[:, 0].tobytes() in before  # the first word of each lane's secret
    assert not memory.any()


def test_the_self_test_finds_boxes_that_are_sealed_wrongly(subtests: pytest.Subtests, lanes: Lanes) -> None:
    right = lanes.seal_rows

    def a_byte(plain: Octets, public_key: bytes, secrets: Octets) -> Octets:
        sealed = right(plain, public_key, secrets)
        sealed[-1, -1] ^= 1
        return sealed

    def two_lanes(plain: Octets, public_key: bytes, secrets: Octets) -> Octets:
        sealed = right(plain, public_key, secrets)
        sealed[[2, 5]] = sealed[[5, 2]]
        return sealed

    def one_secret_for_all(plain: Octets, public_key: bytes, secrets: Octets) -> Octets:
        return right(plain, public_key, np.repeat(secrets[:1], len(secrets), axis=0))

    def an_ephemeral_key_of_another(plain: Octets, public_key: bytes, secrets: Octets) -> Octets:
        sealed = right(plain, public_key, secrets)
        sealed[4, :32] = sealed[3, :32]
        return sealed

    for wrong in (a_byte, two_lanes, one_secret_for_all, an_ephemeral_key_of_another):
        with subtests.test(fault=wrong.__name__), pytest.MonkeyPatch.context() as patch:
            patch.setattr(lanes, "seal_rows", wrong)
            assert "sealed" in (self_test.fault_of(lanes) or "")


def test_code_that_seals_wrongly_is_not_used(lanes: Lanes, monkeypatch: pytest.MonkeyPatch) -> None:
    assert self_test.fault_of(lanes) is None
    monkeypatch.setattr(boxes, "BASE_POINT", 10)
    with pytest.raises(NoLanes, match="sealed"):
        make_lanes()
