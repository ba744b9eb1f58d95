"""A tally file holds the same integers, however narrow they are written, and nothing that is no tally is read."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from hushcount.errors import FormatError
from hushcount.oracles.tally import Tally, load, narrowed, save

FINGERPRINT = bytes(range(32))
shapes = arrays.array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=20)
counts = arrays.arrays(
    np.int64, shapes, elements=st.sampled_from([0, 1, -1, 127, 128, -128, -129, 2**15, 2**31, -(2**40)])
)


def stored(tally: Tally) -> io.BytesIO:
    stream = io.BytesIO()
    save(tally, FINGERPRINT, stream)
    stream.seek(0)
    return stream


@given(counts=counts)
@settings(deadline=None)
def test_what_is_loaded_is_what_was_saved(counts: np.ndarray) -> None:
    tally = load(stored(Tally(counts, 12, np.arange(3, dtype=np.uint64))), FINGERPRINT)
    assert tally.counts.dtype == np.int64
    assert np.array_equal(tally.counts, counts)
    assert tally.counts.shape == counts.shape
    assert (tally.reports, tally.items.tolist()) == (12, [0, 1, 2])
    assert np.array_equal(narrowed(counts), counts)


def test_counts_are_as_narrow_as_they_can_be(subtests: pytest.Subtests) -> None:
    for values, kind in (
        ([-128, 127], "i1"),
        ([128], "i2"),
        ([-129], "i2"),
        ([2**15], "i4"),
        ([2**31], "i8"),
        ([-(2**31) - 1], "i8"),
    ):
        with subtests.test(values=values, kind=kind):
            assert narrowed(np.array([values], dtype=np.int64)).dtype == np.dtype(kind)


def test_more_cells_than_are_written_at_once() -> None:
    counts = np.random.default_rng(1).integers(-3, 3, (700, 4001))
    assert np.array_equal(load(stored(Tally(counts, 1, np.zeros(0, np.uint64))), FINGERPRINT).counts, counts)


def test_counts_that_are_no_integers_are_no_tally() -> None:
    tally, changed, fractions = Tally(np.zeros((1, 2), np.int64), 1, np.zeros(0, np.uint64)), io.BytesIO(), io.BytesIO()
    np.save(fractions, np.zeros((1, 2)))
    with zipfile.ZipFile(stored(tally)) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            new.writestr(name, fractions.getvalue() if name == "counts.npy" else old.read(name))
    changed.seek(0)
    with pytest.raises(FormatError, match="damaged"):
        load(changed, FINGERPRINT)


def test_a_tally_that_says_it_is_larger_than_it_is_takes_no_room(subtests: pytest.Subtests) -> None:
    """Of a header that promised 8 TiB the room was made first: a MemoryError, or a machine without memory."""
    for name in ("counts", "items", "campaign", "reports", "version"):
        for shape in ((1 << 20, 1 << 20), (10**400,), (-1, 2), (1 << 62, 1 << 62)):
            with subtests.test(name=name, shape=shape):
                tally, changed = Tally(np.zeros((1, 2), np.int64), 1, np.zeros(0, np.uint64)), io.BytesIO()
                header = io.BytesIO()
                np.lib.format.write_array_header_1_0(header, {"descr": "<i8", "fortran_order": False, "shape": shape})
                with zipfile.ZipFile(stored(tally)) as old, zipfile.ZipFile(changed, "w") as new:
                    for member in old.namelist():
                        new.writestr(
                            member, header.getvalue() + bytes(8) if member == f"{name}.npy" else old.read(member)
                        )
                changed.seek(0)
                with pytest.raises(FormatError, match="damaged"):
                    load(changed, FINGERPRINT)
