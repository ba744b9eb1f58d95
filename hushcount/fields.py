"""The wire form of a report: fixed fields, each in the fewest whole bytes, little-endian, checked when read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Reports = npt.NDArray[Any]
"""A structured array, one element a report, its fields those of the mechanism's encoder and responder."""


@dataclass(frozen=True)
class Field:
    """One field of a report.

    Attributes:
        name: its name in the structured array.
        bound: values are in 0..bound-1.
        count: how many values the field holds; a field of several values is a strictly ascending list.
        least: the smallest allowed value.
    """

    name: str
    bound: int
    count: int = 1
    least: int = 0

    @property
    def value_bytes(self) -> int:
        """Whole bytes that hold one value."""
        return max(1, ((self.bound - 1).bit_length() + 7) // 8)

    @property
    def as_bitmap(self) -> bool:
        """Whether a list is sent as one bit for each possible value, because that is shorter."""
        return self.count > 1 and self.bitmap_bytes < self.count * self.value_bytes

    @property
    def bitmap_bytes(self) -> int:
        return (self.bound + 7) // 8

    @property
    def wire_bytes(self) -> int:
        """Bytes of the whole field on the wire."""
        return self.bitmap_bytes if self.as_bitmap else self.count * self.value_bytes


def report_dtype(fields: Sequence[Field]) -> np.dtype[Any]:
    """Return the structured dtype that holds these fields in memory."""
    return np.dtype(
        [
            (field.name, "<u4" if field.bound <= 1 << 32 else "<u8", (field.count,) if field.count > 1 else ())
            for field in fields
        ]
    )


def pack(fields: Sequence[Field], reports: Reports) -> npt.NDArray[np.uint8]:
    """Return uint8[n, L]: the wire bytes of each report, the same length for all."""
    columns = [
        _pack_bitmap(field, reports[field.name]) if field.as_bitmap else _pack_values(field, reports[field.name])
        for field in fields
    ]
    return np.concatenate(columns, axis=1)


def unpack(fields: Sequence[Field], wire: npt.NDArray[np.uint8]) -> tuple[Reports, npt.NDArray[np.bool_]]:
    """Return the reports in uint8[n, L] and which of them are well formed.

    Well formed: every value in its range, lists strictly ascending, padding bits zero. What a report that is not well
    formed holds is unspecified.

    Raises:
        ValueError: the second axis is not the length that these fields have.
    """
    length = sum(field.wire_bytes for field in fields)
    if wire.ndim != 2 or wire.shape[1] != length:
        raise ValueError(f"wire has shape {wire.shape}, must be (n, {length})")
    reports = np.zeros(len(wire), dtype=report_dtype(fields))
    valid = np.ones(len(wire), dtype=np.bool_)
    offset = 0
    for field in fields:
        column = wire[:, offset : offset + field.wire_bytes]
        offset += field.wire_bytes
        values, good = _unpack_bitmap(field, column) if field.as_bitmap else _unpack_values(field, column)
        valid &= good
        reports[field.name] = values if field.count > 1 else values[:, 0]
    return reports, valid


def _pack_values(field: Field, values: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    wide = np.ascontiguousarray(values.reshape(len(values), field.count), dtype="<u8")
    octets = wide.view(np.uint8).reshape(len(values), field.count, 8)[:, :, : field.value_bytes]
    return octets.reshape(len(values), field.wire_bytes)


def _unpack_values(field: Field, column: npt.NDArray[np.uint8]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
    octets = np.zeros((len(column), field.count, 8), dtype=np.uint8)
    octets[:, :, : field.value_bytes] = column.reshape(len(column), field.count, field.value_bytes)
    values: npt.NDArray[np.uint64] = octets.reshape(len(column), field.count * 8).view("<u8")
    in_range = (values >= field.least) & (values < field.bound)
    in_range[:, 1:] &= values[:, 1:] > values[:, :-1]
    good: npt.NDArray[np.bool_] = np.logical_and.reduce(in_range, axis=1)
    return values, good


def _pack_bitmap(field: Field, values: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    bits = np.zeros((len(values), field.bitmap_bytes * 8), dtype=np.uint8)
    np.put_along_axis(bits, values.astype(np.intp), 1, axis=1)
    return np.packbits(bits, axis=1, bitorder="little")


def _unpack_bitmap(field: Field, column: npt.NDArray[np.uint8]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
    bits = np.unpackbits(column, axis=1, bitorder="little")
    good = (bits.sum(axis=1) == field.count) & ~bits[:, field.bound :].any(axis=1)
    values = np.zeros((len(column), field.count), dtype=np.uint64)
    values[good] = np.nonzero(bits[good])[1].reshape(-1, field.count)
    return values, good
