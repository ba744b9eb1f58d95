"""Dummies: reports that a mix makes, so that the number of reports of each item has noise (docs/adr/0061).

A dummy has the form of a client's report: the same length, the same fields, and the same law of every field.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hushcount.arrays import Octets, UInt64Array
from hushcount.draws import DerivedWords
from hushcount.maths.count_laws import CountLaw
from hushcount.maths.drawn_noise import count_noise
from hushcount.oracles.mechanism import Mechanism
from hushcount.randomness import Words
from hushcount.threads import available_threads
from hushcount.wire.sealing import Sealer, SealRows, after


@dataclass(frozen=True)
class Layer:
    """A box around a report: what is sealed before the content, and to whom."""

    head: bytes
    public_key: bytes


@dataclass(frozen=True)
class DummyForm:
    """How a mix makes dummies; it holds no secret.

    Attributes:
        mechanism: of the campaign, with noise of the mixes.
        layers: the boxes of a report at this mix, from the inside out.
    """

    mechanism: Mechanism
    layers: tuple[Layer, ...]

    @property
    def law(self) -> CountLaw:
        """The law of the noise: a mix adds its greatest value minus the noise to each item."""
        if self.mechanism.encoder.noise is None:
            raise ValueError("the mechanism has noise of its own, must have noise of the mixes")
        return self.mechanism.encoder.noise.law


def dummies_of(form: DummyForm, items: range, secret: bytes, seal_rows: SealRows) -> Octets:
    """Return uint8[n, L], the dummies of some items, the dummies of an item one after another.

    Args:
        items: the items; the same range always gives the same dummies.
        secret: of the mix's draw.
        seal_rows: seals as libsodium does.

    Randomness: derived from the secret, so that a repetition makes the same dummies, byte for byte, on any number of
    cores.
    """
    words = DerivedWords(secret, f"dummies of {items.start} to {items.stop}".encode())
    numbers = form.law.most - count_noise(form.law, len(items), words)
    rows = packed(form.mechanism, np.repeat(np.arange(items.start, items.stop, dtype=np.uint64), numbers), words)
    for layer in form.layers:
        rows = Sealer(layer.public_key, seal_rows).seal_drawn(after(layer.head, rows), words, available_threads())
    return rows


def packed(mechanism: Mechanism, items: UInt64Array, words: Words) -> Octets:
    """Return uint8[n, report_bytes], the reports of items."""
    return mechanism.pack(mechanism.encode(items, words))
