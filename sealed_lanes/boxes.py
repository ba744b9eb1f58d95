"""The code that opens and seals boxes: products in lanes, each box's key and nonce, and a call of libsodium."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from llvmlite import ir

from sealed_lanes import hashes, ladder
from sealed_lanes.emit import I64, LANES, POINTER, VECTOR_BYTES, Instructions, Words, function
from sealed_lanes.field import LIMBS
from sealed_lanes.words import constant

I8, I32 = ir.IntType(8), ir.IntType(32)
WORD_BYTES, KEY_WORDS, NONCE_WORDS = 8, 4, 3
KEY_BYTES = KEY_WORDS * WORD_BYTES
GROUPS = 4
"""The number of groups of eight lanes that share an inversion: a turn of the loop handles 32 rows."""
SECRETBOX_OPEN, SECRETBOX_SEAL = "crypto_secretbox_open_easy", "crypto_secretbox_easy"
BASE_POINT = 9
_GROUPS, _LANES, _ROWS = (ir.Constant(I64, number) for number in (GROUPS, LANES, GROUPS * LANES))
_TAG_BYTES, _PAIR = 16, 2 * LIMBS
_KEY, _NONCE = Words(KEY_WORDS), Words(NONCE_WORDS)
_LIMBS = Words(_PAIR, ladder.CARRIED)
"""The words of a pair of x and z, which `multiply` stores and `divide` loads."""


@dataclass(frozen=True)
class Scratch:
    """Where each array of vectors begins in the working memory of a call; all secrets that a call writes are in it.

    Attributes:
        recipient: four words of the recipient's public key, which the caller writes into all lanes.
        base: four words of the base point.
        slot: the key of one slot, and then the slot's nonce.
        masks: one mask for each step of the ladder.
        scalar, ephemeral, shared, key, nonce: four words for each group, of which a nonce uses three. For opening, the
            caller writes the scalar of the first group.
        ephemeral_pair, shared_pair: for each group, the limbs that the ladder returns.
    """

    recipient: int = 0
    base: int = 4
    slot: int = 8
    masks: int = 9
    scalar: int = masks + ladder.STEPS
    ephemeral: int = scalar + KEY_WORDS * GROUPS
    shared: int = ephemeral + KEY_WORDS * GROUPS
    key: int = shared + KEY_WORDS * GROUPS
    nonce: int = key + KEY_WORDS * GROUPS
    ephemeral_pair: int = nonce + KEY_WORDS * GROUPS
    shared_pair: int = ephemeral_pair + _PAIR * GROUPS
    vectors: int = shared_pair + _PAIR * GROUPS


SCRATCH = Scratch()


def module() -> ir.Module:
    """Return IR of `write_masks`, `multiply`, `divide`, `open_boxes` and `seal_boxes`."""
    made = ir.Module("lanes")
    for write in (_write_masks, _write_multiply, _write_divide, _write_open, _write_seal):
        write(made)
    return made


class _Code(Instructions):
    """Adds pointers and single words to the instructions."""

    def at(self, pointer: ir.Value, offset: ir.Value | int) -> ir.Value:
        """Return the pointer advanced by `offset` bytes."""
        step = ir.Constant(I64, offset) if isinstance(offset, int) else offset
        return self.builder.gep(pointer, [step], source_etype=I8)

    def vectors(self, scratch: ir.Value, first: int, group: ir.Value | None = None, each: int = KEY_WORDS) -> ir.Value:
        """Return where an array begins, or where a group's part of it begins, if each part has `each` vectors."""
        array = self.at(scratch, first * VECTOR_BYTES)
        return array if group is None else self.at(array, self.scaled(group, each * VECTOR_BYTES))

    def scaled(self, index: ir.Value, step: int) -> ir.Value:
        return self.builder.mul(index, ir.Constant(I64, step))

    def word(self, pointer: ir.Value) -> ir.Value:
        return self.builder.load(pointer, align=1, typ=I64)

    def copy_words(self, source: ir.Value, source_step: int, target: ir.Value, target_step: int, number: int) -> None:
        for at in range(number):
            self.builder.store(self.word(self.at(source, at * source_step)), self.at(target, at * target_step), align=1)

    def call(self, name: str, *pointers: ir.Value) -> None:
        self.builder.call(self.builder.module.get_global(name), pointers)

    def hashed(self, scratch: ir.Value) -> None:
        """Make the keys of the shared products, and the nonces of the ephemeral keys and the recipient."""
        recipient = self.words(self.vectors(scratch, SCRATCH.recipient), _KEY)
        with self.counted(_GROUPS) as (group, _, _):
            ephemeral, shared, key, nonce = (
                self.vectors(scratch, first, group)
                for first in (SCRATCH.ephemeral, SCRATCH.shared, SCRATCH.key, SCRATCH.nonce)
            )
            self.store_words(hashes.box_key(self.words(shared, _KEY)), key, _KEY)
            self.store_words(hashes.box_nonce(self.words(ephemeral, _KEY), recipient), nonce, _NONCE)


