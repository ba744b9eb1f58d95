"""Bounds that `words` derives hold for every word that the program computes, and what may overflow is refused."""

from __future__ import annotations

import hashlib
from itertools import pairwise, product

import numpy as np
import pytest
from nacl.bindings import crypto_box_beforenm, crypto_scalarmult, crypto_scalarmult_base

from sealed_lanes import field, hashes, ladder
from sealed_lanes.field import LIMB, LIMBS, P
from sealed_lanes.words import FACTOR, WORD, Mask, ProofError, Word, choice, constant, mask_of, repeated
from tests.sealed_lanes import many, twin
from tests.sealed_lanes.edges import POINTS, SCALARS, drawn, expected
from tests.sealed_lanes.many import MACHINE


def word(*values: int, most: int | None = None) -> Word:
    return Word(MACHINE, np.array(values, dtype=np.uint64), max(values) if most is None else most)


def element(values: list[int], most: int) -> list[Word]:
    """Return limbs of so many elements; the last of each takes what is left."""
    limbs = [[value >> 51 * at & LIMB for value in values] for at in range(LIMBS - 1)]
    limbs.append([value >> 51 * (LIMBS - 1) for value in values])
    return [word(*limb, most=most) for limb in limbs]


def values_of(limbs: field.Element) -> list[int]:
    """Return the whole numbers that limbs stand for."""
    rows = np.broadcast_arrays(*(limb.vector for limb in limbs))
    return [sum(int(limb) << 51 * at for at, limb in enumerate(row)) for row in zip(*rows, strict=True)]


