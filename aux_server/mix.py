"""Opens the layer around frequency reports, and mixes their boxes with dummies of its own (docs/adr/0061)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import apache_beam as beam
import numpy as np
import numpy.typing as npt
from apache_beam.pvalue import PCollection, TaggedOutput
from apache_beam.typehints import with_input_types, with_output_types

from hushcount.arrays import Octets, UInt64Array
from hushcount.reasons import DUMMIES, rejected
from hushcount.window_starts import WINDOW_BYTES, window_octets
from hushcount.wire.equality import first_of_equal
from hushcount.wire.tags import split, tags
from keys.directories import KeyReference
from keys.opening import Opener, Outcome


@with_input_types(bytes)
@with_output_types(bytes, counts=tuple[str, int], opening=tuple[str, int], dead=tuple[str, bytes])
class OpenLayers(beam.DoFn):
    """Takes blocks of layered reports; yields blocks of their boxes, which only the analyzer opens.

    Dropped reports go to "dead" as (reason, layered reports), and are counted in "counts" as not_opened,
    wrong_campaign, or other_window: a report counts only in the batch of the window that it names. So a shuffler cannot
    hand over one client's reports of many windows as one batch, in which they would share the noise of one.

    The output "opening" has the number of boxes that each engine opened (keys/opening.py).

    Args:
        begins: when the batch's window begins, in seconds since 1970.
        layer_bytes: the length of a layered report.
        boxes: number of reports that the job opens in all, 0 if unknown.
    """

    def __init__(self, key: KeyReference, binding: bytes, begins: int, layer_bytes: int, boxes: int = 0) -> None:
        self._reference = key
        self._window = window_octets(begins)
        self._of_campaign = binding, layer_bytes, boxes

    def setup(self) -> None:
        self._opener = Opener(self._reference.read(), *self._of_campaign)

    def process(self, block: bytes) -> Iterator[Any]:
        boxes, outputs = self._opener.open_block(block, partial(boxes_of, self._window))
        yield boxes.tobytes()
        for tag, value in outputs:
            yield TaggedOutput(tag, value)


def boxes_of(window: bytes, _layered: Octets, content: Octets, outcomes: Octets) -> Octets:
    """Return the boxes of the window's reports, and mark others as OTHER_WINDOW; `Opener.open_block` calls this."""
    named = (content[:, :WINDOW_BYTES] == np.frombuffer(window, dtype=np.uint8)).all(axis=1)
    outcomes[~named & (outcomes == Outcome.ACCEPTED)] = Outcome.OTHER_WINDOW
    return content[outcomes == Outcome.ACCEPTED, WINDOW_BYTES:]


class Mix(beam.PTransform):  # type: ignore[misc]  # apache_beam ships no types
    """Takes a dict of "boxes" and "dummies", blocks of both; gives a dict of `shards` and `counts`.

    Out:
        shards: (shard, boxes and dummies in the order of their ciphertexts).
        counts: copies of boxes were counted as accepted when they were opened, so "accepted" less the copies, and these
            as duplicates; and the number of dummies.

    Args:
        box_bytes: the length of a box.
        places: how many places share the work, and how many shards are written.
        keys: for the tags that spread boxes over places; derived, so that a repetition writes the same shards.
        grouping: as of `shuffler.Shuffle`.
    """

    def __init__(self, box_bytes: int, places: int, keys: UInt64Array, grouping: beam.PTransform | None = None) -> None:
        super().__init__()
        self._box_bytes = box_bytes
        self._places = places
        self._keys = keys
        self._grouping = grouping or beam.CoGroupByKey()

    def expand(self, given: Mapping[str, PCollection]) -> dict[str, PCollection]:
        places = SpreadBoxes(self._box_bytes, self._places, self._keys)
        spread = {name: blocks | f"spread {name}" >> beam.ParDo(places) for name, blocks in given.items()}
        mixed = (
            spread
            | "equal boxes meet" >> self._grouping
            | "mix" >> beam.ParDo(MixBoxes(self._box_bytes)).with_outputs("counts", main="shards")
        )
        return {"shards": mixed.shards, "counts": mixed.counts}


@with_input_types(bytes)
@with_output_types(tuple[int, bytes])
class SpreadBoxes(beam.DoFn):
    """Takes blocks of boxes; yields (place, boxes): equal boxes go to one place."""

    def __init__(self, box_bytes: int, places: int, keys: UInt64Array) -> None:
        self._box_bytes = box_bytes
        self._places = places
        self._keys = keys

    def process(self, block: bytes) -> Iterator[tuple[int, bytes]]:
        octets = np.frombuffer(block, dtype=np.uint8).reshape(-1, self._box_bytes)
        yield from split(_records(block, self._box_bytes), tags(octets, self._keys), self._places)


@with_input_types(tuple[int, dict[str, Iterable[bytes]]])
@with_output_types(tuple[int, bytes], counts=tuple[str, int])
class MixBoxes(beam.DoFn):
    """Takes (place, {"boxes": blocks, "dummies": blocks}); yields (place, both in the order of their ciphertexts).

    Ciphertexts are random, so their order tells nothing of their arrival, and a repetition writes the same bytes.
    """

    def __init__(self, box_bytes: int) -> None:
        self._box_bytes = box_bytes

    def process(self, element: tuple[int, Mapping[str, Iterable[bytes]]]) -> Iterator[Any]:
        place, met = element
        boxes, dummies = (_records(b"".join(met.get(name, ())), self._box_bytes) for name in ("boxes", "dummies"))
        fresh = first_of_equal(boxes)
        yield place, np.sort(np.concatenate([boxes[fresh], dummies])).tobytes()
        yield TaggedOutput("counts", (DUMMIES, len(dummies)))
        if copies := len(boxes) - len(fresh):
            yield TaggedOutput("counts", ("accepted", -copies))
            yield TaggedOutput("counts", rejected("duplicate", copies))


def _records(blocks: bytes, length: int) -> npt.NDArray[np.bytes_]:
    return np.frombuffer(blocks, dtype=f"S{length}")
