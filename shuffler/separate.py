"""The first step: separates senders from reports, and derives the keys of each window, which later steps use too.

Each batch has its own Beam window, and the batch's number is the second in which this window begins. Copies of a report
are compared in a window that may hold several batches. A window's keys are derived from the run's keys, and are useless
in the next window. If a run has one batch, as in `hushcount job shuffle`, it uses the global window and the run's own
keys.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
import numpy as np
from apache_beam.pvalue import TaggedOutput
from apache_beam.transforms.window import BoundedWindow, IntervalWindow, WindowFn
from apache_beam.typehints import with_input_types, with_output_types

from hushcount.arrays import UInt64Array
from hushcount.collection.envelopes import TOKEN_BYTES, envelope_dtype
from hushcount.reasons import rejected
from hushcount.strata import STRATUM_BYTES
from hushcount.window_starts import WINDOW_BYTES, window_octets
from hushcount.wire.tags import TAG_BYTES, as_octets, as_records, split, tags

CLAIM = np.dtype([("client_token", f"S{TOKEN_BYTES}"), ("tag", f"S{TAG_BYTES}")])
"""A claim says that a client sent the ciphertext with this tag. The cap needs no other data about a report."""
_SPAN = struct.Struct("<qq")
NUMBER = struct.Struct("<q")
"""The number of a batch, which precedes each of its blocks where several batches meet."""


def tag_keys_of(keys: UInt64Array, window: BoundedWindow) -> UInt64Array:
    """Return a window's tag keys, in the shape of the run's tag keys."""
    derived = key_of(keys.astype("<u8").tobytes(), window)
    return np.frombuffer(derived, dtype="<u8").astype(np.uint64).reshape(keys.shape)


def key_of(key: bytes, window: BoundedWindow) -> bytes:
    """Return a window's key: SHAKE-256 of the window and the run's key, of this key's length; retries derive it too."""
    if not isinstance(window, IntervalWindow):
        return key
    span = _SPAN.pack(window.start.micros, window.end.micros)
    return hashlib.shake_256(span + key).digest(len(key))


def number_of(window: BoundedWindow) -> int:
    """Return the number of the batch in a window: the second in which the window begins; 0 if a run has one batch."""
    return window.start.seconds() if isinstance(window, IntervalWindow) else 0


def meeting(window: BoundedWindow, meets: WindowFn | None) -> BoundedWindow:
    """Return the window in which copies of a batch's reports are compared; without `meets`, the batch's own window."""
    if meets is None:
        return window
    (found,) = meets.assign(WindowFn.AssignContext(window.start))
    return found


@dataclass(frozen=True)
class Report:
    """What the shuffler knows of a stream's reports.

    Attributes:
        bytes: the length of each: of the public stratum before the box, if there are several, and of the sealed box.
        strata: the number of public strata.
        begins: with noise, when the batch's window begins, in seconds since 1970. Reports name their window openly
            before the box, and must name this one (docs/adr/0061). None: without noise.
    """

    bytes: int
    strata: int = 1
    begins: int | None = None

    @property
    def box_bytes(self) -> int:
        """The length of the box, by which copies are found: a copy that names another stratum is a copy."""
        return self.kept_bytes if self.strata == 1 else self.kept_bytes - STRATUM_BYTES

    @property
    def kept_bytes(self) -> int:
        """The length of what is forwarded of a report: its window is not."""
        return self.bytes if self.begins is None else self.bytes - WINDOW_BYTES


@with_input_types(tuple[int, bytes])
@with_output_types(tuple[int, bytes])
class Numbered(beam.DoFn):
    """Takes (place, block) of one batch; yields (place, the batch's number and the block)."""

    def process(
        self, element: tuple[int, bytes], window: BoundedWindow = beam.DoFn.WindowParam
    ) -> Iterator[tuple[int, bytes]]:
        yield element[0], NUMBER.pack(number_of(window)) + element[1]


class _InPlaces(beam.DoFn):
    """For each window of a bundle, first emits an empty block for every place, in order.

    Engines may process places in the order of their first appearance. Without these blocks, the times at which shards
    are written would show where the first reports went.
    """

    def __init__(self, report: Report, places: int, meets: WindowFn | None) -> None:
        self._report = report
        self._places = places
        self._meets = meets
        self._begun: set[BoundedWindow] = set()

    def start_bundle(self) -> None:
        self._begun = set()

    def _begin(self, window: BoundedWindow) -> Iterator[tuple[int, bytes]]:
        if window not in self._begun:
            yield from ((place, b"") for place in range(self._places))
            self._begun.add(window)