@pytest.mark.long
def test_bounds_hold_for_every_word_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of keys and nonces as well as products, at all edges; with a bound of its own for each operation."""
    worst = {"words": 0}

    def check(self: Word) -> None:
        right(self)
        assert isinstance(self.vector, np.ndarray)
        assert self.least <= int(self.vector.min())
        assert int(self.vector.max()) <= self.most
        worst["words"] += 1

    right = Word.__post_init__
    monkeypatch.setattr(Word, "__post_init__", check)
    points = POINTS[::9]
    scalars = SCALARS[np.arange(len(points)) % len(SCALARS)]
    made = many.products(scalars, points)
    assert np.array_equal(made, expected(scalars, points))
    hashes.box_key(many.words(made))
    hashes.box_nonce(many.words(points), many.words(made))
    assert worst["words"] > 100_000


def test_the_last_reduction_is_right_at_its_corners() -> None:
    """Random points never land near p: multiples of p and their neighbours, spelled in limbs of up to 63 bits."""
    for most in (
        (1 << 52) - 1,
        (1 << 58) - 1,
        (1 << 63) - 1,
    ):
        top = most << 204
        values = sorted({k * P + by for k in (0, 1, 2, 3, top // P - 1) for by in range(-40, 41) if k * P + by >= 0})
        values += [sum(limb << 51 * at for at, limb in enumerate(limbs)) for limbs in product((0, LIMB), repeat=5)]
        found = field.reduced(element(values, most))
        assert values_of(found) == [value % P for value in values]
        # The same with limbs that overlap.
        full = [
            sum(limb << 51 * at for at, limb in enumerate(limbs)) for limbs in product((0, 1, LIMB, most), repeat=5)
        ]
        limbs = [word(*column, most=most) for column in zip(*product((0, 1, LIMB, most), repeat=5), strict=True)]
        found = field.reduced(limbs)
        assert values_of(found) == [value % P for value in full]
        assert all(limb.most <= LIMB for limb in found)


def test_limbs_are_packed_as_they_were_unpacked() -> None:
    whole = [int.from_bytes(row.tobytes(), "little") for row in POINTS]
    limbs = field.unpacked(many.words(POINTS))
    assert values_of(limbs) == [value % (1 << 255) for value in whole]
    assert np.array_equal(many.octets(field.packed(limbs), len(POINTS)), POINTS & _without_bit_255())


def test_arithmetic_is_that_of_the_field() -> None:
    a, b = (element([int.from_bytes(row.tobytes(), "little") % P for row in rows], LIMB) for rows in _pairs())
    x, y = values_of(a), values_of(b)
    for found, right in (
        (field.plus(a, b), [i + j for i, j in zip(x, y, strict=True)]),
        (field.minus(a, b), [i - j for i, j in zip(x, y, strict=True)]),
        (field.times(a, b), [i * j for i, j in zip(x, y, strict=True)]),
        (field.square(a), [i * i for i in x]),
        (field.carried(field.times(a, b)), [i * j for i, j in zip(x, y, strict=True)]),
        (field.plus_multiple(a, b, ladder.A24), [i + ladder.A24 * j for i, j in zip(x, y, strict=True)]),
        (ladder.inverse(a), [pow(i, P - 2, P) for i in x]),
    ):
        assert [value % P for value in values_of(found)] == [value % P for value in right]


@pytest.mark.parametrize("number", [1, 4])
def test_one_inversion_serves_all_quotients(number: int) -> None:
    """Also where some are 0, however that is spelled: nothing of one reaches another."""
    numerators, denominators = ([int.from_bytes(row.tobytes(), "little") for row in drawn(64, at)] for at in (1, 2))
    zeros = [0, P, 2 * P, 3 * P]
    denominators = [zeros[at // 5 % 4] if at % 5 == 0 else value for at, value in enumerate(denominators)]
    denominators[1:4] = [1, P - 1, P + 1]
    rolled = [
        [np.roll(np.array(values, dtype=object), turn).tolist() for values in (numerators, denominators)]
        for turn in range(number)
    ]
    top = (1 << 52) - 1
    made = ladder.quotients([(element(x, top), element(z, top)) for x, z in rolled])
    for words, (x, z) in zip(made, rolled, strict=True):
        right = [i * pow(j, P - 2, P) % P for i, j in zip(x, z, strict=True)]
        assert many.octets(words, 64).tobytes() == b"".join(value.to_bytes(32, "little") for value in right)


def test_masks_are_the_changes_of_a_clamped_scalars_bits() -> None:
    for scalar in SCALARS:
        clamped = int.from_bytes(scalar.tobytes(), "little") & (1 << 254) - 8 | 1 << 254
        masks: list[Mask] = []
        ladder.write_masks(twin.words(scalar.tobytes()), lambda _, mask, masks=masks: masks.append(mask))  # type: ignore[misc]
        bits = [clamped >> at & 1 for at in range(255, -1, -1)]
        assert masks == [Mask((WORD - 1) * (bit ^ before)) for before, bit in pairwise(bits)]
        assert len(masks) == ladder.STEPS


def test_hashes_are_those_of_libsodium_and_python() -> None:
    secret, others = SCALARS[1].tobytes(), drawn(20, 3)
    ephemeral = np.frombuffer(
        b"".join(crypto_scalarmult_base(other.tobytes()) for other in others), dtype=np.uint8
    ).reshape(-1, 32)
    keys = many.octets(hashes.box_key(many.words(expected(SCALARS[1], ephemeral))), len(others))
    recipient = np.broadcast_to(np.frombuffer(crypto_scalarmult_base(secret), dtype=np.uint8), (1, 32))
    nonces = many.octets(hashes.box_nonce(many.words(ephemeral), many.words(recipient)), len(others))
    for row, key, nonce in zip(ephemeral, keys, nonces, strict=True):
        assert key.tobytes() == crypto_box_beforenm(row.tobytes(), secret)
        assert nonce.tobytes() == hashlib.blake2b(row.tobytes() + recipient.tobytes(), digest_size=24).digest()
    assert crypto_scalarmult(secret, ephemeral[0].tobytes()) != keys[0].tobytes()


def test_what_may_overflow_is_refused() -> None:
    for place, overflows in enumerate(
        (
            lambda: word(WORD - 1) + word(1),
            lambda: word(5) - word(6),
            lambda: word(5, most=9) - constant(MACHINE, 6),
            lambda: word(1 << 60) << 4,
            lambda: word(0).plus_low(word(FACTOR), word(1)),
            lambda: word(0).plus_high(word(1), word(FACTOR)),
            lambda: word(WORD - 1).plus_low(word(3), word(5)),
            lambda: word(WORD - 1).plus_high(word(FACTOR - 1), word(3)),
            lambda: word(0).plus_product(word(FACTOR // 2), 2),
            lambda: mask_of(word(2)),
            lambda: repeated(3, [word(9)], 8, lambda _, words: words),
            lambda: repeated(3, [word(4)], 8, lambda _, words: [words[0] + words[0]]),
            lambda: field.times([word(FACTOR)] * 5, [word(1)] * 5),
            lambda: field.minus([word(0)] * 5, [word(WORD - 1)] * 5),
            lambda: word(1) >> 64,
            lambda: word(0) << -1,
            lambda: word(1).rotated(64),
            lambda: repeated(0, [word(1)], 8, lambda _, words: words),
        )
    ):
        with pytest.raises(ProofError, match=r"(may be|is by) .*must be|has 0 turns, must have"):
            pytest.fail(f"{place}: {overflows()}")


def test_a_choice_takes_one_or_the_other() -> None:
    mask = Mask(np.array([0, WORD - 1], dtype=np.uint64))
    chosen = choice(mask, word(5, 6, most=9), word(7, 8, most=20))
    assert chosen.vector.tolist() == [7, 6]
    assert chosen.most == 20


def _pairs() -> tuple[np.ndarray, np.ndarray]:
    rows = np.concatenate([POINTS[::31], drawn(50, 1)])
    return rows, np.roll(rows, 17, axis=0)


def _without_bit_255() -> np.ndarray:
    kept = np.full(32, 255, dtype=np.uint8)
    kept[31] = 127
    return kept
