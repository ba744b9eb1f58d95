"""Opens the pairs that the auxiliary server released, and accepts a value only if an honest client makes its pair.

With oblivious names, only the evaluator can make a value's name, so the analyzer asks the evaluator to verify each
value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import apache_beam as beam
from apache_beam.pvalue import TaggedOutput
from apache_beam.transforms.window import BoundedWindow
from apache_beam.typehints import with_input_types, with_output_types

from hushcount.discovery.oblivious import MOST_EVALUATIONS, Ask, evaluations_of
from hushcount.discovery.pairs import HASH_BYTES, DiscoveryFormat, Name, keyed_name, name_of, split_released
from hushcount.items import may_be_item
from hushcount.maths.count_laws import CountLaw
from hushcount.reasons import Counted
from hushcount.wire.sealing import Sealer
from keys.directories import KeyReference
from keys.private import PrivateKey


@with_input_types(bytes)
@with_output_types(tuple[bytes, str], counts=tuple[str, int], unnamed=tuple[bytes, str])
class Reveal(beam.DoFn):
    """Takes released records; yields (record, value) for each record with a discovered value.

    A record begins with a pair: a bin's hash and its sealed value. The value is accepted only if it opens,
    belongs to this campaign, has the bin's hash, and an honest client makes the same pair from it. A forged pair has
    its own bin, so the forged pair does not reveal the value of another pair.

    Without a hash key in `form`, only the evaluator can name values. Then the records that the analyzer's key opens go
    to "unnamed", each with its value, and `verify` counts these records after the evaluator has answered.

    In a campaign with counts the record ends with the shown count. The keep rule never draws a count below the
    threshold, or above the number of the batch's reports plus the greatest noise, so a record with such a count is
    refused.

    Args:
        key: reference to the analyzer's key.
        form: format of the campaign's discovery reports.
        law: law of the noise in the counts; None: records have no count.
        reports: number of discovery reports that the auxiliary server accepted in a window. Without noise, no count
            exceeds this number.

    Counted in "counts":
        accepted: a discovered value.
        unverified: a pair that no honest client makes, or a count that the rule cannot draw.
        nothing: a bin of reports without a value.
        no_item: a value that cannot be an item, because it would break the lines of a table.
    """

    def __init__(
        self,
        key: KeyReference,
        form: DiscoveryFormat,
        law: CountLaw | None = None,
        reports: Callable[[BoundedWindow], int] | int = 0,
    ) -> None:
        self._reference = key
        self._form = form
        self._law = law
        self._reports = reports

    def setup(self) -> None:
        self._key = self._reference.read()

    def process(self, record: bytes, window: BoundedWindow = beam.DoFn.WindowParam) -> Iterator[Any]:
        form, law = self._form, self._law
        reason, value = open_pair(self._key, form, record)
        shown = split_released(record, form, law is not None)[1]
        if law is not None and value is not None and shown is not None:
            reports = self._reports if isinstance(self._reports, int) else self._reports(window)
            if not law.threshold <= shown <= reports + law.most:
                reason, value = "unverified", None
        if value is None:
            yield TaggedOutput("counts", (reason, 1))
        elif not form.hash_key:
            yield TaggedOutput("unnamed", (record, value))
        else:
            reason = judge(form, self._key.public_key, record, value, keyed_name(form, value))
            yield TaggedOutput("counts", (reason, 1))
            if reason == "accepted":
                yield record, value


def open_pair(key: PrivateKey, form: DiscoveryFormat, record: bytes) -> tuple[Counted, str | None]:
    """Return "accepted" and the value in a released pair; or why the pair (it may be forged) is refused, and None."""
    plain = key.open(record[HASH_BYTES : form.pair_bytes])
    if plain is None or not plain.startswith(form.binding):
        return "unverified", None
    try:
        value = form.unpad(plain[len(form.binding) :])
    except ValueError:
        return "unverified", None
    return ("nothing", None) if value is None else ("accepted", value)


def judge(form: DiscoveryFormat, analyzer: bytes, record: bytes, value: str, name: Name) -> Counted:
    """Return "accepted" if an honest client makes this pair from a value with this name, else why it is refused."""
    honest = Sealer(analyzer).seal_alike(form.binding + form.pad(value), name.box_key)
    if name.hash + honest != record[: form.pair_bytes]:
        return "unverified"
    return "accepted" if may_be_item(value) else "no_item"


def verify(
    form: DiscoveryFormat, analyzer: bytes, opened: Sequence[tuple[bytes, str]], ask: Ask, evaluator: bytes
) -> tuple[list[tuple[bytes, str]], Counter[Counted]]:
    """Ask the evaluator for the name of each opened value, blinded; accept a value if an honest client makes its pair.

    Args:
        analyzer: public key of the analyzer.
        opened: released records, each with its value.
        evaluator: public key of the evaluator in the campaign.

    Returns:
        The accepted records with their values; and the number of records by outcome, with the outcomes of `Reveal`.

    Raises:
        Unanswered: the evaluator does not answer, or does not prove its answer.
    """
    found: list[tuple[bytes, str]] = []
    counts: Counter[Counted] = Counter()
    for start in range(0, len(opened), MOST_EVALUATIONS):
        some = opened[start : start + MOST_EVALUATIONS]
        evaluations = evaluations_of([form.input(value) for _, value in some])
        outputs = evaluations.finish(ask(evaluations.blinded), evaluator)
        for (record, value), output in zip(some, outputs, strict=True):
            reason = judge(form, analyzer, record, value, name_of(output))
            counts[reason] += 1
            if reason == "accepted":
                found.append((record, value))
    return found, counts
