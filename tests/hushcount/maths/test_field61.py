"""Arithmetic modulo 2**61 - 1 in 64 bits equals that of unbounded integers."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from hushcount.maths import field61
from hushcount.maths.field61 import PRIME

elements = st.integers(0, PRIME - 1)
words = st.integers(0, 2**64 - 1)


def array(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.uint64)


@given(value=words)
@example(PRIME)
@example(2 * PRIME)
@example(7 * PRIME)
@example(8 * PRIME)
@example(2**64 - 1)
@example(PRIME - 1)
def test_reduce(value: int) -> None:
    assert field61.reduce(array(value)).tolist() == [value % PRIME]


@given(left=elements, right=elements)
@example(PRIME - 1, PRIME - 1)
@example((1 << 31) - 1, (1 << 31) - 1)
@example((1 << 60) + 1, (1 << 60) + (1 << 31) - 1)
@example(0, PRIME - 1)
def test_multiply(left: int, right: int) -> None:
    assert field61.multiply(array(left), array(right)).tolist() == [left * right % PRIME]


@given(left=elements, right=elements)
@example(PRIME - 1, PRIME - 1)
@example(PRIME - 1, 1)
def test_add(left: int, right: int) -> None:
    assert field61.add(array(left), array(right)).tolist() == [(left + right) % PRIME]


@given(st.lists(st.tuples(elements, elements), min_size=1, max_size=30))
def test_arrays_are_worked_element_by_element(pairs: list[tuple[int, int]]) -> None:
    left, right = (array(*column) for column in zip(*pairs, strict=True))
    assert field61.multiply(left, right).tolist() == [one * other % PRIME for one, other in pairs]
    assert field61.multiply(left[:, None], right).shape == (len(pairs), len(pairs))
