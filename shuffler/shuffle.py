"""The shuffler's work on one stream, from envelopes to permuted shards of sealed reports."""

from __future__ import annotations

import apache_beam as beam
from apache_beam.pvalue import PCollection
from apache_beam.transforms.window import WindowFn

from hushcount.collection.envelopes import TOKEN_BYTES
from hushcount.randomness import SystemWords, Words
from hushcount.wire.tags import tag_keys
from shuffler.cap import RefuseOverCap, cap_key
from shuffler.mix import MixShard
from shuffler.separate import Numbered, PlaceDummies, Report, Separate, TagReleased


class Shuffle(beam.PTransform):  # type: ignore[misc]  # apache_beam ships no types
    """Takes blocks of envelopes, or a dict of blocks; gives a dict of collections.

    The dict has "envelopes", and may have "released" reports and "dummies". Released reports were forwarded earlier, so
    no copy of a released report is forwarded. Dummies are forwarded among the reports (docs/adr/0061). Each batch has
    its own window, cap and permutation.

    Out:
        shards: ((batch, shard), sealed reports in random order).
        counts: (reason, number) of the reports that the cap refused.
        mixed: (batch, (reason or "accepted", number)) of all other reports, and of each public stratum the number that
            is accepted, by the name of this count.

    Duplicates and reports over the cap are dropped and counted, and stored nowhere.

    Args:
        report: the form of the stream's reports.
        cap: l, the largest number of reports of one client that are forwarded.
        places: how many places share the work, and how many shards are written.
        grouping: groups the blocks of a place: (place, block) to (place, iterable of blocks), and a dict of such
            collections to (place, dict of iterables); by default the engine's own grouping.
        meets: windows of several batches, in which copies of a report are compared; None: each batch by itself.
        words: draws the keys of the run.

    Privacy: the output is a random function of the set of kept ciphertexts; all metadata was stripped.
    Randomness: the operating system's cryptographic generator. Keys are drawn when the graph is made, so an engine that
        repeats a step sends every report to the same place and makes the same choice under the cap.
    """

    def __init__(
        self,
        report: Report,
        cap: int,
        places: int,
        grouping: beam.PTransform | None = None,
        meets: WindowFn | None = None,
        words: Words | None = None,
    ) -> None:
        super().__init__()
        self._report = report
        self._cap = cap
        self._places = places
        self._grouping = grouping
        self._meets = meets
        self._words = words or SystemWords()

    def expand(self, given: PCollection | dict[str, PCollection]) -> dict[str, PCollection]:
        envelopes = given["envelopes"] if isinstance(given, dict) else given
        words = self._words
        keys = tag_keys(self._report.box_bytes, words), tag_keys(TOKEN_BYTES, words)
        separate = Separate(self._report, self._places, keys, self._meets)
        separated = envelopes | "separate" >> beam.ParDo(separate).with_outputs("claims", "counts", main="sealed")
        refused = (
            separated.claims
            | "a client's claims meet" >> (self._grouping or beam.GroupByKey())
            | "refuse over cap"
            >> beam.ParDo(RefuseOverCap(self._cap, cap_key(words), self._places)).with_outputs("counts", main="tags")
        )
        # The tags are not a side input, because Flink would keep elements of every window until the side input's stream
        # ends.
        meeting = {"sealed": separated.sealed, "refused": refused.tags}
        if isinstance(given, dict) and "dummies" in given:
            place = PlaceDummies(self._report, self._places, keys[0])
            meeting["dummies"] = given["dummies"] | "place dummies" >> beam.ParDo(place)
        if isinstance(given, dict) and "released" in given:
            tag = TagReleased(self._report, self._places, keys[0], self._meets)
            meeting["released"] = given["released"] | "tag released" >> beam.ParDo(tag)
        mixed = (
            {name: self._of_all(part, name) for name, part in meeting.items()}
            | "equal ciphertexts meet" >> (self._grouping or beam.CoGroupByKey())
            | "mix" >> beam.ParDo(MixShard(self._report, keys[0])).with_outputs("counts", main="shards")
        )
        counts = (separated.counts, refused.counts) | "counts before the mix" >> beam.Flatten()
        return {"shards": mixed.shards, "counts": counts, "mixed": mixed.counts}

    def _of_all(self, part: PCollection, name: str) -> PCollection:
        numbered = part | f"batches of {name}" >> beam.ParDo(Numbered())
        return numbered if self._meets is None else numbered | f"{name} of all" >> beam.WindowInto(self._meets)
