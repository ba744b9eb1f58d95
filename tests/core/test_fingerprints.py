"""Fingerprints: the same on every machine, and never that of the reserved item."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hushcount import fingerprints as module
from hushcount.field61 import PRIME
from hushcount.fingerprints import OTHER, fingerprints

GOLDEN = {
    "": 0,
    "a": 1200484088528637719,
    "the quick brown fox jumps over the lazy dog": 798018130244943545,
    "naïve": 1206539354207479042,
    "😀": 598474429037584422,
    "https://example.org/a?b=c": 217265158043209326,
    "x" * 64: 1325803522371016733,
}
"""Made with the reference MurmurHash3 x64 128 written out in plain Python, not with mmh3."""


def test_golden_values() -> None:
    assert dict(zip(GOLDEN, fingerprints(GOLDEN).tolist(), strict=True)) == GOLDEN


def test_the_reserved_item_is_the_last_point_of_the_field() -> None:
    assert OTHER == PRIME - 1 == 2**61 - 2


@given(st.lists(st.text(max_size=40)))
def test_no_string_has_the_reserved_fingerprint(strings: list[str]) -> None:
    found = fingerprints(strings)
    assert found.dtype == np.uint64
    assert len(found) == len(strings)
    assert all(value < OTHER for value in found.tolist())


def test_no_hash_value_reaches_the_reserved_fingerprint(monkeypatch) -> None:
    values = iter([0, OTHER - 1, OTHER, OTHER + 1, PRIME, 2 * OTHER, 2**128 - 1, OTHER << 64])
    monkeypatch.setattr(module.mmh3, "hash128", lambda *_, **__: next(values))
    assert all(value < OTHER for value in fingerprints(["x"] * 8).tolist())


def test_a_stream_of_strings_is_read_once() -> None:
    assert np.array_equal(fingerprints(iter(["a", "b"])), fingerprints(["a", "b"]))


def test_different_strings_differ() -> None:
    # 20,000 strings collide with probability below 1e-10.
    assert len(np.unique(fingerprints(f"string {number}" for number in range(20_000)))) == 20_000
