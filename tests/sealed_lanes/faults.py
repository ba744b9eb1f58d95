"""Faults planted into the lanes' code, one at a time, and who catches each: `python -m tests.sealed_lanes.faults`.

The generator refuses to emit what may overflow; the self-test refuses to start with what computes otherwise. A fault
that neither catches would still lose no report: libsodium tries again what the lanes refuse.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType

import sealed_lanes

_ORDER = ("words", "field", "ladder", "hashes", "emit", "boxes", "self_test", "compiled")


@dataclass(frozen=True)
class Fault:
    """A change of a module's text.

    Attributes:
        name: for people.
        module: of `sealed_lanes`.
        old: what is there, once.
        new: what takes its place.
    """

    name: str
    module: str
    old: str
    new: str


_OVERFLOWS = """
ladder: a carry dropped before a square
    a, b = carried(plus(x2, z2))
    a, b = plus(x2, z2)
ladder: a carry dropped before a product
    carried(minus(x3, z3))
    minus(x3, z3)
ladder: a carry dropped between squares
    carried(square(limbs))
    square(limbs)
field: limbs of 52 bits
    BITS = 51
    BITS = 52
field: half the multiple of p before a difference
    times * limb
    times // 2 * limb
field: the last reduction of what is not below 2 p
    a = carried(a)
    pass
ladder: an invariant that does not follow
    _LAZY = (1 << 61) - 1
    _LAZY = (1 << 56) - 1
ladder: an invariant that overflows
    _LAZY = (1 << 61) - 1
    _LAZY = (1 << 64) - 1
boxes: a bound of stored limbs that does not follow
    Words(_PAIR, ladder.CARRIED)
    Words(_PAIR, 1)
