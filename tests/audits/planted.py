"""Clients with bugs planted on purpose, each a way in which real clients have leaked; the audits must catch them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hushcount.arrays import UInt64Array
from hushcount.many_clients import ManyClients
from hushcount.oracles.catalogue import build
from hushcount.oracles.encoders.affine import Affine
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.responders.interval import Interval
from hushcount.oracles.responders.subset import Subset
from hushcount.randomness import SystemWords, below, uniform
from hushcount.wire.sealing import Octets
from tests.support.words import SeededWords


@dataclass(frozen=True)
class Overspending(ManyClients):
    """Spends `factor` times what the campaign states."""

    factor: float = 1.3

    def _drawn(self, items: UInt64Array) -> Octets:
        part = self.campaign.mechanism
        assert part is not None
        stated = self.campaign.require_frequency()
        louder = build(part.name, self.factor * part.epsilon, stated.encoder.domain, part.parameters)
        return stated.pack(louder.encode(items, SystemWords()))


@dataclass(frozen=True)
class FloatingPoint(ManyClients):
    """Multiplies a uniform double with the length of a window of 2**59 cells: the lowest bits come out zero."""

    def _drawn(self, items: UInt64Array) -> Octets:
        mechanism, words = self.campaign.require_frequency(), SystemWords()
        responder = mechanism.responder
        assert isinstance(responder, Interval)
        reports = np.zeros(len(items), dtype=mechanism.report)
        mechanism.encoder.draw(reports, words)
        cells = mechanism.encoder.cell(reports, items)
        chance = (words.words(len(items)) >> np.uint64(11)).astype(np.float64) * 2.0**-53
        kept = below(responder.keep, len(items), words)
        holding = cells + np.uint64(responder.width) - (chance * responder.size).astype(np.uint64)
        missing = cells + np.uint64(1) + (chance * (responder.width - responder.size)).astype(np.uint64)
        reports["start"] = np.where(kept, holding, missing) % np.uint64(responder.width)
        return mechanism.pack(reports)


@dataclass(frozen=True)
class FixedFunction(ManyClients):
    """Forgets to draw its hash function."""

    def _drawn(self, items: UInt64Array) -> Octets:
        return _with_slopes(self.campaign.require_frequency(), items, np.ones_like(items))


@dataclass(frozen=True)
class FunctionOfValue(ManyClients):
    """Draws its hash function from a generator that is seeded by the value."""

    def _drawn(self, items: UInt64Array) -> Octets:
        mechanism = self.campaign.require_frequency()
        encoder = mechanism.encoder
        assert isinstance(encoder, Affine)
        return _with_slopes(mechanism, items, items % np.uint64(encoder.slopes) + np.uint64(1))


@dataclass(frozen=True)
class SeededByDay(ManyClients):
    """Seeds its generator with the date, anew at every call."""

    def _drawn(self, items: UInt64Array) -> Octets:
        mechanism = self.campaign.require_frequency()
        return mechanism.pack(mechanism.encode(items, SeededWords(20_261_121)))


@dataclass(frozen=True)
class BiasedSubset(ManyClients):
    """Draws the subset from all cells, its own among them, and puts its own in with probability p besides."""

    def _drawn(self, items: UInt64Array) -> Octets:
        mechanism, words = self.campaign.require_frequency(), SystemWords()
        responder = mechanism.responder
        assert isinstance(responder, Subset)
        rows = np.arange(len(items))
        order = np.argsort(words.words(len(items) * responder.width).reshape(len(items), -1), axis=1)
        cells = order[:, : responder.size].astype(np.uint64)
        absent = below(responder.keep, len(items), words) & ~(cells == items[:, None]).any(axis=1)
        place = uniform(responder.size, len(items), words).astype(np.intp)
        cells[rows[absent], place[absent]] = items[absent]
        reports = np.zeros(len(items), dtype=mechanism.report)
        reports["cells"] = np.sort(cells, axis=1)
        return mechanism.pack(reports)


def unpadded_discovery(client: ManyClients, value: str) -> bytes:
    """Return a discovery report of a client that pads no value."""
    part = client.campaign.discovery
    assert part is not None
    bare = part.model_copy(update={"max_value_bytes": len(value.encode())})
    campaign = client.campaign.model_copy(update={"discovery": bare})
    return replace(client, campaign=campaign).discovery_report(value)


def unpadded_frequency(packed: Octets) -> list[bytes]:
    """Return the wire bytes of a client that leaves the zeros at the end of each report away."""
    return [row.tobytes().rstrip(b"\0") for row in packed]


def _with_slopes(mechanism: Mechanism, items: UInt64Array, slopes: UInt64Array) -> Octets:
    words = SystemWords()
    reports = np.zeros(len(items), dtype=mechanism.report)
    mechanism.encoder.draw(reports, words)
    reports["slope"] = slopes
    mechanism.responder.respond(reports, mechanism.encoder.cell(reports, items), words)
    return mechanism.pack(reports)
