"""The dummies of a mix in a job: which draw decides them, and the steps that make them (docs/adr/0061)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass

import apache_beam as beam
from apache_beam.pvalue import PCollection
from apache_beam.typehints import with_input_types, with_output_types

from hushcount.campaigns.campaign import Campaign
from hushcount.draws import DerivedWords, Draw
from hushcount.dummies import DummyForm, Layer, dummies_of
from hushcount.window_starts import window_octets

_ITEMS = 1 << 11
"""The items of one block: some megabytes of dummies."""


@dataclass(frozen=True)
class MixDraw:
    """What one mix adds to one batch.

    Attributes:
        draw: decides the dummies, and which reports stay under the cap.
        begins: when the batch's window begins, in seconds since 1970.
    """

    draw: Draw
    begins: int

    @property
    def words(self) -> DerivedWords:
        """Words for the keys of the batch's graph."""
        return DerivedWords(self.draw.opened(), b"graph")


def noise_context(campaign: Campaign, hop: str, begins: int, manifest: str) -> bytes:
    """Return 32 bytes: the digest of everything that determines the dummies of a mix, except its key.

    Args:
        begins: of the batch's window.
        manifest: digest of the contents of all input files of frequency reports.
    """
    data = {"campaign": campaign.fingerprint.hex(), "noise of": hop, "window": begins, "input": manifest}
    return hashlib.blake2b(json.dumps(data, sort_keys=True).encode(), digest_size=32).digest()


def form_of(campaign: Campaign, layered: int | None) -> DummyForm:
    """Return the form of a campaign's dummies.

    Args:
        layered: when the window begins that the layer for the auxiliary server names; None: there is no such layer,
            because the dummies are that server's own.
    """
    binding = campaign.binding("reports")
    # A campaign has one key of each party, which clients used even if it is not valid any more.
    (inner,), outer = campaign.keys.analyzer, campaign.keys.aux_server
    layers = [Layer(binding, bytes.fromhex(inner.key))]
    if layered is not None:
        layers.append(Layer(binding + window_octets(layered), bytes.fromhex(outer[0].key)))
    return DummyForm(campaign.require_frequency(), tuple(layers))


@with_input_types(tuple[int, int])
@with_output_types(bytes)
class MakeDummies(beam.DoFn):
    """Takes (first item, number after the last); yields a block of the dummies of these items.

    The key is opened on the worker. A repetition makes the same bytes.
    """

    def __init__(self, form: DummyForm, draw: Draw, expected: int) -> None:
        self._form = form
        self._draw = draw
        self._expected = expected

    def setup(self) -> None:
        # The import is here, because a shuffler without noise may run without the package `keys`.
        from keys.opening_engines import sealing_for

        self._secret, self._seal_rows = self._draw.opened(), sealing_for(self._expected)

    def process(self, span: tuple[int, int]) -> Iterator[bytes]:
        yield dummies_of(self._form, range(*span), self._secret, self._seal_rows).tobytes()


def add_dummies(pipeline: beam.Pipeline, form: DummyForm, draw: Draw) -> PCollection:
    """Return blocks of the dummies of all items; workers share the items."""
    domain, noise = form.mechanism.encoder.domain or 0, form.mechanism.encoder.noise
    expected = 0 if noise is None else noise.most_dummies(domain)
    spans = [(first, min(first + _ITEMS, domain)) for first in range(0, domain, _ITEMS)]
    return (
        pipeline
        | "spans of items" >> beam.Create(spans)
        | "make dummies" >> beam.ParDo(MakeDummies(form, draw, expected))
    )