"""
_DIFFERS = """
field: carries between limbs dropped
    *(limb + carry for
    *(limb for
field: the carry of the last limb dropped
    kept[0].plus_product(over[-1], FOLD)
    kept[0]
field: a carry of the last reduction dropped
    append(limb + (passed[-1] >> BITS))
    append(limb)
field: 18 for 19
    FOLD = 19
    FOLD = 18
field: 17 for 19 where columns fold
    _doubled((upper << 3) + upper)
    _doubled(upper << 3)
ladder: a24 is 121,666
    121_665
    121_666
field: limbs of 50 bits
    BITS = 51
    BITS = 50
field: a multiple of p + 1 before a difference
    LIMB - (FOLD - 1),
    LIMB - (FOLD - 2),
field: the last reduction missing
    a[0].plus_product(beyond, FOLD), *a[1:]
    *a
field: the upper half of a column not doubled
    return _doubled(_plus_high(total, pairs[k - 1])) if
    return _plus_high(total, pairs[k - 1]) if
field: a square of a limb twice
    if i < k - i < LIMBS
    if i <= k - i < LIMBS
emit: two lanes swapped
    self.builder.store(vector, self
    self.builder.store(self.builder.shuffle_vector(vector, vector, SWAPPED), self
emit: two lanes swapped in a product
    return self.builder.call(function, vectors)
    return self.builder.shuffle_vector(self.builder.call(function, vectors), ir.Constant(LANE, None), SWAPPED)
emit: lower halves for upper ones
    vpmadd52h.uq
    vpmadd52l.uq
ladder: a step of the ladder missing
    STEPS = 255
    STEPS = 254
ladder: bit 254 of the scalar not set
    + constant(machine, 1 << 62)
    + constant(machine, 0)
ladder: bits 0 to 2 of the scalar kept
    WORD - 8
    WORD - 1
ladder: a mask of the bit, not of its change
    mask_of(bit ^ (before & 1))
    mask_of(bit)
ladder: points change places the other way
    chosen(changes, c, a)
    chosen(changes, a, c)
field: bit 255 of a point counts
    limbs.append(limb & LIMB)
    limbs.append(limb)
field: a bit lost where words are packed
    limbs[1] & ((1 << 13) - 1)
    limbs[1] & ((1 << 12) - 1)
ladder: another exponent of the inverse
    squares(ones250, 5), z11
    squares(ones250, 5), z9
ladder: zeros inverted with the others
    [chosen(mask, z, one) for mask
    [z for mask
ladder: quotients in the wrong order
    return made[::-1]
    return made
boxes: rows of the second turn not reached
    builder.mul(turn, _ROWS)
    builder.mul(turn, ir.Constant(I64, LANES))
hashes: another rotation of HSalsa20
    (7, 9, 13, 18)
    (7, 9, 13, 17)
hashes: another rotation of BLAKE2b
    (second, 16, 63)
    (second, 16, 62)
boxes: a product of zero makes a key
    "!=", bits, ir.Constant(I64, 0)
    ">=", bits, ir.Constant(I64, 0)
boxes: a box that libsodium refused is taken
    icmp_signed("==", failed
    icmp_signed("<=", failed
boxes: every box opened with the key of the first lane
    self._code.at(self._code.vectors(self._scratch, first), offset)
    self._code.vectors(self._scratch, first)
boxes: offsets of 16 bits
    content, box = rows.of(plain, row, length),
    content, box = code.at(plain, builder.and_(builder.mul(row, length), ir.Constant(I64, 65535))),
boxes: row numbers of eight bits
    builder.add(builder.mul(turn, _ROWS), slot)
    builder.and_(builder.add(builder.mul(turn, _ROWS), slot), ir.Constant(I64, 255))
boxes: another base point
    BASE_POINT = 9
    BASE_POINT = 16
"""


def _read(text: str) -> tuple[Fault, ...]:
    lines = text.replace(
        "SWAPPED", "ir.Constant(ir.VectorType(ir.IntType(32), 8), [0, 1, 5, 3, 4, 2, 6, 7])"
    ).splitlines()
    heads = zip(lines[1::3], lines[2::3], lines[3::3], strict=True)
    return tuple(Fault(*head.split(": ")[::-1], old.strip(), new.strip()) for head, old, new in heads)


REFUSED, FAILING = _read(_OVERFLOWS), _read(_DIFFERS)
"""What the generator refuses, and what the self-test refuses."""


@contextmanager
def planted(fault: Fault | None) -> Iterator[dict[str, ModuleType]]:
    """Make the modules of `sealed_lanes` anew, one of them with a fault; afterwards the old ones are back."""
    names = {short: f"{sealed_lanes.__name__}.{short}" for short in _ORDER}
    old = {short: import_module(name) for short, name in names.items()}
    made: dict[str, ModuleType] = {}
    try:
        for short, name in names.items():
            path = Path(str(old[short].__file__))
            text = path.read_text()
            if fault is not None and fault.module == short:
                if text.count(fault.old) != 1:
                    raise ValueError(f"{fault.name}: {short}.py has {fault.old!r} {text.count(fault.old)} times")
                text = text.replace(fault.old, fault.new)
            made[short] = sys.modules[name] = ModuleType(name)
            setattr(sealed_lanes, short, made[short])
            exec(compile(text, str(path), "exec"), made[short].__dict__)  # noqa: S102  # our own text
        yield made
    finally:
        for short, name in names.items():
            sys.modules[name] = old[short]
            setattr(sealed_lanes, short, old[short])


def generated(fault: Fault | None) -> str:
    """Return why the generator refuses to emit code with a fault; empty if it does not."""
    with planted(fault) as modules:
        try:
            modules["boxes"].module()
        except Exception as refused:
            # An exception of any other kind ends the making as well.
            return f"{type(refused).__name__}: {refused}"
        return ""


def started(fault: Fault | None) -> str:
    """Return why code with a fault does not start; empty if it does. Needs a processor that has the instructions."""
    with planted(fault) as modules:
        try:
            modules["compiled"].make_lanes()
        except modules["compiled"].NoLanes as refused:
            return str(refused)
        return ""


def main() -> None:
    print("| fault | caught by | says |\n|---|---|---|")
    for fault in (*REFUSED, *FAILING):
        by, says = "generator", generated(fault)
        if not says:
            by, says = "self-test", started(fault).removeprefix("the code failed its test: ")
        print(f"| {fault.name} | {by if says else 'NOBODY'} | {says} |")


if __name__ == "__main__":
    main()
