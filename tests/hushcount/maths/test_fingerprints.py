"""Fingerprints: the same on every machine, and never that of the reserved item."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hushcount.maths import fingerprints as module
from hushcount.maths.field61 import PRIME
from hushcount.maths.fingerprints import OTHER, fingerprints

GOLDEN = {
    "": 2044626443515130129,
    "a": 1931423897400987839,
    "the quick brown fox jumps over the lazy dog": 296383188170409749,
    "naïve": 118499596404266189,
    "😀": 2097791510439850493,
    "https://example.org/a?b=c": 987917127036671743,
    "x" * 64: 721379516379562655,
}
"""Made with the BLAKE2b of libsodium, not with that of hashlib."""


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
    hashes = (SimpleNamespace(digest=partial(value.to_bytes, 16, "little")) for value in values)
    monkeypatch.setattr(module.hashlib, "blake2b", lambda *_, **__: next(hashes))
    assert all(value < OTHER for value in fingerprints(["x"] * 8).tolist())


def test_a_string_made_to_collide_with_anothers_item_does_not() -> None:
    """Under MurmurHash3, which can be run backwards, these were one item: finding the second took twelve seconds."""
    held, forged = fingerprints(["dark-mode", "Smith is a crookMs'7\\=~UO|/J>?Rb"])
    assert held != forged
