"""The code that opens and seals boxes, eight at a time: product, key and nonce of each, then libsodium's secretbox."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from llvmlite import ir

from keys.lanes import hashes, ladder
from keys.lanes.emit import I64, LANES, POINTER, VECTOR_BYTES, Instructions, function
from keys.lanes.words import constant

I8, I32 = ir.IntType(8), ir.IntType(32)
WORD_BYTES, KEY_WORDS, NONCE_WORDS = 8, 4, 3
SECRETBOX_OPEN, SECRETBOX_SEAL = "crypto_secretbox_open_easy", "crypto_secretbox_easy"
BASE_POINT = 9
_LANES = ir.Constant(I64, LANES)
_EPHEMERAL_BYTES, _TAG_BYTES = KEY_WORDS * WORD_BYTES, 16


@dataclass(frozen=True)
class Scratch:
    """Where each array of vectors begins in the memory that a call works in: every secret that it writes is there.

    Attributes:
        scalar, recipient: four words each. The caller writes the recipient, and to open the scalar, into all lanes.
        masks: one for each step of the ladder.
        point, product, key: four words each; nonce: three.
        lane: key and nonce of one lane, one after the other.
    """

    scalar: int = 0
    recipient: int = 4
    point: int = 8
    product: int = 12
    key: int = 16
    nonce: int = 20
    lane: int = 23
    masks: int = 24
    vectors: int = 24 + ladder.STEPS


SCRATCH = Scratch()


class _Code(Instructions):
    """Adds pointers and single words to the instructions."""

    def at(self, pointer: ir.Value, *octets: ir.Value | int) -> ir.Value:
        """Return a pointer so many bytes further on."""
        for offset in octets:
            pointer = self.builder.gep(
                pointer, [ir.Constant(I64, offset) if isinstance(offset, int) else offset], source_etype=I8
            )
        return pointer

    def vectors(self, scratch: ir.Value, first: int) -> ir.Value:
        return self.at(scratch, first * VECTOR_BYTES)

    def word(self, pointer: ir.Value) -> ir.Value:
        return self.builder.load(pointer, align=1, typ=I64)

    def copy_words(self, source: ir.Value, source_step: int, target: ir.Value, target_step: int, number: int) -> None:
        for at in range(number):
            self.builder.store(self.word(self.at(source, at * source_step)), self.at(target, at * target_step), align=1)

    def hash_key(self, scratch: ir.Value) -> None:
        """Make the boxes' keys of the product."""
        product = self.words(self.vectors(scratch, SCRATCH.product), KEY_WORDS)
        self.store_words(hashes.box_key(product), self.vectors(scratch, SCRATCH.key))

    def hash_nonce(self, scratch: ir.Value, ephemeral: int) -> None:
        """Make the boxes' nonces of the ephemeral keys and the recipient."""
        first, second = (self.words(self.vectors(scratch, at), KEY_WORDS) for at in (ephemeral, SCRATCH.recipient))
        self.store_words(hashes.box_nonce(first, second), self.vectors(scratch, SCRATCH.nonce))


def module() -> ir.Module:
    """Return IR of `write_masks`, `product`, `open_boxes` and `seal_boxes`."""
    made = ir.Module("lanes")
    _write_masks(made)
    _write_product(made)
    _write_open(made)
    _write_seal(made)
    return made


def _write_masks(made: ir.Module) -> None:
    """Function of (scratch): the masks of its scalar."""
    builder, (scratch,) = function(made, "write_masks", [POINTER])
    code = _Code(builder)
    masks = code.vectors(scratch, SCRATCH.masks)
    scalar = code.words(code.vectors(scratch, SCRATCH.scalar), KEY_WORDS)
    ladder.write_masks(scalar, lambda index, mask: code.store(mask, masks, index))
    builder.ret_void()


def _write_product(made: ir.Module) -> None:
    """Function of (scratch): the product of its masks and its point."""
    builder, (scratch,) = function(made, "product", [POINTER])
    code = _Code(builder)
    masks = code.vectors(scratch, SCRATCH.masks)
    point = code.words(code.vectors(scratch, SCRATCH.point), KEY_WORDS)
    product = ladder.product(point, lambda index: code.load(masks, index))
    code.store_words(product, code.vectors(scratch, SCRATCH.product))
    builder.ret_void()