@with_input_types(bytes)
@with_output_types(tuple[int, bytes])
class TagReleased(_InPlaces):
    """Takes blocks of reports that were forwarded earlier; yields (place, tags of these reports).

    Copies of a report go to the same place. Only tags are sent there, and no ciphertexts; `MixShard` states the
    probability that two tags are equal by chance. `keys` are for the tags of ciphertexts.
    """

    def __init__(self, report: Report, places: int, keys: UInt64Array, meets: WindowFn | None = None) -> None:
        super().__init__(report, places, meets)
        self._keys = keys

    def process(self, block: bytes, window: BoundedWindow = beam.DoFn.WindowParam) -> Iterator[tuple[int, bytes]]:
        yield from self._begin(window)
        octets = np.frombuffer(block, dtype=np.uint8).reshape(-1, self._report.kept_bytes)
        tagged = tags(octets[:, -self._report.box_bytes :], tag_keys_of(self._keys, meeting(window, self._meets)))
        yield from split(as_records(tagged), tagged, self._places)


@with_input_types(bytes)
@with_output_types(tuple[int, bytes])
class PlaceDummies(beam.DoFn):
    """Takes blocks of dummies; yields (place, dummies): each goes where a report with its ciphertext would go."""

    def __init__(self, report: Report, places: int, keys: UInt64Array) -> None:
        self._report = report
        self._places = places
        self._keys = keys

    def process(self, block: bytes) -> Iterator[tuple[int, bytes]]:
        octets = np.frombuffer(block, dtype=np.uint8).reshape(-1, self._report.kept_bytes)
        records = octets.view(f"V{self._report.kept_bytes}").reshape(-1)
        yield from split(records, tags(octets, self._keys), self._places)


@with_input_types(bytes)
@with_output_types(tuple[int, bytes], claims=tuple[int, bytes], counts=tuple[str, int])
class Separate(_InPlaces):
    """Takes blocks of envelopes; yields (place, sealed reports), and (place, claims) to "claims".

    Dropped: reports that name another window, counted in "counts" as "other_window". Dummies name the batch's window,
    so any other window that was handed on would show that a report is no dummy.

    Times and addresses are dropped here, and after this step no record holds both a ciphertext and a token. Equal
    ciphertexts go to the same place, and all claims of a client go to the same place. `keys` are for the tags of
    ciphertexts, and for the tags of client tokens, which only spread the claims. `meets`: the windows in which copies
    are compared; None: each batch by itself.
    """

    def __init__(
        self, report: Report, places: int, keys: tuple[UInt64Array, UInt64Array], meets: WindowFn | None = None
    ) -> None:
        super().__init__(report, places, meets)
        self._keys = keys

    def process(self, block: bytes, window: BoundedWindow = beam.DoFn.WindowParam) -> Iterator[Any]:
        yield from self._begin(window)
        met = tag_keys_of(self._keys[0], meeting(window, self._meets))
        sealed, claims = strip(block, self._report, met)
        if others := len(block) // envelope_dtype(self._report.bytes).itemsize - len(claims):
            yield TaggedOutput("counts", rejected("other_window", others))
        octets = as_octets(claims)
        of_ciphertext = np.ascontiguousarray(octets[:, TOKEN_BYTES:]).view("<u4")
        of_client = tags(octets[:, :TOKEN_BYTES], tag_keys_of(self._keys[1], window))
        yield from split(sealed, of_ciphertext, self._places)
        for part in split(claims, of_client, self._places):
            yield TaggedOutput("claims", part)


def strip(block: bytes, report: Report, keys: UInt64Array) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the reports of a block of envelopes, [n], and their claims, CLAIM[n], without times and addresses.

    With noise, reports that name another window are left out, and of the others their window.

    Args:
        keys: for the tags of ciphertexts.
    """
    envelopes = np.frombuffer(block, dtype=envelope_dtype(report.bytes))
    octets, reports = as_octets(envelopes), envelopes["sealed"]
    if report.begins is not None:
        named = octets[:, -report.bytes : -report.kept_bytes]
        mine = (named == np.frombuffer(window_octets(report.begins), dtype=np.uint8)).all(axis=1)
        envelopes, octets = envelopes[mine], octets[mine]
        reports = np.ascontiguousarray(octets[:, -report.kept_bytes :]).view(f"S{report.kept_bytes}").reshape(-1)
    claims = np.empty(len(envelopes), dtype=CLAIM)
    claims["client_token"] = envelopes["client_token"]
    claims["tag"] = as_records(tags(octets[:, -report.box_bytes :], keys))
    return reports, claims
