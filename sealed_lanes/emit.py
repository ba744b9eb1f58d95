"""The machine that writes LLVM IR: a vector is eight 64-bit words, and an instruction works on all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from llvmlite import ir

from sealed_lanes.words import WORD, Index, Mask, ProofError, Vector, Word

LANES = 8
I64 = ir.IntType(64)
LANE = ir.VectorType(I64, LANES)
POINTER = ir.PointerType()
VECTOR_BYTES = 8 * LANES


@dataclass(frozen=True)
class Words:
    """An array of words in memory: `number` words, at most `most` each.

    The code that stores an array and the code that loads this array use the same `Words`.
    """

    number: int
    most: int = WORD - 1


class Instructions:
    """A machine that writes the instructions of a program at the position of an LLVM builder."""

    def __init__(self, builder: ir.IRBuilder) -> None:
        self.builder = builder

    def constant(self, value: int) -> Vector:
        return ir.Constant(LANE, [value] * LANES)

    def add(self, a: Vector, b: Vector) -> Vector:
        return self.builder.add(a, b)

    def subtract(self, a: Vector, b: Vector) -> Vector:
        return self.builder.sub(a, b)

    def both(self, a: Vector, b: Vector) -> Vector:
        return self.builder.and_(a, b)

    def differ(self, a: Vector, b: Vector) -> Vector:
        return self.builder.xor(a, b)

    def left(self, a: Vector, bits: int) -> Vector:
        return self.builder.shl(a, self.constant(bits))

    def right(self, a: Vector, bits: int) -> Vector:
        return self.builder.lshr(a, self.constant(bits))

    def rotate_right(self, a: Vector, bits: int) -> Vector:
        return self._call("llvm.fshr.v8i64", a, a, self.constant(bits))

    def low(self, total: Vector, a: Vector, b: Vector) -> Vector:
        return self._call("llvm.x86.avx512.vpmadd52l.uq.512", total, a, b)

    def high(self, total: Vector, a: Vector, b: Vector) -> Vector:
        return self._call("llvm.x86.avx512.vpmadd52h.uq.512", total, a, b)

    def repeat(
        self, times: int, vectors: Sequence[Vector], body: Callable[[Index, list[Vector]], list[Vector]]
    ) -> list[Vector]:
        with self.counted(ir.Constant(I64, times), vectors) as (index, state, following):
            following.extend(body(index, state))
        return state

    @contextmanager
    def counted(
        self, times: ir.Value, vectors: Sequence[Vector] = ()
    ) -> Iterator[tuple[Index, list[Vector], list[Vector]]]:
        """Write a loop around the block's instructions; yields its counter, its state, and a list for the next state.

        `times` is at least 1. The loop's end is the only conditional jump that this machine writes. After the block,
        the state list holds the values after the loop.
        """
        builder = self.builder
        before, loop, after = builder.block, builder.append_basic_block("loop"), builder.append_basic_block("after")
        builder.branch(loop)
        builder.position_at_end(loop)
        index, state = builder.phi(I64), [builder.phi(vector.type) for vector in vectors]
        following: list[Vector] = []
        current = list(state)
        yield index, current, following
        advanced = builder.add(index, ir.Constant(I64, 1))
        builder.cbranch(builder.icmp_unsigned("<", advanced, times), loop, after)
        starts = [ir.Constant(I64, 0), *vectors]
        for phi, start, follower in zip([index, *state], starts, [advanced, *following], strict=True):
            phi.add_incoming(start, before)
            phi.add_incoming(follower, builder.block)
        builder.position_at_end(after)
        current[:] = following

    def _load(self, array: ir.Value, index: Index) -> Vector:
        """Load a vector of an array of vectors."""
        return self.builder.load(self._at(array, index), align=VECTOR_BYTES, typ=LANE)

    def _store(self, vector: Vector, array: ir.Value, index: Index) -> None:
        self.builder.store(vector, self._at(array, index), align=VECTOR_BYTES)

    def words(self, array: ir.Value, kind: Words) -> list[Word]:
        """Load words that `store_words` stored with the same `kind`."""
        return [Word(self, self._load(array, ir.Constant(I64, index)), kind.most) for index in range(kind.number)]

    def store_words(self, words: Sequence[Word], array: ir.Value, kind: Words) -> None:
        """Store words; ProofError if a word may exceed `kind.most`, or the number of words is not `kind.number`."""
        if len(words) != kind.number:
            raise ProofError(f"number of stored words is {len(words)}, must be {kind.number}")
        for index, word in enumerate(words):
            if word.most > kind.most:
                raise ProofError(f"a stored word may be {word.most}, must be at most {kind.most}")
            self._store(word.vector, array, ir.Constant(I64, index))

    def mask(self, array: ir.Value, index: Index) -> Mask:
        """Load a mask from an array that `store_mask` filled."""
        return Mask(self._load(array, index))

    def store_mask(self, mask: Mask, array: ir.Value, index: Index) -> None:
        self._store(mask.vector, array, index)

    def _at(self, array: ir.Value, index: Index) -> ir.Value:
        return self.builder.gep(array, [index], source_etype=LANE)

    def _call(self, name: str, *vectors: Vector) -> Vector:
        module = self.builder.module
        function = module.globals.get(name) or ir.Function(module, ir.FunctionType(LANE, [LANE] * len(vectors)), name)
        return self.builder.call(function, vectors)


def function(module: ir.Module, name: str, arguments: Sequence[ir.Type]) -> tuple[ir.IRBuilder, Sequence[ir.Value]]:
    """Begin a function without a result."""
    made = ir.Function(module, ir.FunctionType(ir.VoidType(), arguments), name)
    return ir.IRBuilder(made.append_basic_block("start")), made.args
