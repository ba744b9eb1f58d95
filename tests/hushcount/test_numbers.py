"""Numbers become texts and bins: every double by one rule, every text a number or none."""

from __future__ import annotations

import math
import struct
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushcount.errors import UsageError
from hushcount.items import canonical, fault_of_item
from hushcount.numbers import MOST_BINS, Bins, count_edges, edges_between, number_of, text_of_number
from hushcount.report_making import plain_text

EDGES = st.lists(st.floats(-1e12, 1e12).map(lambda edge: text_of_number(float(f"{edge:.6g}"))), min_size=1, max_size=40)


@given(st.floats())
def test_the_text_of_a_double_names_it(number: float) -> None:
    text = text_of_number(number)
    if math.isnan(number):
        assert (text, number_of(text)) == ("NaN", None)
    else:
        assert number_of(text) == number


@given(st.text() | st.from_regex(r"-?[0-9]{1,30}(\.[0-9]{1,20})?(e[+-]?[0-9]{1,4})?", fullmatch=True))
def test_a_text_is_read_as_a_number_or_not_at_all(text: str) -> None:
    found = number_of(text)
    if found is not None:
        assert len(text) <= 40
        assert found == float(text)


@given(EDGES, st.floats(allow_nan=False))
def test_every_number_is_in_the_bin_whose_ends_hold_it(drawn: list[str], number: float) -> None:
    edges = tuple(sorted(dict.fromkeys(edge for edge in drawn if "e" not in edge), key=float)) or ("0",)
    bins = Bins(edges, "ms")
    place = bins.names.index(bins.name_of(text_of_number(number)))
    low, high = bins.ends(place, place)
    assert low is None or low <= number
    assert high is None or number < high
    assert len(set(bins.names)) == len(bins) == len(edges) + 1
    assert all(fault_of_item(name) is None and canonical(name) == name for name in bins.names)


def test_names_of_bins_together() -> None:
    times, counts = Bins(("2", "10.5", "300"), "ms"), Bins(("1", "2", "3"))
    assert times.names == ("below 2 ms", "2 to 10.5 ms", "10.5 to 300 ms", "300 ms or more")
    assert [times.span(*ends) for ends in ((0, 3), (0, 1), (1, 2), (1, 3))] == [
        "any number", "below 10.5 ms", "2 to 300 ms", "2 ms or more",
    ]  # fmt: skip
    assert counts.names == ("0", "1", "2", "3 or more")
    assert [counts.span(*ends) for ends in ((0, 3), (0, 1), (1, 2), (2, 3))] == [
        "any number", "0 to 1", "1 to 2", "2 or more",
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["NaN", "ten", "", "2 to 10.5 ms", "1" * 41])
def test_what_is_no_number_has_no_bin(text: str) -> None:
    assert Bins(("2", "10.5"), "ms").name_of(text) == ""


@given(st.floats(0.0, 1e6), st.floats(1e-3, 1e9), st.integers(2, MOST_BINS), st.sampled_from(["linear", "log"]))
def test_edges_end_at_the_range_and_rise(low: float, width: float, bins: int, scale: str) -> None:
    try:
        edges = edges_between(low, low + width, bins, scale)
    except ValueError:
        return
    assert len(edges) == bins - 1
    assert all(float(one) < float(other) for one, other in pairwise(edges))
    assert float(edges[-1]) == pytest.approx(low + width, rel=6e-3)


def test_edges_of_usual_ranges() -> None:
    assert edges_between(0, 100, 6, "linear") == ("20", "40", "60", "80", "100")
    assert edges_between(1, 1000, 4, "log") == ("10", "100", "1000")
    assert edges_between(0, 1000, 5, "log") == ("1", "10", "100", "1000")
    assert count_edges(3) == ("1", "2", "3")


def test_a_value_is_a_text_or_a_number() -> None:
    for value, text in ((2.0, "2"), (True + 1, "2"), (10**400, "Infinity"), (-(10**400), "-Infinity"), ("2.0", "2.0")):
        assert plain_text(value) == text
    (double,) = struct.unpack(">d", bytes.fromhex("7ff8000000000001"))
    assert plain_text(double) == "NaN"
    for value in (True, None, b"2", [2]):
        with pytest.raises(UsageError, match="str or a number"):
            plain_text(value)  # type: ignore[arg-type]
