"""Open the pairs that the auxiliary server released, and believe a value only if its hash is that of its bin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import apache_beam as beam
from apache_beam.pvalue import TaggedOutput

from hushcount.discovery.pairs import HASH_BYTES, DiscoveryFormat
from hushcount.items import may_be_item
from hushcount.reasons import Counted
from hushcount.wire.sealing import Sealer
from keys.private import PrivateKey
from keys.store import KeyReference


class Reveal(beam.DoFn):
    """Released pairs in, discovered values out.

    A pair is a bin's hash and its sealed value. The value is believed only if it opens, is of this campaign, has the
    bin's hash, and makes the same pair at an honest client: a forged pair has a bin of its own and reveals nothing.

    Counted in "counts": accepted; unverified, a pair that no honest client makes; nothing, a bin of reports without a
    value; no_item, a value that cannot be an item, because it would break the lines of a table.
    """

    def __init__(self, key: KeyReference, form: DiscoveryFormat) -> None:
        self._reference = key
        self._form = form

    def setup(self) -> None:
        self._key = self._reference.read()

    def process(self, record: bytes) -> Iterator[Any]:
        reason, value = reveal(self._key, self._form, record)
        yield TaggedOutput("counts", (reason, 1))
        if value is not None:
            yield value


def reveal(key: PrivateKey, form: DiscoveryFormat, record: bytes) -> tuple[Counted, str | None]:
    """Return ("accepted", value), or the reason of a refusal and None, for one released pair."""
    bin_hash, sealed = record[:HASH_BYTES], record[HASH_BYTES:]
    plain = key.open(sealed)
    if plain is None or not plain.startswith(form.binding):
        return "unverified", None
    try:
        value = form.unpad(plain[len(form.binding) :])
    except ValueError:
        return "unverified", None
    if value is None:
        return "nothing", None
    honest = Sealer(key.public_key).seal_alike(plain, form.hash_key)
    if form.hash(value) != bin_hash or honest != sealed:
        return "unverified", None
    return ("accepted", value) if may_be_item(value) else ("no_item", None)
