"""The permutation: an order of all sealed reports that reveals nothing about their arrival.

The shard of a report is a keyed hash of its ciphertext, under keys drawn for the run, and the order within each shard
is uniformly random. The output is therefore a random function of the set of kept ciphertexts: its distribution does not
depend on their senders, times, order or files. `beam.Reshuffle` does not promise a random order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from io import BytesIO
from typing import Any

import apache_beam as beam
import numpy as np
import numpy.typing as npt
from apache_beam.pvalue import TaggedOutput
from apache_beam.transforms.window import BoundedWindow
from apache_beam.typehints import with_input_types, with_output_types

from hushcount.arrays import UInt64Array
from hushcount.randomness import SystemWords, Words, permutation
from hushcount.reasons import DUMMIES, rejected
from hushcount.strata import STRATUM_BYTES, stratum_numbers, stratum_octets
from hushcount.wire.equality import first_of_equal, in_others
from hushcount.wire.tags import TAG_BYTES, as_octets, as_records, tags
from shuffler.separate import NUMBER, Report, tag_keys_of

_CHUNK = 1 << 12
IN_STRATUM = "in_stratum_"
"""IN_STRATUM with the number of a public stratum is the name of a count: accepted reports of this stratum."""
LOST_TO = "lost_to_"
"""LOST_TO with an earlier batch's number is the name of a count: copies of reports that the earlier batch forwards."""


@with_input_types(tuple[int, dict[str, Iterable[bytes]]])
@with_output_types(tuple[tuple[int, int], bytes], counts=tuple[int, tuple[str, int]])
class MixShard(beam.DoFn):
    """Takes (shard, {"sealed": blocks, "refused": tags, "released": tags}); yields ((batch, shard), block of reports).

    Each input block begins with the number of its batch. A batch's kept reports are in uniformly random order. With
    noise, "dummies" has blocks of dummies, and reports and dummies together are in the order of their ciphertexts.
    "released", if present, holds the tags of reports that earlier batches forwarded, and no batch here forwards a copy
    of these reports. If several batches here hold copies of a report, only the first batch that may forward the report
    forwards it.

    A retried or replayed upload is byte-identical to the original, but two honest reports are never equal. Copies are
    dropped after the cap, when reports have no token. Equal ciphertexts are then interchangeable, so a replay under
    another client's token can never displace the original, whenever the replay came.

    Tags decide which reports the cap refused and which were released. Among n reports and e released reports, the
    probability that two different reports have equal tags is at most n (n/2 + e) 2**-128. One report is then lost, and
    counted as dropped (docs/mathematics.md section 10).

    Dropped: reports over the cap, which an earlier step counted; and copies, counted as "duplicate" in "counts", with
    elements (batch, (name, number)). Copies are stored nowhere, because a list of them would show which reports were
    retried. `lost_to_N` counts the duplicates that are copies of reports of the earlier batch N. If batch N then
    forwards nothing, these reports are lost.
    """

    def __init__(self, report: Report, keys: UInt64Array) -> None:
        self._report = report
        self._keys = keys

    def process(
        self, element: tuple[int, Mapping[str, Iterable[bytes]]], window: BoundedWindow = beam.DoFn.WindowParam
    ) -> Iterator[Any]:
        shard, met = element
        keys = tag_keys_of(self._keys, window)
        batches = by_batch(met["sealed"], self._report.kept_bytes)
        dummies = by_batch(met.get("dummies", ()), self._report.kept_bytes)
        refused = by_batch(met["refused"], TAG_BYTES)
        none = joined((), TAG_BYTES)
        released = [none, *by_batch(met.get("released", ()), TAG_BYTES).values()]
        forwarded: dict[int, npt.NDArray[np.bytes_]] = {}
        for number in sorted(batches):
            sealed, over = in_strata(batches.pop(number), self._report), refused.pop(number, none)
            before = np.concatenate([*released, *forwarded.values()])
            # Tags cost 0.15 us a report, so they are made only if there are other reports to compare with.
            compared = len(over) or len(before) or batches
            boxes = boxes_of(sealed, self._report)
            of_reports = tagged(boxes if compared else boxes[:0], keys)
            if len(over):
                stays = allowed(of_reports, over)
                sealed, boxes, of_reports = sealed[stays], boxes[stays], of_reports[stays]
            fresh = first_of_equal(boxes)
            if len(before):
                copies = in_others(of_reports[fresh], before)
                for earlier, theirs in forwarded.items() if copies.any() else ():
                    if lost := int(in_others(of_reports[fresh[copies]], theirs).sum()):
                        yield TaggedOutput("counts", (number, (f"{LOST_TO}{earlier}", lost)))
                fresh = fresh[~copies]
            if batches:
                forwarded[number] = of_reports[fresh]
            # This frees memory for the block below.
            del of_reports, before, boxes
            if self._report.begins is not None:
                of_mix = dummies.pop(number, joined((), self._report.kept_bytes))
                # A repetition must write the same bytes, and the order of ciphertexts tells nothing of their arrival.
                yield (number, shard), np.sort(np.concatenate([sealed[fresh], of_mix])).tobytes()
                yield TaggedOutput("counts", (number, (DUMMIES, len(of_mix))))
            else:
                yield (number, shard), in_order(sealed, permuted(fresh, SystemWords()))
            yield TaggedOutput("counts", (number, ("accepted", len(fresh))))
            for stratum, reports in counted_in_strata(sealed[fresh], self._report).items():
                yield TaggedOutput("counts", (number, (f"{IN_STRATUM}{stratum}", reports)))
            if len(fresh) < len(sealed):
                yield TaggedOutput("counts", (number, rejected("duplicate", len(sealed) - len(fresh))))