def _write_masks(made: ir.Module) -> None:
    """Write the function write_masks(scalar, masks), which stores the masks of a group's scalars."""
    builder, (scalar, masks) = function(made, "write_masks", [POINTER] * 2)
    code = _Code(builder)
    ladder.write_masks(code.words(scalar, _KEY), lambda index, mask: code.store_mask(mask, masks, index))
    builder.ret_void()


def _write_multiply(made: ir.Module) -> None:
    """Write the function multiply(masks, point, pair), which stores a group's products as pairs of x and z."""
    builder, (masks, point, pair) = function(made, "multiply", [POINTER] * 3)
    code = _Code(builder)
    x, z = ladder.product(code.words(point, _KEY), lambda index: code.mask(masks, index))
    code.store_words([*x, *z], pair, _LIMBS)
    builder.ret_void()


def _write_divide(made: ir.Module) -> None:
    """Write the function divide(pairs, products), which stores the products x / z of all groups."""
    builder, (pairs, products) = function(made, "divide", [POINTER] * 2)
    code = _Code(builder)
    loaded = [code.words(code.vectors(pairs, _PAIR * group), _LIMBS) for group in range(GROUPS)]
    made_of = [(limbs[:LIMBS], limbs[LIMBS:]) for limbs in loaded]
    for group, product in enumerate(ladder.quotients(made_of)):
        code.store_words(product, code.vectors(products, KEY_WORDS * group), _KEY)
    builder.ret_void()


class _Rows:
    """The rows, in turns: each row gets a slot, which is a lane of a group."""

    def __init__(self, code: _Code, scratch: ir.Value, number: ir.Value) -> None:
        """Compute the number of turns; `number` is at least 1."""
        self._code, self._scratch = code, scratch
        self._last = code.builder.sub(number, ir.Constant(I64, 1))
        self.turns = code.builder.add(code.builder.udiv(self._last, _ROWS), ir.Constant(I64, 1))
        self.one_key = code.vectors(scratch, SCRATCH.slot)
        self.one_nonce = code.at(self.one_key, KEY_BYTES)

    @contextmanager
    def slots(self, turn: ir.Value) -> Iterator[tuple[ir.Value, ir.Value]]:
        """Write a loop over the slots of a turn; yields each slot's row, and its offset in an array of four words."""
        builder = self._code.builder
        with self._code.counted(_ROWS) as (slot, _, _):
            row = builder.add(builder.mul(turn, _ROWS), slot)
            # In the last turn, slots without a row get the last row again.
            row = builder.select(builder.icmp_unsigned("<", row, self._last), row, self._last)
            group = self._code.scaled(builder.udiv(slot, _LANES), KEY_WORDS * VECTOR_BYTES)
            yield row, builder.add(group, self._code.scaled(builder.urem(slot, _LANES), WORD_BYTES))

    def of(self, array: ir.Value, row: ir.Value, size: ir.Value) -> ir.Value:
        return self._code.at(array, self._code.builder.mul(row, size))

    def read(self, turn: ir.Value, array: ir.Value, size: ir.Value, first: int) -> None:
        """Put the first 32 bytes of each row into its slot."""
        target = self._code.vectors(self._scratch, first)
        with self.slots(turn) as (row, offset):
            source, target_lane = self.of(array, row, size), self._code.at(target, offset)
            self._code.copy_words(source, WORD_BYTES, target_lane, VECTOR_BYTES, KEY_WORDS)

    def take(self, offset: ir.Value) -> None:
        """Copy a slot's key and nonce, which libsodium needs, to `one_key` and `one_nonce`."""
        for first, target, number in (
            (SCRATCH.key, self.one_key, KEY_WORDS),
            (SCRATCH.nonce, self.one_nonce, NONCE_WORDS),
        ):
            source = self._code.at(self._code.vectors(self._scratch, first), offset)
            self._code.copy_words(source, VECTOR_BYTES, target, WORD_BYTES, number)

    def judge(self, failed: ir.Value, offset: ir.Value, target: ir.Value) -> None:
        """Write 1 to `target` if libsodium succeeded and the product is not zero, else 0.

        libsodium refuses the product zero too, because everybody knows this product.
        """
        code, builder, bits = self._code, self._code.builder, ir.Constant(I64, 0)
        shared = code.at(code.vectors(self._scratch, SCRATCH.shared), offset)
        for at in range(KEY_WORDS):
            bits = builder.or_(bits, code.word(code.at(shared, at * VECTOR_BYTES)))
        good = builder.and_(
            builder.icmp_signed("==", failed, ir.Constant(I32, 0)),
            builder.icmp_unsigned("!=", bits, ir.Constant(I64, 0)),
        )
        builder.store(builder.zext(good, I8), target)


