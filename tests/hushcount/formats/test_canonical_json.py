"""Canonical JSON: the vectors of RFC 8785, and its numbers against another writer of the shortest digits."""

from __future__ import annotations

import json
import math
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushcount.formats.canonical_json import LARGEST_INTEGER, canonical_json

# RFC 8785, appendix B: the bits of a number and its text.
values = st.recursive(
    st.none() | st.booleans() | st.integers(-LARGEST_INTEGER, LARGEST_INTEGER) | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_reads_back_exactly_and_has_the_fewest_digits(number: float) -> None:
    text = canonical_json(number).decode()
    assert float(text) == number
    digits = np.format_float_scientific(number, unique=True, trim="-").partition("e")[0]
    significant = text.partition("e")[0].replace(".", "").replace("-", "").strip("0")
    assert significant == digits.replace(".", "").replace("-", "").strip("0")
    assert ("e" in text) == (number != 0 and not 1e-6 <= abs(number) < 1e21)


@given(values)
def test_a_value_reads_back_and_has_one_text(value: Any) -> None:
    text = canonical_json(value)
    assert json.loads(text) == value
    assert canonical_json(json.loads(text)) == text


@given(st.dictionaries(st.text(st.characters(codec="utf-8")), st.integers(0, 9), max_size=6))
def test_the_order_of_keys_is_that_of_their_utf_16_units(value: dict[str, int]) -> None:
    keys = list(json.loads(canonical_json(value)))
    units = [list(struct.unpack(f"<{len(raw) // 2}H", raw)) for raw in (key.encode("utf-16-le") for key in keys)]
    assert units == sorted(units)


def test_what_json_cannot_carry_exactly_is_refused(subtests: pytest.Subtests) -> None:
    for value in [
        LARGEST_INTEGER + 1,
        -LARGEST_INTEGER - 1,
        math.nan,
        math.inf,
        "\ud800",
        {"\udc00": 1},
        {1: 1},
        b"",
        {1, 2},
    ]:
        with (
            subtests.test(value=value),
            pytest.raises(ValueError, match=r"must be|surrogate"),
        ):
            canonical_json([value])