class _Rows:
    """Rows in groups of eight, a lane each, and the key and nonce of one lane for libsodium."""

    def __init__(self, code: _Code, scratch: ir.Value, number: ir.Value) -> None:
        """There is at least one row."""
        self._code, self._scratch = code, scratch
        self._last = code.builder.sub(number, ir.Constant(I64, 1))
        self.groups = code.builder.add(code.builder.udiv(self._last, _LANES), ir.Constant(I64, 1))
        self.one_key = code.vectors(scratch, SCRATCH.lane)
        self.one_nonce = code.at(self.one_key, KEY_WORDS * WORD_BYTES)

    @contextmanager
    def lanes(self, group: ir.Value) -> Iterator[tuple[ir.Value, ir.Value]]:
        """Write a loop over lanes: the row of each, and where it lies in a vector."""
        builder = self._code.builder
        with self._code.counted(_LANES) as (lane, _, _):
            row = builder.add(builder.mul(group, _LANES), lane)
            # The last one in the lanes that are left over.
            row = builder.select(builder.icmp_unsigned("<", row, self._last), row, self._last)
            yield row, builder.mul(lane, ir.Constant(I64, WORD_BYTES))

    def of(self, array: ir.Value, row: ir.Value, size: ir.Value) -> ir.Value:
        return self._code.at(array, self._code.builder.mul(row, size))

    def read(self, group: ir.Value, array: ir.Value, size: ir.Value, first: int) -> None:
        """Put the first 32 bytes of each row into its lane."""
        target = self._code.vectors(self._scratch, first)
        with self.lanes(group) as (row, offset):
            source, lane = self.of(array, row, size), self._code.at(target, offset)
            self._code.copy_words(source, WORD_BYTES, lane, VECTOR_BYTES, KEY_WORDS)

    def take(self, offset: ir.Value) -> None:
        """Put a lane's key and nonce where `one_key` and `one_nonce` are."""
        for first, target, number in (
            (SCRATCH.key, self.one_key, KEY_WORDS),
            (SCRATCH.nonce, self.one_nonce, NONCE_WORDS),
        ):
            source = self._code.at(self._code.vectors(self._scratch, first), offset)
            self._code.copy_words(source, VECTOR_BYTES, target, WORD_BYTES, number)

    def judge(self, failed: ir.Value, offset: ir.Value, target: ir.Value) -> None:
        """Write 1 if libsodium did not fail, else 0; and 0, as libsodium, if the product is zero: that is no secret."""
        code, builder, shared = self._code, self._code.builder, ir.Constant(I64, 0)
        product = code.vectors(self._scratch, SCRATCH.product)
        for at in range(KEY_WORDS):
            shared = builder.or_(shared, code.word(code.at(product, offset, at * VECTOR_BYTES)))
        good = builder.and_(
            builder.icmp_signed("==", failed, ir.Constant(I32, 0)),
            builder.icmp_unsigned("!=", shared, ir.Constant(I64, 0)),
        )
        builder.store(builder.zext(good, I8), target)


def _write_open(made: ir.Module) -> None:
    """Function of (scratch, sealed, plain, opened, rows, sealed bytes): open so many rows, at least one.

    The scratch has the masks of the recipient's key, and the recipient. A row of `opened` becomes 1 if its box opened.
    """
    builder, (scratch, sealed, plain, opened, number, size) = function(made, "open_boxes", [POINTER] * 4 + [I64] * 2)
    code = _Code(builder)
    rows, open_secretbox = _Rows(code, scratch, number), _secretbox(made, SECRETBOX_OPEN)
    box_bytes = builder.sub(size, ir.Constant(I64, _EPHEMERAL_BYTES))
    length = builder.sub(box_bytes, ir.Constant(I64, _TAG_BYTES))
    with code.counted(rows.groups) as (group, _, _):
        rows.read(group, sealed, size, SCRATCH.point)
        builder.call(made.get_global("product"), [scratch])
        code.hash_key(scratch)
        code.hash_nonce(scratch, SCRATCH.point)
        with rows.lanes(group) as (row, offset):
            rows.take(offset)
            content, box = rows.of(plain, row, length), code.at(rows.of(sealed, row, size), _EPHEMERAL_BYTES)
            failed = builder.call(open_secretbox, [content, box, box_bytes, rows.one_nonce, rows.one_key])
            rows.judge(failed, offset, code.at(opened, row))
    builder.ret_void()


def _write_seal(made: ir.Module) -> None:
    """Function of (scratch, plain, secrets, sealed, good, rows, plain bytes): seal so many rows, at least one.

    The scratch has the recipient. A row of `good` becomes 0 if nothing can be sealed to it. Each lane has a secret of
    its own: its product with the base point is the ephemeral key, and with the recipient makes the key of the box.
    """
    arguments = [POINTER] * 5 + [I64] * 2
    builder, (scratch, plain, secrets, sealed, good, number, length) = function(made, "seal_boxes", arguments)
    code = _Code(builder)
    rows, seal_secretbox = _Rows(code, scratch, number), _secretbox(made, SECRETBOX_SEAL)
    size = builder.add(length, ir.Constant(I64, _EPHEMERAL_BYTES + _TAG_BYTES))
    point, product = (code.vectors(scratch, first) for first in (SCRATCH.point, SCRATCH.product))
    with code.counted(rows.groups) as (group, _, _):
        rows.read(group, secrets, ir.Constant(I64, KEY_WORDS * WORD_BYTES), SCRATCH.scalar)
        builder.call(made.get_global("write_masks"), [scratch])
        code.store_words([constant(code, BASE_POINT), *[constant(code, 0)] * (KEY_WORDS - 1)], point)
        builder.call(made.get_global("product"), [scratch])
        code.hash_nonce(scratch, SCRATCH.product)
        with rows.lanes(group) as (row, offset):
            ephemeral = rows.of(sealed, row, size)
            code.copy_words(code.at(product, offset), VECTOR_BYTES, ephemeral, WORD_BYTES, KEY_WORDS)
        code.store_words(code.words(code.vectors(scratch, SCRATCH.recipient), KEY_WORDS), point)
        builder.call(made.get_global("product"), [scratch])
        code.hash_key(scratch)
        with rows.lanes(group) as (row, offset):
            rows.take(offset)
            content, box = rows.of(plain, row, length), code.at(rows.of(sealed, row, size), _EPHEMERAL_BYTES)
            failed = builder.call(seal_secretbox, [box, content, length, rows.one_nonce, rows.one_key])
            rows.judge(failed, offset, code.at(good, row))
    builder.ret_void()


def _secretbox(made: ir.Module, name: str) -> ir.Function:
    """Declare a function of libsodium: of the target, the source and its length, the nonce and the key."""
    return ir.Function(made, ir.FunctionType(I32, [POINTER, POINTER, I64, POINTER, POINTER]), name)
