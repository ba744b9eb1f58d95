"""What machine code tells by its time: a reader of LLVM's assembly that follows what is public through every register.

Public are the arguments of a function (addresses and numbers of rows), what the assembly itself says, and what is
computed of these alone: counters, their bounds, and addresses. Whatever is loaded from memory is secret, a slot of the
stack excepted that a public register was stored to; whatever a vector register has is secret.

The rule: a jump depends on public values alone, an address is made of public values alone, a call goes to a public
address, and every instruction is one of those below, whose time does not depend on what it computes. No address of the
stack is taken, so that no store but one to a slot changes a slot.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_ARGUMENTS = ("rdi", "rsi", "rdx", "rcx", "r8", "r9")
_KEPT_BY_CALLS = ("rbx", "rbp", "rsp", "r12", "r13", "r14", "r15")
_MOVES = {"movq", "movl", "movb", "movabsq", "movzbl", "movzwl", "leaq", "leal"}
_SUMS = {f"{name}{size}" for name in ("add", "sub", "imul", "and", "or", "xor", "shl", "shr", "sar") for size in "bwlq"}
_COUNTS = {f"{name}{size}" for name in ("inc", "dec", "neg", "not") for size in "lq"}
_COMPARES = {f"{name}{size}" for name in ("cmp", "test") for size in "bwlq"}
_CONDITION = r"(?:n?[abgl]e?|n?[ceosz]|n?p)"
_VECTORS = {
    "vpaddq", "vpsubq", "vpmadd52luq", "vpmadd52huq", "vpsllq", "vpsrlq", "vprorq", "vprolq", "vpshldq", "vpternlogq",
    "vpand", "vpandd", "vpandq", "vpandn", "vpandnd", "vpandnq", "vpor", "vpord", "vporq", "vpxor", "vpxord", "vpxorq",
    "vxorps", "vmovaps", "vmovups", "vmovdqa64", "vmovdqu64", "vbroadcastsd", "vpbroadcastq", "vzeroupper",
}  # fmt: skip
_FLAGS_STAY = ("inc", "dec", "not", "shl", "shr", "sar")
"""They leave some flags as they are, or all."""
_WHOLE = re.compile(r"flags|%(?:[re](?:[a-d]x|[sd]i|[bs]p)|r\d+d?)")
"""What a write of it leaves nothing of: 32 bits clear the upper ones."""
_MEMORY = re.compile(r"([^(]*)\(([^)]*)\)")
_WIDTH = {"x": 16, "y": 32, "z": 64}


class Leak(Exception):
    """A line whose time may depend on a secret."""


@dataclass(frozen=True)
class Line:
    """An instruction: its name, and its operands in AT&T's order, the target last."""

    name: str
    operands: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class State:
    """What is public where a line begins: registers, `flags`, and slots; and how far the stack has grown.

    What a function finds in its caller's frame is an argument.
    """

    public: frozenset[str]
    depth: int = 0

    def joined(self, other: State) -> State:
        if self.depth != other.depth:
            raise Leak("two ways with another depth of the stack")
        return State(self.public & other.public, self.depth)


def functions(assembly: str) -> dict[str, list[str | Line]]:
    """Return the lines of each function: labels, and instructions."""
    found: dict[str, list[str | Line]] = {}
    lines: list[str | Line] | None = None
    names = set(re.findall(r"^\s+\.type\s+(\w+),@function", assembly, re.MULTILINE))
    for text in (line.split("#")[0].strip() for line in assembly.splitlines()):
        label = text.removesuffix(":")
        if text.endswith(":") and label in names:
            lines = found.setdefault(label, [])
        elif text.startswith(".Lfunc_end"):
            lines = None
        elif lines is not None and text.endswith(":"):
            lines.append(label)
        elif lines is not None and text and not text.startswith("."):
            name, _, rest = text.partition("\t")
            lines.append(Line(name, tuple(re.findall(r"(?:[^,(]|\([^)]*\))+", rest.replace(" ", ""))), text))
    return found


def jumps(assembly: str) -> int:
    """Return the number of conditional jumps."""
    return sum(
        isinstance(line, Line) and line.name.startswith("j") and line.name != "jmp"
        for lines in functions(assembly).values()
        for line in lines
    )


def require_constant_time(assembly: str) -> None:
    """Raise Leak unless every function keeps the rule."""
    for lines in functions(assembly).values():
        _follow(lines)


def _follow(lines: Sequence[str | Line]) -> None:
    places = {line: at for at, line in enumerate(lines) if isinstance(line, str)}
    states: dict[int, State] = {}
    waiting = [(0, State(frozenset([*_ARGUMENTS, *_slots(8, 64)])))]
    while waiting:
        at, state = waiting.pop()
        joined = state if at not in states else states[at].joined(state)
        if states.get(at) == joined:
            continue
        states[at] = joined
        line = lines[at]
        if isinstance(line, str):
            waiting.append((at + 1, joined))
        else:
            after = _Step(line, joined).after()
            waiting.extend((place, after) for place in _following(line, at, places))


def _following(line: Line, at: int, places: dict[str, int]) -> Iterator[int]:
    if line.name.startswith("j"):
        yield places[line.operands[0]]
    if line.name not in ("jmp", "retq"):
        yield at + 1