def _write_open(made: ir.Module) -> None:
    """Write open_boxes(scratch, sealed, plain, opened, rows, sealed bytes), which opens `rows` boxes, at least 1.

    The caller has written the scalar and the recipient into the scratch. A row of `opened` becomes 1 if its box was
    opened, else 0.
    """
    builder, (scratch, sealed, plain, opened, number, size) = function(made, "open_boxes", [POINTER] * 4 + [I64] * 2)
    code = _Code(builder)
    rows, open_secretbox = _Rows(code, scratch, number), _secretbox(made, SECRETBOX_OPEN)
    box_bytes = builder.sub(size, ir.Constant(I64, KEY_BYTES))
    length = builder.sub(box_bytes, ir.Constant(I64, _TAG_BYTES))
    masks = code.vectors(scratch, SCRATCH.masks)
    code.call("write_masks", code.vectors(scratch, SCRATCH.scalar), masks)
    with code.counted(rows.turns) as (turn, _, _):
        rows.read(turn, sealed, size, SCRATCH.ephemeral)
        with code.counted(_GROUPS) as (group, _, _):
            pair = code.vectors(scratch, SCRATCH.shared_pair, group, _PAIR)
            code.call("multiply", masks, code.vectors(scratch, SCRATCH.ephemeral, group), pair)
        code.call("divide", code.vectors(scratch, SCRATCH.shared_pair), code.vectors(scratch, SCRATCH.shared))
        code.hashed(scratch)
        with rows.slots(turn) as (row, offset):
            rows.take(offset)
            content, box = rows.of(plain, row, length), code.at(rows.of(sealed, row, size), KEY_BYTES)
            failed = builder.call(open_secretbox, [content, box, box_bytes, rows.one_nonce, rows.one_key])
            rows.judge(failed, offset, code.at(opened, row))
    builder.ret_void()


def _write_seal(made: ir.Module) -> None:
    """Write seal_boxes(scratch, plain, secrets, sealed, good, rows, plain bytes), which seals `rows` boxes, at least 1.

    The caller has written the recipient into the scratch. A row of `good` becomes 0 if nothing can be sealed to the
    recipient, else 1. Each row has its own secret. The product of secret and base point is the ephemeral key, and the
    box's key is derived from the product of secret and recipient.
    """
    arguments = [POINTER] * 5 + [I64] * 2
    builder, (scratch, plain, secrets, sealed, good, number, length) = function(made, "seal_boxes", arguments)
    code = _Code(builder)
    rows, seal_secretbox = _Rows(code, scratch, number), _secretbox(made, SECRETBOX_SEAL)
    size = builder.add(length, ir.Constant(I64, KEY_BYTES + _TAG_BYTES))
    masks, base, recipient, ephemeral_keys = (
        code.vectors(scratch, first) for first in (SCRATCH.masks, SCRATCH.base, SCRATCH.recipient, SCRATCH.ephemeral)
    )
    code.store_words([constant(code, BASE_POINT), *[constant(code, 0)] * (KEY_WORDS - 1)], base, _KEY)
    made_of = (SCRATCH.ephemeral_pair, base, SCRATCH.ephemeral), (SCRATCH.shared_pair, recipient, SCRATCH.shared)
    with code.counted(rows.turns) as (turn, _, _):
        rows.read(turn, secrets, ir.Constant(I64, KEY_BYTES), SCRATCH.scalar)
        with code.counted(_GROUPS) as (group, _, _):
            code.call("write_masks", code.vectors(scratch, SCRATCH.scalar, group), masks)
            for pairs, point, _ in made_of:
                code.call("multiply", masks, point, code.vectors(scratch, pairs, group, _PAIR))
        for pairs, _, products in made_of:
            code.call("divide", code.vectors(scratch, pairs), code.vectors(scratch, products))
        code.hashed(scratch)
        with rows.slots(turn) as (row, offset):
            rows.take(offset)
            ephemeral, content = rows.of(sealed, row, size), rows.of(plain, row, length)
            code.copy_words(code.at(ephemeral_keys, offset), VECTOR_BYTES, ephemeral, WORD_BYTES, KEY_WORDS)
            box = code.at(ephemeral, KEY_BYTES)
            failed = builder.call(seal_secretbox, [box, content, length, rows.one_nonce, rows.one_key])
            rows.judge(failed, offset, code.at(good, row))
    builder.ret_void()


def _secretbox(made: ir.Module, name: str) -> ir.Function:
    """Declare a function of libsodium with the arguments target, source, the source's length, nonce and key."""
    return ir.Function(made, ir.FunctionType(I32, [POINTER, POINTER, I64, POINTER, POINTER]), name)
