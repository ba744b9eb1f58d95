"""The wire form: fewest whole bytes, one encoding for each value, everything else refused."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushcount.fields import Field, pack, report_dtype, unpack


@st.composite
def layouts(draw: st.DrawFn) -> tuple[list[Field], np.ndarray]:
    """Draw a list of fields and reports that fit them."""
    fields, columns = [], []
    n = draw(st.integers(0, 4))
    for name in "abc"[: draw(st.integers(1, 3))]:
        bound = draw(st.integers(2, 40) | st.integers(250, 260) | st.integers(2, 1 << 61))
        least = draw(st.integers(0, min(3, bound - 1)))
        count = draw(st.integers(1, min(6, bound - least)))
        values = st.lists(st.integers(least, bound - 1), min_size=count, max_size=count, unique=True).map(sorted)
        fields.append(Field(name, bound, count, least if count == 1 else 0))
        columns.append(draw(st.lists(values, min_size=n, max_size=n)))
    reports = np.zeros(n, dtype=report_dtype(fields))
    for field, column in zip(fields, columns, strict=True):
        values = np.array(column, dtype=np.uint64).reshape(n, field.count)
        reports[field.name] = values if field.count > 1 else values[:, 0]
    return fields, reports


@given(layouts())
def test_what_is_packed_is_unpacked(layout: tuple[list[Field], np.ndarray]) -> None:
    fields, reports = layout
    wire = pack(fields, reports)
    assert wire.shape == (len(reports), sum(field.wire_bytes for field in fields))
    back, valid = unpack(fields, wire)
    assert valid.all()
    assert np.array_equal(back, reports)


@given(layouts(), st.data())
def test_accepted_bytes_are_what_their_report_packs_to(
    layout: tuple[list[Field], np.ndarray], data: st.DataObject
) -> None:
    fields, _ = layout
    length = sum(field.wire_bytes for field in fields)
    octets = data.draw(st.binary(min_size=length, max_size=length))
    back, valid = unpack(fields, np.frombuffer(octets, np.uint8).reshape(1, -1))
    if valid[0]:
        assert pack(fields, back).tobytes() == octets


@given(bound=st.integers(2, 1 << 61))
def test_a_value_takes_the_fewest_whole_bytes(bound: int) -> None:
    width = Field("x", bound).value_bytes
    assert bound - 1 < 256**width
    assert width == 1 or bound - 1 >= 256 ** (width - 1)


@pytest.mark.parametrize(("bound", "width"), [(1, 1), (2, 1), (256, 1), (257, 2), (65536, 2), (65537, 3), (1 << 61, 8)])
def test_bytes_of_a_value_at_the_edges(bound: int, width: int) -> None:
    assert Field("x", bound).value_bytes == width


@given(bound=st.integers(2, 2000), count=st.integers(1, 50))
def test_a_list_takes_the_shorter_of_two_forms(bound: int, count: int) -> None:
    field = Field("x", bound, count)
    listed = count * field.value_bytes
    assert field.wire_bytes == (min(listed, (bound + 7) // 8) if count > 1 else listed)


@pytest.mark.parametrize(
    ("field", "valid"),
    [
        (Field("x", 11), 11),
        (Field("x", 11, least=1), 10),
        (Field("x", 256), 256),
        (Field("x", 1000), 1000),
        (Field("x", 1000, least=5), 995),
        (Field("x", 200, count=2), comb(200, 2)),
        (Field("x", 11, count=4), comb(11, 4)),
        (Field("x", 16, count=8), comb(16, 8)),
    ],
)
def test_of_all_byte_strings_exactly_the_values_are_valid(field: Field, valid: int) -> None:
    size = field.wire_bytes
    strings = np.arange(256**size, dtype="<u4").view(np.uint8).reshape(-1, 4)[:, :size]
    assert unpack([field], strings)[1].sum() == valid


def test_the_byte_order_is_little_endian() -> None:
    field = Field("x", 1 << 24)
    reports = np.array([(0x010203,)], dtype=report_dtype([field]))
    assert pack([field], reports).tolist() == [[3, 2, 1]]


def test_a_bitmap_holds_cell_c_in_bit_c() -> None:
    field = Field("x", 20, count=4)
    assert field.as_bitmap
    reports = np.array([([0, 3, 8, 19],)], dtype=report_dtype([field]))
    assert pack([field], reports).tolist() == [[0b1001, 1, 0b1000]]


@pytest.mark.parametrize("shape", [(3, 1), (3, 3), (6,), (1, 2, 1)])
def test_a_wrong_shape_raises(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"must be \(n, 2\)"):
        unpack([Field("x", 1000)], np.zeros(shape, dtype=np.uint8))
