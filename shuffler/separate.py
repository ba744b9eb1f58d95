"""Part senders from reports, as the first step; and the keys of each window, under which later steps work.

Each batch is in an engine's window of its own, which its number names; copies of a report meet in a window that may
hold several batches. A window's keys derive from the keys of the run, so that those of one window are of no use in the
next. If a run has one batch, as in `hushcount job shuffle`, it is in the global window, and the keys are the run's own.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from typing import Any

import apache_beam as beam
import numpy as np
import numpy.typing as npt
from apache_beam.pvalue import TaggedOutput
from apache_beam.transforms.window import BoundedWindow, IntervalWindow, WindowFn
from apache_beam.typehints import with_input_types, with_output_types

from hushcount.arrays import UInt64Array
from hushcount.collection.envelopes import TOKEN_BYTES, envelope_dtype
from hushcount.wire.tags import TAG_BYTES, as_records, split, tags

CLAIM = np.dtype([("client_token", f"S{TOKEN_BYTES}"), ("tag", f"S{TAG_BYTES}")])
"""A claim: a client sent the ciphertext with this tag. The cap needs to know no more."""
_SPAN = struct.Struct("<qq")
NUMBER = struct.Struct("<q")
"""The number of a batch, before a block of it where batches meet."""


def tag_keys_of(keys: UInt64Array, window: BoundedWindow) -> UInt64Array:
    """Return a window's keys of tags, in the shape of the run's."""
    derived = key_of(keys.astype("<u8").tobytes(), window)
    return np.frombuffer(derived, dtype="<u8").astype(np.uint64).reshape(keys.shape)


def key_of(key: bytes, window: BoundedWindow) -> bytes:
    """Return a window's key, as long as the run's: SHAKE-256 of that and the window, so that a retry has the same."""
    if not isinstance(window, IntervalWindow):
        return key
    span = _SPAN.pack(window.start.micros, window.end.micros)
    return hashlib.shake_256(span + key).digest(len(key))


def number_of(window: BoundedWindow) -> int:
    """Return the number of the batch in a window: the second in which it begins; 0 if a run has one batch."""
    return window.start.seconds() if isinstance(window, IntervalWindow) else 0


def meeting(window: BoundedWindow, meets: WindowFn | None) -> BoundedWindow:
    """Return the window in which copies of a batch's reports meet; without `meets` its own."""
    if meets is None:
        return window
    (found,) = meets.assign(WindowFn.AssignContext(window.start))
    return found


@with_input_types(tuple[int, bytes])
@with_output_types(tuple[int, bytes])
class Numbered(beam.DoFn):
    """(place, block) of one batch in, (place, number of the batch and block) out."""

    def process(
        self, element: tuple[int, bytes], window: BoundedWindow = beam.DoFn.WindowParam
    ) -> Iterator[tuple[int, bytes]]:
        yield element[0], NUMBER.pack(number_of(window)) + element[1]


class _InPlaces(beam.DoFn):
    """Begins every bundle's part of a window with all places, in order and empty.

    Engines may work on places in the order of their first appearance, and the times at which shards are written would
    then show where the first reports went.
    """

    def __init__(self, sealed_bytes: int, places: int, meets: WindowFn | None) -> None:
        self._sealed_bytes = sealed_bytes
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
    """Blocks of earlier forwarded reports in; (place, their tags) out, where their copies go too.

    No ciphertext of them travels: `MixShard` says what that costs. `keys` are of the tags of ciphertexts.
    """

    def __init__(self, sealed_bytes: int, places: int, keys: UInt64Array, meets: WindowFn | None = None) -> None:
        super().__init__(sealed_bytes, places, meets)
        self._keys = keys

    def process(self, block: bytes, window: BoundedWindow = beam.DoFn.WindowParam) -> Iterator[tuple[int, bytes]]:
        yield from self._begin(window)
        octets = np.frombuffer(block, dtype=np.uint8).reshape(-1, self._sealed_bytes)
        tagged = tags(octets, tag_keys_of(self._keys, meeting(window, self._meets)))
        yield from split(as_records(tagged), tagged, self._places)


@with_input_types(bytes)
@with_output_types(tuple[int, bytes], claims=tuple[int, bytes])
class Separate(_InPlaces):
    """Blocks of envelopes in; (place, sealed reports) out, and (place, claims) to "claims".

    Times and addresses end here, and from here on no ciphertext is beside a token. Equal ciphertexts go to one place,
    and so do the claims of one client. `keys` are of the tags of ciphertexts, and of those of client tokens, which only
    spread the claims. `meets`: the windows in which copies meet; None: each batch by itself.
    """

    def __init__(
        self, sealed_bytes: int, places: int, keys: tuple[UInt64Array, UInt64Array], meets: WindowFn | None = None
    ) -> None:
        super().__init__(sealed_bytes, places, meets)
        self._keys = keys

    def process(self, block: bytes, window: BoundedWindow = beam.DoFn.WindowParam) -> Iterator[Any]:
        yield from self._begin(window)
        met = tag_keys_of(self._keys[0], meeting(window, self._meets))
        sealed, claims = strip(block, self._sealed_bytes, met)
        octets = claims.view(np.uint8).reshape(len(claims), claims.itemsize)
        of_ciphertext = np.ascontiguousarray(octets[:, TOKEN_BYTES:]).view("<u4")
        of_client = tags(octets[:, :TOKEN_BYTES], tag_keys_of(self._keys[1], window))
        yield from split(sealed, of_ciphertext, self._places)
        for part in split(claims, of_client, self._places):
            yield TaggedOutput("claims", part)


def strip(block: bytes, sealed_bytes: int, keys: UInt64Array) -> tuple[npt.NDArray[np.bytes_], np.ndarray[Any, Any]]:
    """Return the sealed reports of a block of envelopes, S[n], and their claims, CLAIM[n], without times and addresses.

    `keys` are of the tags of ciphertexts.
    """
    envelopes = np.frombuffer(block, dtype=envelope_dtype(sealed_bytes))
    octets = envelopes.view(np.uint8).reshape(len(envelopes), envelopes.itemsize)
    claims = np.empty(len(envelopes), dtype=CLAIM)
    claims["client_token"] = envelopes["client_token"]
    claims["tag"] = as_records(tags(octets[:, -sealed_bytes:], keys))
    return envelopes["sealed"], claims
