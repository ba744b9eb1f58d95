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
NUMBERS = {
    "0000000000000000": "0",
    "8000000000000000": "0",
    "0000000000000001": "5e-324",
    "8000000000000001": "-5e-324",
    "7fefffffffffffff": "1.7976931348623157e+308",
    "ffefffffffffffff": "-1.7976931348623157e+308",
    "4340000000000000": "9007199254740992",
    "c340000000000000": "-9007199254740992",
    "4430000000000000": "295147905179352830000",
    "44b52d02c7e14af5": "9.999999999999997e+22",
    "44b52d02c7e14af6": "1e+23",
    "44b52d02c7e14af7": "1.0000000000000001e+23",
    "444b1ae4d6e2ef4e": "999999999999999700000",
    "444b1ae4d6e2ef4f": "999999999999999900000",
    "444b1ae4d6e2ef50": "1e+21",
    "3eb0c6f7a0b5ed8c": "9.999999999999997e-7",
    "3eb0c6f7a0b5ed8d": "0.000001",
    "41b3de4355555553": "333333333.3333332",
    "41b3de4355555554": "333333333.33333325",
    "41b3de4355555555": "333333333.3333333",
    "41b3de4355555556": "333333333.3333334",
    "41b3de4355555557": "333333333.33333343",
    "becbf647612f3696": "-0.0000033333333333333333",
    "43143ff3c1cb0959": "1424953923781206.2",
}
values = st.recursive(
    st.none() | st.booleans() | st.integers(-LARGEST_INTEGER, LARGEST_INTEGER) | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=4)
    ),
    max_leaves=12,
)


def test_a_number_of_the_rfc_has_its_text(subtests: pytest.Subtests) -> None:
    for bits, text in NUMBERS.items():
        with subtests.test(bits=bits):
            (number,) = struct.unpack(">d", bytes.fromhex(bits))
            assert canonical_json(number) == text.encode()


def test_the_examples_of_the_rfc() -> None:
    """Sections 3.2.2 and 3.2.3."""
    numbers = [333333333.33333329, 1e30, 4.50, 2e-3, 0.000000000000000000000000001]
    data = {
        "numbers": numbers,
        "string": "\u20ac$\u000f\u000aA'\u0042\u0022\u005c\\\"/",
        "literals": [None, True, False],
    }
    assert (
        canonical_json(data)
        == (
            '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
            '"string":"\u20ac$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
        ).encode()
    )
    keys = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\u0080", "\u00f6"]
    ordered = ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]
    assert list(json.loads(canonical_json(dict.fromkeys(keys)))) == ordered


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
            pytest.raises(ValueError, match=r"must be|surrogate|no text|JSON has not"),
        ):
            canonical_json([value])
