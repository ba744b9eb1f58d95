"""X25519: the Montgomery ladder of RFC 7748, section 5, without a branch and without a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sealed_lanes.field import (
    LIMBS,
    Element,
    carried,
    chosen,
    is_there,
    minus,
    packed,
    plus,
    plus_multiple,
    reduced,
    small,
    square,
    times,
    unpacked,
)
from sealed_lanes.words import WORD, Index, Mask, Word, constant, mask_of, repeated

STEPS = 255
A24 = 121_665
"""(486662 - 2) / 4."""
_LAZY = (1 << 61) - 1
"""The invariant of the ladder: a bound of all limbs of its points, which are products without carries between limbs."""
CARRIED = (1 << 52) - 1
"""The bound of each limb of an element that was carried."""


def product(point: Sequence[Word], mask: Callable[[Index], Mask]) -> tuple[Element, Element]:
    """Return x and z, both carried: the product of scalar and point is x / z, or 0 where z is 0.

    Args:
        point: the u-coordinate, as four words, least first; all 32-byte strings are valid.
        mask: returns a step's mask, which is all ones if the ladder's two points are exchanged, else 0 (`write_masks`).
    """
    machine = point[0].machine
    x1 = unpacked(point)

    def step(index: Index, state: list[Word]) -> list[Word]:
        x2, z2, x3, z3 = (state[first : first + LIMBS] for first in range(0, len(state), LIMBS))
        a, b = carried(plus(x2, z2)), carried(minus(x2, z2))
        c, d = carried(plus(x3, z3)), carried(minus(x3, z3))
        # If the points are exchanged, da and cb are exchanged too, which changes neither their sum nor the square of
        # their difference.
        da, cb = times(d, a), times(c, b)
        changes = mask(index)
        aa, bb = carried(square(chosen(changes, c, a))), carried(square(chosen(changes, d, b)))
        e = carried(minus(aa, bb))
        return [
            *times(aa, bb),
            *times(e, carried(plus_multiple(aa, e, A24))),
            *square(carried(plus(da, cb))),
            *times(x1, carried(square(carried(minus(da, cb))))),
        ]

    start = [*small(machine, 1), *small(machine, 0), *x1, *small(machine, 1)]
    # The clamped scalar is even, so a last exchange of the points is not needed.
    ended = repeated(STEPS, start, _LAZY, step)
    return carried(ended[:LIMBS]), carried(ended[LIMBS : 2 * LIMBS])


def quotients(pairs: Sequence[tuple[Element, Element]]) -> list[list[Word]]:
    """Return x / z of each pair, and 0 where z is 0, reduced and packed into four words.

    One inversion is enough for all pairs (Montgomery 1987, section 10.3.1): only the product of all z is inverted, in
    which each z that is 0 is replaced by 1.
    """
    machine = pairs[0][0][0].machine
    zero, one = small(machine, 0), small(machine, 1)
    there = [is_there(z) for _, z in pairs]
    factors = [chosen(mask, z, one) for mask, (_, z) in zip(there, pairs, strict=True)]
    products = factors[:1]
    for factor in factors[1:]:
        products.append(carried(times(products[-1], factor)))
    inverted = inverse(products.pop())
    made = []
    for (x, _), mask, factor in zip(pairs[::-1], there[::-1], factors[::-1], strict=True):
        over = carried(times(inverted, products.pop())) if products else inverted
        inverted = carried(times(inverted, factor))
        made.append(packed(chosen(mask, reduced(times(x, over)), zero)))
    return made[::-1]


def write_masks(scalar: Sequence[Word], write: Callable[[Index, Mask], None]) -> None:
    """Clamp a scalar of four words, and write the mask of each step of the ladder.

    Masks are written to memory, so that no compiler can infer that a mask has only two values, and replace the mask by
    a jump.
    """
    machine = scalar[0].machine
    # A clamped scalar is a multiple of 8, with bit 254 set and bit 255 clear.
    clamped = [scalar[0] & (WORD - 8), *scalar[1:3], (scalar[3] & (1 << 62) - 1) + constant(machine, 1 << 62)]

    def shifted(words: Sequence[Word]) -> list[Word]:
        up = [(word & (1 << 63) - 1) << 1 for word in words]
        return [up[0], *(word + (below >> 63) for word, below in zip(up[1:], words, strict=False))]

    def step(index: Index, state: list[Word]) -> list[Word]:
        *words, before = state
        bit = words[-1] >> 63
        write(index, mask_of(bit ^ (before & 1)))
        return [*shifted(words), bit]

    repeated(STEPS, [*shifted(clamped), constant(machine, 0)], WORD - 1, step)


def inverse(z: Element) -> Element:
    """Return z**(p - 2), which is 1 / z, and 0 for z = 0; its limbs are carried."""

    def squares(a: Element, number: int) -> Element:
        return repeated(number, a, CARRIED, lambda _, limbs: carried(square(limbs)))

    def by(a: Element, b: Element) -> Element:
        return carried(times(a, b))

    z2 = carried(square(z))
    z9 = by(squares(z2, 2), z)
    z11 = by(z9, z2)
    # onesN is z to the power 2**N - 1, which has N ones in binary.
    ones5 = by(carried(square(z11)), z9)
    ones10 = by(squares(ones5, 5), ones5)
    ones20 = by(squares(ones10, 10), ones10)
    ones40 = by(squares(ones20, 20), ones20)
    ones50 = by(squares(ones40, 10), ones10)
    ones100 = by(squares(ones50, 50), ones50)
    ones200 = by(squares(ones100, 100), ones100)
    ones250 = by(squares(ones200, 50), ones50)
    return by(squares(ones250, 5), z11)
