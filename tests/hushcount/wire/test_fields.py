"""The wire form: one integer for each report, in the fewest whole bytes, everything else refused."""

from __future__ import annotations

import math
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushcount.wire.fields import (
    Bits,
    Field,
    Number,
    SubsetOf,
    pack,
    report_bits,
    report_bytes,
    report_codes,
    report_dtype,
    report_values,
    unpack,
)

BITMAP = SubsetOf("cells", 2000, 1000)
LIST = SubsetOf("cells", 3_000_000, 4)
"""Its table of binomials would be larger than 64 MiB."""
LAYOUTS: list[list[Field]] = [
    [Number("slope", 26003, 1), Number("start", 26003)],
    [Number("slope", (1 << 61) - 1, 1), Number("shift", (1 << 61) - 1)],
    [Number("row", 1 << 32), Number("cell", 1 << 32)],
    [Number("row", 1 << 32), Number("cell", (1 << 32) + 1)],
    [Number("row", 300), SubsetOf("cells", 64, 17)],
    [Number("row", 65536), SubsetOf("cells", 1024, 47)],
    [SubsetOf("cells", 1024, 275)],
    [Number("row", 1 << 62), SubsetOf("cells", 70000, 2)],
    [Number("row", 65536), Bits("bits", 1024)],
    [Bits("bits", 13)],
    [Number("row", 7), BITMAP],
    [Number("row", 7), LIST],
]
SMALL: list[list[Field]] = [
    [Number("x", 1)],
    [Number("x", 11)],
    [Number("x", 256)],
    [Number("x", 257, 1)],
    [Number("x", 1000, 5)],
    [Number("x", 7, 1), Number("y", 7)],
    [Number("x", 3), Number("y", 5, 4), Number("z", 17)],
    [SubsetOf("x", 11, 1)],
    [SubsetOf("x", 11, 4)],
    [SubsetOf("x", 9, 9)],
    [Number("row", 3), SubsetOf("x", 12, 6)],
    [SubsetOf("x", 6, 5), Number("row", 300)],
    [Bits("x", 1)],
    [Bits("x", 8)],
    [Bits("x", 11)],
    [Number("row", 5, 2), Bits("x", 9)],
]


def name(fields: list[Field]) -> str:
    return "-".join(f"{type(field).__name__}{field.values.bit_length()}" for field in fields)


# The plain twin: one Python integer a report.


def integer_of(fields: list[Field], report: Any) -> int:
    """The integer that the docstring of `pack` describes."""
    total = 0
    for field in fields:
        if not isinstance(field, Number):
            total = big_part(field, report[field.name])
    for field in reversed(fields):
        if isinstance(field, Number):
            total = total * (field.bound - field.least) + int(report[field.name]) - field.least
    return total


