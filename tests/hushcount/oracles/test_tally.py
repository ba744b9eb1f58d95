"""A tally file holds the same integers, however narrow they are written, and nothing that is no tally is read."""

from __future__ import annotations

import io
import zipfile
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from hushcount.errors import FormatError
from hushcount.oracles.flags import UNFLAGGED, Flag, Flags
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


def npy(shape: tuple[int, ...], kind: str = "<i8", held: bytes = bytes(8), by_column: bool = False) -> bytes:
    stream = io.BytesIO()
    header = {"descr": kind, "fortran_order": by_column, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, header)
    return stream.getvalue() + held


LARGER = [npy((1 << 20, 1 << 20)), npy((10**400,)), npy((-1, 2)), npy((1 << 62, 1 << 62))]
"""Of a header that promised 8 TiB the room was made first: a MemoryError, or a machine without memory."""
NO_COUNTS = [
    npy((1 << 40, 1 << 40), "<i1"),
    npy((-1, -8), held=bytes(64)),
    npy((3,), "<f8", bytes(24)),
    npy((3,), "|O", bytes(24)),
    npy((2, 2), held=bytes(32), by_column=True),
    npy((8,)),
    b"\x93NUMPY\x01\x00\xff\xff" + b"(" * 65535,
    b"\x93NUMPY\x03\x00",
    b"",
]


def test_a_tally_that_says_it_is_larger_than_it_is_takes_no_room(subtests: pytest.Subtests) -> None:
    """Nor one that says it is of another kind; both are one error."""
    members = ("counts", "items", "campaign", "reports", "version")
    for name, lie in [*product(members, LARGER), *product(["counts"], NO_COUNTS)]:
        with subtests.test(name=name, lie=lie[:80]):
            tally, changed = Tally(np.zeros((1, 2), np.int64), 1, np.zeros(0, np.uint64)), io.BytesIO()
            with zipfile.ZipFile(stored(tally)) as old, zipfile.ZipFile(changed, "w", zipfile.ZIP_DEFLATED) as new:
                for member in old.namelist():
                    new.writestr(member, lie if member == f"{name}.npy" else old.read(member))
            with pytest.raises(FormatError, match="damaged or is not a tally"):
                load(changed, FINGERPRINT)


def test_a_tally_that_unpacks_to_more_than_its_campaign_has_is_refused_before_it_is_unpacked() -> None:
    stream = stored(Tally(np.zeros((1, 1 << 20), dtype=np.int64), 1, np.zeros(0, np.uint64)))
    assert len(stream.getvalue()) < 10_000
    with pytest.raises(FormatError, match="damaged or is not a tally"):
        load(stream, FINGERPRINT, most=1000)


@given(raw=st.binary(max_size=300))
@settings(deadline=None)
def test_every_tally_is_read_or_refused_with_an_error_of_ours(raw: bytes) -> None:
    with pytest.raises(FormatError):
        load(io.BytesIO(raw), FINGERPRINT)


def test_flags_are_stored_and_a_tally_without_them_tells_nothing() -> None:
    flags = Flags(repeated=Flag(verdict="flagged", found=30.0, high=8.0, number=2))
    tally = Tally(np.zeros((1, 2), np.int64), 1, np.zeros(0, np.uint64), flags=flags)
    assert load(stored(tally), FINGERPRINT).flags == flags
    assert load(changed_flags(tally, None), FINGERPRINT).flags == UNFLAGGED
    assert UNFLAGGED.raised == ()


def test_flags_that_no_job_writes_are_refused(subtests: pytest.Subtests) -> None:
    for lie in (
        b'{"format": 2}',
        b'{"repeated": {"verdict": "flagged"}}',
        b'{"totals": {"verdict": "flagged", "found": 1, "high": 1}}',
        b'{"counts": {"number": -1}}',
        b'{"counts": {"found": NaN}}',
        b'{"more": 1}',
        b"{}" + b" " * 2047,
    ):
        with subtests.test(lie=lie[:40]):
            tally = Tally(np.zeros((1, 2), np.int64), 1, np.zeros(0, np.uint64))
            with pytest.raises(FormatError, match="damaged or is not a tally"):
                load(changed_flags(tally, lie), FINGERPRINT)


def changed_flags(tally: Tally, flags: bytes | None) -> io.BytesIO:
    """Return a tally's file with other flags, or without any."""
    changed = io.BytesIO()
    with zipfile.ZipFile(stored(tally)) as old, zipfile.ZipFile(changed, "w") as new:
        for member in old.namelist():
            if member != "flags.npy":
                new.writestr(member, old.read(member))
        if flags is not None:
            array = io.BytesIO()
            np.lib.format.write_array(array, np.frombuffer(flags, dtype=np.uint8), allow_pickle=False)
            new.writestr("flags.npy", array.getvalue())
    return changed
