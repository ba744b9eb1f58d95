"""Open what the auxiliary server released, and believe a value only if its hash is that of its bin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import apache_beam as beam
from apache_beam.pvalue import TaggedOutput

from hushcount.discovery import HASH_BYTES, DiscoveryFormat
from keys.private import PrivateKey
from keys.store import KeyReference


class Reveal(beam.DoFn):
    """Released records in, found values out.

    A record is a bin's hash and a few sealed values drawn from it. One value that opens, is of this campaign and has
    the bin's hash is enough: a poisoned ciphertext among them does not lose the item, and cannot forge one.

    Counted in "counts": accepted; unverified, a bin none of whose values held; nothing, a kept bin that held a report
    with no value.

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


def reveal(key: PrivateKey, form: DiscoveryFormat, record: bytes) -> tuple[str, str | None]:
    """Return ("accepted", value), ("nothing", None) or ("unverified", None) for one released record."""
    bin_hash, sealed = record[:HASH_BYTES], record[HASH_BYTES:]
    reason = "unverified"
    for start in range(0, len(sealed), form.sealed_value_bytes):
        plain = key.open(sealed[start : start + form.sealed_value_bytes])
        if plain is None or not plain.startswith(form.binding):
            continue
        try:
            value = form.unpad(plain[len(form.binding) :])
        except ValueError:
            continue
        if value is None:
            reason = "nothing"
        elif form.hash(value) == bin_hash:
            return "accepted", value
    return reason, None
