"""Arithmetic modulo p = 2**255 - 19, on five limbs of 51 bits, least first.

Limbs may exceed 51 bits: sums and products are not carried until a step needs factors below 2**52. The bounds of
`words` prove that no limb overflows before it is carried. Products are schoolbook: 25 pairs of multiply-and-add of 52
bits.
"""

from __future__ import annotations

from collections.abc import Sequence

from sealed_lanes.words import Machine, Mask, ProofError, Word, choice, constant, mask_of

P = (1 << 255) - 19
BITS = 51
LIMBS = 5
LIMB = (1 << BITS) - 1
FOLD = 19
"""2**255 modulo p."""

Element = Sequence[Word]
"""Five limbs."""


def small(machine: Machine, value: int) -> Element:
    """Return an element below 2**51, the same in all lanes."""
    return [constant(machine, value), *(constant(machine, 0) for _ in range(LIMBS - 1))]


def plus(a: Element, b: Element) -> Element:
    """Return a + b, without carries between limbs."""
    return [x + y for x, y in zip(a, b, strict=True)]


def minus(a: Element, b: Element) -> Element:
    """Return a + m p - b, without carries; m is the least number for which no limb of m p is below b's bound."""
    machine = a[0].machine
    limbs = [LIMB - (FOLD - 1), *[LIMB] * (LIMBS - 1)]
    times = max(-(-y.most // limb) for y, limb in zip(b, limbs, strict=True))
    return [x + constant(machine, times * limb) - y for x, limb, y in zip(a, limbs, b, strict=True)]


def chosen(changes: Mask, a: Element, b: Element) -> Element:
    """Return a in lanes where the mask is all ones, and b in lanes where the mask is 0."""
    return [choice(changes, *both) for both in zip(a, b, strict=True)]


def carried(a: Element) -> Element:
    """Return the element with short limbs: each limb's bits above 51 are added to the next limb (cyclically)."""
    over = [limb >> BITS for limb in a]
    kept = [limb & LIMB for limb in a]
    return [kept[0].plus_product(over[-1], FOLD), *(limb + carry for limb, carry in zip(kept[1:], over, strict=False))]


def times(a: Element, b: Element) -> Element:
    """Return the product a b, without carries between limbs; the limbs of a and b must be below 2**52."""
    pairs = [[(a[i], b[k - i]) for i in range(LIMBS) if 0 <= k - i < LIMBS] for k in range(2 * LIMBS)]

    def column(k: int, total: Word) -> Word:
        # The upper part of a product of limbs i and j has the weight 2**52, twice the weight of column i + j + 1.
        return _doubled(_plus_high(total, pairs[k - 1])) if k else total

    zero = constant(a[0].machine, 0)
    made = []
    for k in range(LIMBS):
        upper = _plus_low(column(k + LIMBS, zero), pairs[k + LIMBS])
        # 2**255 modulo p is 19, and 19 = 2 * 9 + 1.
        if k:
            made.append(_plus_low(column(k, (upper << 3) + upper) + upper, pairs[k]))
        else:
            made.append(_plus_low(_doubled((upper << 3) + upper) + upper, pairs[k]))
    return made


def square(a: Element) -> Element:
    """Return the square a a, without carries between limbs.

    Each product of two different limbs is computed once and doubled.
    """
    pairs = [[(a[i], a[k - i]) for i in range(LIMBS) if i < k - i < LIMBS] for k in range(2 * LIMBS)]

    def doubled_twice(k: int, total: Word, once: Word) -> Word:
        """Return column k, plus four times `total`, plus twice `once`."""
        total = _doubled(_plus_high(total, pairs[k - 1]) if k else total)
        total = _plus_low(total + once, pairs[k])
        if k % 2:
            return _doubled(total.plus_high(a[k // 2], a[k // 2]))
        return _doubled(total).plus_low(a[k // 2], a[k // 2])

    zero = constant(a[0].machine, 0)
    made = []
    for k in range(LIMBS):
        upper = doubled_twice(k + LIMBS, zero, zero)
        # The upper column counts 19 times, and 19 = 4 * 4 + 2 + 1.
        made.append(doubled_twice(k, upper << 2, upper) + upper)
    return made


def plus_multiple(a: Element, b: Element, factor: int) -> Element:
    """Return a + factor b, without carries between limbs; the factor and the limbs of b are below 2**52."""
    zero, by = constant(a[0].machine, 0), constant(a[0].machine, factor)
    over = [zero.plus_high(limb, by) for limb in b]
    low = [x.plus_low(y, by) for x, y in zip(a, b, strict=True)]
    return [low[0].plus_product(over[-1], 2 * FOLD), *(x + _doubled(y) for x, y in zip(low[1:], over, strict=False))]


def reduced(a: Element) -> Element:
    """Return the element's unique representative from 0 to p - 1, with limbs of 51 bits."""
    a = carried(a)
    if (most := sum(limb.most << BITS * at for at, limb in enumerate(a))) >= 2 * P:
        raise ProofError(f"an element may be {most}, must be below 2 p")
    # A number below 2 p is at least p if and only if adding 19 carries out of its 255 bits.
    machine = a[0].machine
    beyond = constant(machine, FOLD)
    for limb in a:
        beyond = (limb + beyond) >> BITS
    return [limb & LIMB for limb in _passed([a[0].plus_product(beyond, FOLD), *a[1:]])]


def is_there(a: Element) -> Mask:
    """Return all ones in lanes where an element is not 0 modulo p, and 0 in lanes where it is 0 modulo p."""
    total, *others = reduced(a)
    for limb in others:
        total += limb
    # The sum of the limbs is below 2**54, so adding 2**54 - 1 carries out of 54 bits unless the sum is 0.
    return mask_of((total + constant(total.machine, (1 << 54) - 1)) >> 54)


def _passed(a: Element) -> Element:
    """Add to each limb the bits above 51 of the limb before it, without removing these bits there."""
    passed = [a[0]]
    for limb in a[1:]:
        passed.append(limb + (passed[-1] >> BITS))
    return passed


def _plus_high(total: Word, pairs: Sequence[tuple[Word, Word]]) -> Word:
    for a, b in pairs:
        total = total.plus_high(a, b)
    return total


def _plus_low(total: Word, pairs: Sequence[tuple[Word, Word]]) -> Word:
    for a, b in pairs:
        total = total.plus_low(a, b)
    return total


def _doubled(a: Word) -> Word:
    return a + a


def unpacked(words: Sequence[Word]) -> Element:
    """Return the limbs of 32 bytes in four words of 64 bits, least first. Bit 255 is ignored (RFC 7748)."""
    limbs = [words[0] & LIMB]
    for number in range(1, LIMBS):
        # `word` and `bit` are the place of a limb's first bit.
        word, bit = divmod(BITS * number, 64)
        kept = 64 - bit
        limb = words[word] >> bit
        if kept < BITS:
            limb += (words[word + 1] & ((1 << (BITS - kept)) - 1)) << kept
        limbs.append(limb & LIMB)
    return limbs


def packed(limbs: Element) -> list[Word]:
    """Return four words of 64 bits for limbs of 51 bits, least first."""
    words = [limbs[0] + ((limbs[1] & ((1 << 13) - 1)) << BITS)]
    for number in range(1, 4):
        shift = 13 * number
        upper = limbs[number + 1] & ((1 << (shift + 13)) - 1)
        words.append((limbs[number] >> shift) + (upper << (BITS - shift)))
    return words
