"""Open what the auxiliary server released, and believe a value only if its hash is that of its bin."""

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
    """Released records in, found values out.

    A record is a bin's hash and its sealed value, believed only if it opens, is of this campaign, has the bin's hash,
    and is the pair that an honest client makes of it: a forged pair is a bin of its own and reveals nothing.

    Counted in "counts": accepted; unverified, a pair that no honest client makes; nothing, a bin of a report with no
    value; no_item, a value that may be no item: it would break the lines of a table, or be lost in them.

    Args:
        key: reference to the analyzer's private key, opened in `setup`.
        form: the layout of the campaign's discovery reports.
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
    """Return ("accepted", value), or the reason why there is none and None, for one released record."""
    bin_hash, sealed = record[:HASH_BYTES], record[HASH_BYTES:]
    plain = key.open(sealed)
    if plain is None or not plain.startswith(form.binding):
        return "unverified", None
    padded = plain[len(form.binding) :]
    try:
        value = form.unpad(padded)
    except ValueError:
        return "unverified", None
    if value is None:
        return "nothing", None
    honest = Sealer(key.public_key).seal_alike(plain, form.hash_key)
    if form.hash(value) != bin_hash or honest != sealed:
        return "unverified", None
    if not may_be_item(value):
        return "no_item", None
    return "accepted", value