def big_part(field: SubsetOf | Bits, value: np.ndarray) -> int:
    if isinstance(field, Bits):
        return sum(1 << place for place in range(field.count) if value[place // 8] >> (place % 8) & 1)
    if field.form == "rank":
        return sum(comb(int(cell), place + 1) for place, cell in enumerate(value))
    if field.form == "list":
        each = (field.bound - 1).bit_length()
        return sum(int(cell) << (place * each) for place, cell in enumerate(value))
    return sum(1 << int(cell) for cell in value)


def wire_of(integers: list[int], length: int) -> np.ndarray:
    octets = b"".join(integer.to_bytes(length, "little") for integer in integers)
    return np.frombuffer(octets, np.uint8).reshape(len(integers), length)


def well_formed(fields: list[Field], report: Any) -> bool:
    """By the docstring of each field."""
    for field in fields:
        value = report[field.name]
        if isinstance(field, Number):
            good = field.least <= value < field.bound
        elif isinstance(field, SubsetOf):
            cells = value.astype(np.int64)
            good = len(cells) == field.count and bool((np.diff(cells) > 0).all()) and cells[-1] < field.bound
        else:
            good = int.from_bytes(value.tobytes(), "little") < 1 << field.count
        if not good:
            return False
    return True


# Random layouts and reports


@st.composite
def layouts(draw: st.DrawFn) -> list[Field]:
    """Draw a list of fields, at most one of them big, anywhere among the others."""
    fields: list[Field] = []
    for label in "abc"[: draw(st.integers(0, 3))]:
        bound = draw(st.integers(1, 40) | st.integers(250, 260) | st.integers(1, 1 << 62))
        fields.append(Number(label, bound, draw(st.integers(0, min(3, bound - 1)))))
    kind = draw(
        st.sampled_from(["none", "subset", "sparse", "bits", "bitmap", "list"] if fields else ["subset", "bits"])
    )
    bound = draw(st.integers(1, 90))
    big: dict[str, Field] = {
        "subset": SubsetOf("big", bound, draw(st.integers(1, bound))),
        "sparse": SubsetOf("big", draw(st.integers(3, 70000)), draw(st.integers(1, 3))),
        "bits": Bits("big", draw(st.integers(1, 90))),
        "bitmap": SubsetOf("big", 2000, 1000),
        "list": SubsetOf("big", 1 << 22, 7),
    }
    if kind != "none":
        fields.insert(draw(st.integers(0, len(fields))), big[kind])
    return fields


def random_reports(fields: list[Field], n: int, seed: int) -> np.ndarray:
    """Draw reports, and set some numbers to the least or the largest."""
    generator = np.random.default_rng(seed)
    reports = np.zeros(n, dtype=report_dtype(fields))
    for field in fields:
        if isinstance(field, Number):
            drawn = generator.integers(field.least, field.bound, n)
            edge = generator.integers(0, 4, n)
            reports[field.name] = np.select([edge == 0, edge == 1], [field.least, field.bound - 1], drawn)
        elif isinstance(field, SubsetOf):
            for report in reports:
                report[field.name] = np.sort(generator.choice(field.bound, field.count, replace=False))
        else:
            bits = generator.integers(0, 2, (n, field.count), dtype=np.uint8)
            reports[field.name] = np.packbits(bits, axis=1, bitorder="little")
    return reports


def check_pack(fields: list[Field], reports: np.ndarray) -> None:
    wire = pack(fields, reports)
    assert wire.dtype == np.uint8
    assert wire.shape == (len(reports), report_bytes(fields))
    assert np.array_equal(wire, wire_of([integer_of(fields, report) for report in reports], wire.shape[1]))
    back, valid = unpack(fields, wire)
    assert valid.all()
    assert back.dtype == report_dtype(fields)
    assert np.array_equal(back, reports)


@given(fields=layouts(), n=st.integers(0, 3) | st.integers(60, 70), seed=st.integers(0, 1 << 32))
def test_a_report_is_its_integer_and_back(fields: list[Field], n: int, seed: int) -> None:
    check_pack(fields, random_reports(fields, n, seed))


@given(fields=layouts(), data=st.data())
def test_integers_are_accepted_exactly_where_a_report_packs_to_them(fields: list[Field], data: st.DataObject) -> None:
    length, codes = report_bytes(fields), report_codes(fields)
    top = 256**length - 1
    edges = st.sampled_from(sorted({0, codes - 1, min(codes, top), top}))
    integers = data.draw(st.lists(edges | st.integers(0, top), min_size=1, max_size=5))
    reports, valid = unpack(fields, wire_of(integers, length))
    if codes == report_values(fields):
        assert valid.tolist() == [integer < codes for integer in integers]
    for report, good, integer in zip(reports, valid, integers, strict=True):
        assert not good or (well_formed(fields, report) and integer_of(fields, report) == integer)
    assert np.array_equal(pack(fields, reports[valid]), wire_of(integers, length)[valid])


def test_a_report_takes_the_fewest_whole_bytes(subtests: pytest.Subtests) -> None:
    for fields in LAYOUTS + SMALL:
        with subtests.test(fields=name(fields)):
            length, codes = report_bytes(fields), report_codes(fields)
            assert codes <= 256**length
            assert length == 0 or codes > 256 ** (length - 1)


# What is counted


@given(layouts())
def test_the_values_of_a_report_are_the_product(fields: list[Field]) -> None:
    values = math.prod(field.values for field in fields)
    assert report_values(fields) == values
    assert report_bits(fields) == pytest.approx(math.fsum(math.log2(field.values) for field in fields), rel=1e-14)
    assert report_codes(fields) >= values


def test_in_which_form_a_subset_goes(subtests: pytest.Subtests) -> None:
    for bound, count, form, bits in [
        (300, 5, "rank", None),
        (1024, 47, "rank", None),
        (1024, 275, "rank", None),
        (1024, 512, "rank", None),
        (1 << 24, 1, "rank", None),
        (1 << 24, 2, "list", 48),
        (10_000, 101, "list", 1414),
        (65_536, 4000, "list", 64_000),
        (2000, 1000, "bitmap", 2000),
        (26_000, 6993, "bitmap", 26_000),
    ]:
        with subtests.test(bound=bound, count=count):
            field = SubsetOf("x", bound, count)
            assert field.form == form
            assert report_codes([field]) == (comb(bound, count) if bits is None else 1 << bits)


def test_fields_in_memory(subtests: pytest.Subtests) -> None:
    for field, dtype, shape in [
        (Number("x", 1 << 32), "<u4", ()),
        (Number("x", (1 << 32) + 1), "<u8", ()),
        (SubsetOf("x", 65536, 1), "<u2", (1,)),
        (SubsetOf("x", 65537, 3), "<u4", (3,)),
        (Bits("x", 8), "u1", (1,)),
        (Bits("x", 9), "u1", (2,)),
    ]:
        with subtests.test(field=field):
            column = np.zeros(2, dtype=report_dtype([field]))["x"]
            assert column.dtype == np.dtype(dtype)
            assert column.shape == (2, *shape)


# Lists


def test_a_list_that_is_not_ascending_or_out_of_bounds_is_refused() -> None:
    each, fields = (LIST.bound - 1).bit_length(), [Number("row", 7), LIST]
    good = [5, 70_000, 70_001, 2_999_999]
    wrong = [[5, 5, 70_001, 2_999_999], [70_000, 5, 70_001, 2_999_999], [5, 70_000, 70_001, LIST.bound], [0, 0, 0, 0]]
    integers = [sum(cell << (place * each) for place, cell in enumerate(cells)) * 7 + 3 for cells in (good, *wrong)]
    found, valid = unpack(fields, wire_of(integers, report_bytes(fields)))
    assert valid.tolist() == [True, False, False, False, False]
    assert found["cells"][0].tolist() == good
    assert np.all(found["cells"] < LIST.bound)


# Many reports, bad reports, wrong calls


def test_a_refused_report_holds_values_within_bounds(subtests: pytest.Subtests) -> None:
    for fields in LAYOUTS + SMALL:
        with subtests.test(fields=name(fields)):
            length = report_bytes(fields)
            octets = np.random.default_rng(5).integers(0, 256, (50, length), dtype=np.uint8)
            octets[:10] |= 0xF0
            reports, _ = unpack(fields, octets)
            for field in fields:
                column = reports[field.name]
                if isinstance(field, Bits):
                    assert all(int.from_bytes(row.tobytes(), "little") < 1 << field.count for row in column)
                else:
                    assert int(column.max()) < field.bound


def test_reports_packed_together_are_those_packed_alone(subtests: pytest.Subtests) -> None:
    """More of them than are worked on at once."""
    for fields, n in [(LAYOUTS[0], 140_000), (LAYOUTS[5], 15_000), (LAYOUTS[8], 5000), (LAYOUTS[10], 2500)]:
        with subtests.test(fields=name(fields)):
            few = random_reports(fields, 5, 4)
            many = np.resize(few, n)
            wire = pack(fields, many)
            assert np.array_equal(wire, np.resize(pack(fields, few), wire.shape))
            back, valid = unpack(fields, wire)
            assert valid.all()
            assert np.array_equal(back, many)


def test_a_wrong_shape_raises(subtests: pytest.Subtests) -> None:
    for shape in [(3, 1), (3, 3), (6,), (1, 2, 1)]:
        with subtests.test(shape=shape), pytest.raises(ValueError, match=r"\(n, 2\)"):
            unpack([Number("x", 1000)], np.zeros(shape, dtype=np.uint8))


def test_two_big_fields_raise(subtests: pytest.Subtests) -> None:
    for fields in list(combinations([SubsetOf("a", 5, 2), Bits("b", 3), SubsetOf("c", 5, 2)], 2)):
        with subtests.test(fields=[field.name for field in fields]):
            with pytest.raises(ValueError, match="one field"):
                report_bytes(fields)
            with pytest.raises(ValueError, match="one field"):
                pack(fields, np.zeros(1, dtype=report_dtype(fields)))
            with pytest.raises(ValueError, match="one field"):
                unpack(fields, np.zeros((1, 1), dtype=np.uint8))


def test_fields_that_cannot_be_raise(subtests: pytest.Subtests) -> None:
    for kind, arguments, message in [
        (Number, (0,), "bound of x is 0, .* 1"),
        (Number, ((1 << 62) + 1,), r"1\.\.2\*\*62"),
        (Number, (5, 5), r"least of x is 5, .*0\.\.4"),
        (Number, (5, -1), r"least of x is -1, .*0\.\.4"),
        (SubsetOf, ((1 << 32) + 1, 1), r"1\.\.2\*\*32"),
        (SubsetOf, (5, 6), r"count of x is 6, .*1\.\.5"),
        (SubsetOf, (5, 0), r"count of x is 0, .*1\.\.5"),
        (Bits, (0,), "count of x is 0, .*1"),
    ]:
        with subtests.test(kind=kind.__name__, arguments=arguments), pytest.raises(ValueError, match=message):
            kind("x", *arguments)
