"""The code that opens sealed boxes, eight at a time: product, key and nonce of each, then libsodium's secretbox."""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import ir

from keys.lanes import hashes, ladder
from keys.lanes.emit import I64, LANES, POINTER, VECTOR_BYTES, Instructions, function

I8, I32 = ir.IntType(8), ir.IntType(32)
WORD_BYTES, KEY_WORDS, NONCE_WORDS = 8, 4, 3
SECRETBOX_OPEN = "crypto_secretbox_open_easy"


@dataclass(frozen=True)
class Scratch:
    """Where each array of vectors begins in the memory that a call works in: every secret that it writes is there.

    Attributes:
        scalar, recipient: four words each, the same in all lanes; the caller writes them.
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


def module() -> ir.Module:
    """Return IR of `write_masks`, `product` and `open_boxes`."""
    made = ir.Module("lanes")
    _write_masks(made)
    _write_product(made)
    _write_open(made)
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


def _write_open(made: ir.Module) -> None:
    """Function of (scratch, sealed, plain, opened, rows, sealed bytes): open so many rows, at least one.

    The scratch has the masks of the recipient's key, and the recipient. A row of `opened` becomes 1 if its box opened.
    """
    builder, (scratch, sealed, plain, opened, rows, size) = function(made, "open_boxes", [POINTER] * 4 + [I64] * 2)
    code = _Code(builder)
    open_secretbox = ir.Function(made, ir.FunctionType(I32, [POINTER, POINTER, I64, POINTER, POINTER]), SECRETBOX_OPEN)
    point, product, key, nonce, one_key = (
        code.vectors(scratch, first)
        for first in (SCRATCH.point, SCRATCH.product, SCRATCH.key, SCRATCH.nonce, SCRATCH.lane)
    )
    one_nonce, lanes, word = (
        code.at(one_key, KEY_WORDS * WORD_BYTES),
        ir.Constant(I64, LANES),
        ir.Constant(I64, WORD_BYTES),
    )
    last = builder.sub(rows, ir.Constant(I64, 1))
    groups = builder.add(builder.udiv(last, lanes), ir.Constant(I64, 1))

    def row_of(group: ir.Value, lane: ir.Value) -> ir.Value:
        """Return the row of a lane: the last one in the lanes that are left over."""
        row = builder.add(builder.mul(group, lanes), lane)
        return builder.select(builder.icmp_unsigned("<", row, last), row, last)

    with code.counted(groups) as (group, _, _):
        with code.counted(lanes) as (lane, _, _):
            row = row_of(group, lane)
            ephemeral = code.at(sealed, builder.mul(row, size))
            code.copy_words(ephemeral, WORD_BYTES, code.at(point, builder.mul(lane, word)), VECTOR_BYTES, KEY_WORDS)
        builder.call(made.get_global("product"), [scratch])
        code.store_words(hashes.box_key(code.words(product, KEY_WORDS)), key)
        recipient = code.words(code.vectors(scratch, SCRATCH.recipient), KEY_WORDS)
        code.store_words(hashes.box_nonce(code.words(point, KEY_WORDS), recipient), nonce)
        with code.counted(lanes) as (lane, _, _):
            row, offset = row_of(group, lane), builder.mul(lane, word)
            code.copy_words(code.at(key, offset), VECTOR_BYTES, one_key, WORD_BYTES, KEY_WORDS)
            code.copy_words(code.at(nonce, offset), VECTOR_BYTES, one_nonce, WORD_BYTES, NONCE_WORDS)
            box = code.at(sealed, builder.mul(row, size), KEY_WORDS * WORD_BYTES)
            length = builder.sub(size, ir.Constant(I64, KEY_WORDS * WORD_BYTES))
            content = code.at(plain, builder.mul(row, builder.sub(length, ir.Constant(I64, 16))))
            failed = builder.call(open_secretbox, [content, box, length, one_nonce, one_key])
            # As libsodium: a product of zero is no secret.
            shared = ir.Constant(I64, 0)
            for at in range(KEY_WORDS):
                shared = builder.or_(shared, code.word(code.at(product, offset, at * VECTOR_BYTES)))
            good = builder.and_(
                builder.icmp_signed("==", failed, ir.Constant(I32, 0)),
                builder.icmp_unsigned("!=", shared, ir.Constant(I64, 0)),
            )
            builder.store(builder.zext(good, I8), code.at(opened, row))
    builder.ret_void()