def by_batch(blocks: Iterable[bytes], length: int) -> dict[int, npt.NDArray[np.bytes_]]:
    """Return the records of each batch, S[n], from blocks that begin with the batch's number."""
    parts: dict[int, list[memoryview]] = {}
    for block in blocks:
        parts.setdefault(NUMBER.unpack_from(block)[0], []).append(memoryview(block)[NUMBER.size :])
    # `pop` frees each batch's blocks once they are joined.
    return {number: joined(parts.pop(number), length) for number in sorted(parts)}


def in_strata(records: npt.NDArray[np.bytes_], report: Report) -> npt.NDArray[np.bytes_]:
    """Return reports, S[n], by their public stratum, so that of copies that of the first stratum stays.

    A stratum that the campaign does not have counts as the last one, "other" on all axes.
    """
    if report.strata == 1 or not len(records):
        return records
    octets = as_octets(records).copy()
    strata = np.minimum(stratum_numbers(octets), report.strata - 1)
    octets[:, :STRATUM_BYTES] = stratum_octets(strata)
    order = np.argsort(strata, kind="stable")
    return octets[order].view(records.dtype).reshape(-1)


def boxes_of(records: npt.NDArray[np.bytes_], report: Report) -> npt.NDArray[np.bytes_]:
    """Return the boxes of reports of S[n], without their strata."""
    if report.strata == 1:
        return records
    return np.ascontiguousarray(as_octets(records)[:, STRATUM_BYTES:]).view(f"S{report.box_bytes}").reshape(-1)


def counted_in_strata(records: npt.NDArray[np.bytes_], report: Report) -> dict[int, int]:
    """Return how many reports of S[n] each public stratum has; none if there is only one stratum."""
    if report.strata == 1:
        return {}
    strata, counts = np.unique(stratum_numbers(as_octets(records)), return_counts=True)
    return dict(zip(strata.tolist(), counts.tolist(), strict=True))


def joined(blocks: Iterable[bytes | memoryview], length: int) -> npt.NDArray[np.bytes_]:
    """Return the records of all blocks, S[n], each of this length."""
    return np.frombuffer(b"".join(blocks), dtype=f"S{length}")


def tagged(sealed: npt.NDArray[np.bytes_], keys: UInt64Array) -> npt.NDArray[np.bytes_]:
    """Return S16[n], the tags of the reports of S[n]."""
    return as_records(tags(as_octets(sealed), keys))


def allowed(of_reports: npt.NDArray[np.bytes_], refused: npt.NDArray[np.bytes_]) -> npt.NDArray[np.intp]:
    """Return the indices of the reports that are not refused.

    `of_reports`, S16[n], holds the tags of all reports; `refused`, S16[r], holds a tag once for each refused report.
    """
    stays = np.ones(len(of_reports), dtype=np.bool_)
    named = np.flatnonzero(in_others(of_reports, refused))
    _, tag = np.unique(np.concatenate([refused, of_reports[named]]), return_inverse=True)
    times = np.bincount(tag[: len(refused)], minlength=tag.max(initial=-1) + 1)
    tag = tag[len(refused) :]
    order = np.argsort(tag, kind="stable")
    copy = np.arange(len(order)) - np.searchsorted(tag[order], tag[order])
    stays[named[order[copy < times[tag[order]]]]] = False
    return np.flatnonzero(stays)


def permuted(records: npt.NDArray[np.intp], words: Words) -> npt.NDArray[np.intp]:
    """Return the elements of an array in uniformly random order."""
    return records[permutation(len(records), words)]


def in_order(sealed: npt.NDArray[np.bytes_], rows: npt.NDArray[np.intp]) -> bytes:
    """Return the reports of these rows in one block; memory holds this block only once, besides S[n]."""
    block = BytesIO()
    for start in range(0, len(rows), _CHUNK):
        block.write(sealed[rows[start : start + _CHUNK]].tobytes())
    return block.getvalue()
