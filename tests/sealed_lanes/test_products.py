"""Products of the lanes, and of their program on plain integers, are those of RFC 7748, libsodium and Wycheproof."""

from __future__ import annotations

import numpy as np
import pytest

from sealed_lanes import Lanes
from sealed_lanes.arrays import Octets
from sealed_lanes.field import P
from tests.sealed_lanes import many, twin
from tests.sealed_lanes.edges import POINTS, SCALARS, drawn, expected, wycheproof

# RFC 7748, section 5.2: after one, a thousand turns.
_BASE = (9).to_bytes(32, "little")
_TURNS = {
    1: "422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079",
    1000: "684cf59ba83309552800ef566f2f4d3c1c3887c49360e3875f2eb94d99532c51",
}


def test_the_edges_are_all_there() -> None:
    values = {int.from_bytes(row.tobytes(), "little") for row in POINTS}
    assert len(values) == len(POINTS) > 3000
    both = {value for value in values if value ^ (1 << 255) in values}
    assert values == both
    # All that are not reduced, and more below.
    assert set(range(P - 1481, 1 << 255)) <= values
    assert {0, 1, P - 1, P, P + 1, 2 * P - (1 << 255), (1 << 255) - 1} <= values
    zero = ~expected(SCALARS[0], POINTS).any(axis=1)
    # 0, 1, -1, two of order 8, and the other spellings of the first three (RFC 7748, section 7): p - 1, p, p + 1.
    assert zero.sum() == 2 * 7


@pytest.mark.long
def test_the_plain_program_computes_the_products_of_rfc_7748() -> None:
    """With Python's integers, which share no code with what is tested."""
    assert twin.product(_BASE, _BASE).hex() == _TURNS[1]
    octets = ((1 << 256) - 1).to_bytes(32, "little")
    assert twin.product(SCALARS[5].tobytes(), octets) == expected(SCALARS[5], _row(octets)).tobytes()


@pytest.mark.long
def test_the_plain_program_computes_wycheproofs_products() -> None:
    vectors = wycheproof()
    assert len(vectors.numbers) == 518
    assert _wrong(many.products(vectors.scalars, vectors.points), vectors.products, vectors.numbers) == []
    assert np.array_equal(expected(vectors.scalars, vectors.points), vectors.products), "libsodium's are these as well"


@pytest.mark.long
def test_the_plain_program_is_right_at_every_edge() -> None:
    """Each point with one scalar, in turn."""
    scalars = SCALARS[np.arange(len(POINTS)) % len(SCALARS)]
    assert _wrong(many.products(scalars, POINTS), expected(scalars, POINTS)) == []


@pytest.mark.parametrize("number", [30, pytest.param(1000, marks=pytest.mark.long)])
def test_the_plain_program_is_right_at_random(number: int) -> None:
    for seed in range(0, number, 500):
        scalars, points = drawn(min(number, 500), seed), drawn(min(number, 500), seed + 1)
        assert _wrong(many.products(scalars, points), expected(scalars, points)) == []


def test_lanes_repeat_the_product_of_rfc_7748(lanes: Lanes) -> None:
    scalar = point = _BASE
    for turn in range(1, 1001):
        scalar, point = lanes.products(scalar, _row(point)).tobytes(), scalar
        if turn in _TURNS:
            assert scalar.hex() == _TURNS[turn]


def test_lanes_compute_wycheproofs_products(lanes: Lanes) -> None:
    vectors = wycheproof()
    made = [
        lanes.products(scalar.tobytes(), _row(point))
        for scalar, point in zip(vectors.scalars, vectors.points, strict=True)
    ]
    assert _wrong(np.concatenate(made), vectors.products, vectors.numbers) == []


@pytest.mark.parametrize("scalars", [SCALARS[:2], pytest.param(SCALARS, marks=pytest.mark.long)], ids=["few", "all"])
def test_lanes_are_right_at_every_edge(lanes: Lanes, scalars: Octets) -> None:
    for scalar in [*scalars, *drawn(1, 5)]:
        assert _wrong(lanes.products(scalar.tobytes(), POINTS), expected(scalar, POINTS)) == []


@pytest.mark.parametrize("number", [8000, pytest.param(40_000, marks=pytest.mark.long)])
def test_lanes_are_right_at_random(lanes: Lanes, number: int) -> None:
    for seed in range(0, number, 4000):
        (scalar,), points = drawn(1, seed), drawn(4000, seed + 1)
        assert _wrong(lanes.products(scalar.tobytes(), points), expected(scalar, points)) == []


def test_each_lane_computes_its_own_point(lanes: Lanes) -> None:
    """However many points there are: none is computed in the place of another."""
    for number in (
        *range(10),
        31,
        32,
        33,
        64,
        77,
    ):
        points = drawn(number, 7)
        assert np.array_equal(lanes.products(SCALARS[9].tobytes(), points), expected(SCALARS[9], points))


def test_a_scalar_of_another_length_is_refused(lanes: Lanes) -> None:
    for scalar in (b"", bytes(31), bytes(33)):
        with pytest.raises(ValueError, match=f"{len(scalar)} bytes.* 32"):
            lanes.products(scalar, POINTS[:1])


def _row(octets: bytes) -> Octets:
    return np.frombuffer(octets, dtype=np.uint8)[np.newaxis]


def _wrong(made: Octets, right: Octets, numbers: list[int] | None = None) -> list[int]:
    """Return the first rows that differ, by their numbers."""
    assert made.shape == right.shape
    rows = np.flatnonzero((made != right).any(axis=1))[:10].tolist()
    return [numbers[row] for row in rows] if numbers else rows