class _Step:
    """One instruction, and what is public after it."""

    def __init__(self, line: Line, state: State) -> None:
        self._line, self._public, self._depth = line, set(state.public), state.depth

    def after(self) -> State:
        line, operands = self._line, self._line.operands
        for operand in operands:
            self._require_public_address(operand)
        name = line.name
        if name in _VECTORS:
            self._vector(operands)
        elif name in _MOVES:
            self._move(name, *operands)
        elif name in _SUMS | _COUNTS:
            self._sum(operands)
        elif name in _COMPARES:
            self._put("flags", all(map(self._is_public, operands)))
        elif re.fullmatch(f"cmov{_CONDITION}[lq]?", name):
            self._put(operands[1], all(map(self._is_public, ("flags", *operands))))
        elif re.fullmatch(f"set{_CONDITION}", name):
            self._put(operands[0], self._is_public("flags") and self._is_public(operands[0]))
        elif re.fullmatch(f"j{_CONDITION}", name):
            self._require(self._is_public("flags"), "a jump depends on what is no counter")
        elif name == "callq":
            self._require(self._is_public(operands[0].removeprefix("*")), "a call goes to a computed address")
            self._public &= {*_KEPT_BY_CALLS, *(place for place in self._public if place.startswith("slot"))}
        elif name == "pushq":
            self._depth += 8
            self._put("(%rsp)", self._is_public(operands[0]))
        elif name == "popq":
            self._put(operands[0], self._is_public("(%rsp)"))
            self._depth -= 8
        else:
            self._require(name in ("jmp", "retq"), "this instruction is not known to take the same time always")
        return State(frozenset(self._public), self._depth)

    def _vector(self, operands: Sequence[str]) -> None:
        self._require(not any("{%k" in operand for operand in operands), "a mask register chooses")
        if operands and (first := self._slot(operands[-1])) is not None:
            (kind,) = {operand[1] for operand in operands if operand.startswith("%")}
            self._public.difference_update(_slots(first, _WIDTH[kind]))

    def _move(self, name: str, source: str, target: str) -> None:
        if name.startswith("lea"):
            self._require("rsp" not in source, "an address of the stack is taken")
            self._put(target, True)
        else:
            self._require("%rsp" not in (source, target), "an address of the stack is taken")
            self._put(target, self._is_public(source))

    def _sum(self, operands: Sequence[str]) -> None:
        target = operands[-1]
        if target == "%rsp":
            by = re.fullmatch(r"\$(-?\d+)", operands[0])
            self._require(by is not None and self._line.name in ("addq", "subq"), "the stack moves by what is unknown")
            self._depth += int(by[1]) * (1 if self._line.name == "subq" else -1) if by else 0
            return
        alike = self._line.name.startswith("xor") and operands[0] == target
        public = alike or all(map(self._is_public, operands))
        stay = self._line.name.startswith(_FLAGS_STAY)
        self._put("flags", public and (self._is_public("flags") or not stay))
        self._put(target, public)

    def _put(self, place: str, public: bool) -> None:
        slot = self._slot(place)
        names = _slots(slot, 8) if slot is not None else {_register(place)} if "(" not in place else set()
        # Less than a whole slot or register makes none public, and no vector register ever is.
        if slot is None:
            whole = _WHOLE.fullmatch(place) is not None
        else:
            whole = len(names) == 1 and self._line.name in ("movq", "pushq")
        if public and whole:
            self._public.update(names)
        elif not public:
            self._public.difference_update(names)

    def _is_public(self, operand: str) -> bool:
        if operand.startswith("$"):
            return True
        if "(" not in operand:
            return _register(operand) in self._public
        slot = self._slot(operand)
        if slot is None:
            # The assembly's own constants.
            return "%rip" in operand
        return self._public >= _slots(slot, 8)

    def _slot(self, operand: str) -> int | None:
        """Return the slot of a memory operand on the stack: its offset from the stack's top at the function's start."""
        found = _MEMORY.fullmatch(operand)
        if found is None or found[2].split(",")[0] != "%rsp":
            return None
        self._require("," not in found[2], "an index goes into the stack")
        return int(found[1] or 0) - self._depth

    def _require_public_address(self, operand: str) -> None:
        found = _MEMORY.match(operand)
        for part in found[2].split(",")[:2] if found else ():
            public = part in ("", "%rsp", "%rip") or self._is_public(part)
            self._require(public, "an address depends on what is no argument and no counter")

    def _require(self, holds: bool, what: str) -> None:
        if not holds:
            raise Leak(f"{what}: {self._line.text}")


def _slots(first: int, octets: int) -> set[str]:
    """Return the slots, of eight octets each, that some octets of the stack are in."""
    return {f"slot {slot}" for slot in range(first // 8, -(-(first + octets) // 8))}


def _register(operand: str) -> str:
    """Return the name of the 64 bits that a register is a part of."""
    name = operand.removeprefix("%")
    if re.fullmatch(r"r\d+[dwb]?", name):
        return name.rstrip("dwb")
    if re.fullmatch(r"[abcd][lh]", name):
        return f"r{name[0]}x"
    return re.sub(r"^e?([a-d]x|[sd]i|[bs]p)l?$", r"r\1", name)
