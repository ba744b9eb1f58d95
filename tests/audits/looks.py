"""What the parties see of reports: the analyzer all that it opens, the shuffler lengths alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hushcount.arrays import UInt64Array
from hushcount.campaigns.dictionary import items_of
from hushcount.client import Client
from hushcount.many_clients import ManyClients
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.responders.interval import Interval
from hushcount.wire.sealing import SEAL_BYTES, Octets
from keys.private import PrivateKey
from tests.audits.auditor import Looks
from tests.support.enumeration import repeated

_AT_ONCE = 1 << 17
_FEW_BITS = 12


def opened(client: Client | ManyClients, key: PrivateKey, value: str, count: int) -> Octets:
    """Return the wire bytes of so many reports of a value: sent by the client, opened by the analyzer."""
    binding = np.frombuffer(client.campaign.binding("reports"), dtype=np.uint8)
    plain, opened, _ = key.open_rows(client.reports([value] * count))
    assert opened.all()
    assert (plain[:, : len(binding)] == binding).all()
    return plain[:, len(binding) :]


def drawn(client: ManyClients, value: str, count: int) -> Octets:
    """Return the same bytes of reports that were made by the client's own step but not sealed: 100 us a report less."""
    (item,) = items_of(client.campaign.require_frequency(), client.dictionary, [value])
    return client._drawn(repeated(int(item), count))


def audited(client: ManyClients, values: Sequence[str], count: int) -> list[Looks]:
    """Return the analyzer's looks at so many unsealed reports of each of two values."""
    return [joined([seen(client, values, drawn(client, value, part)) for part in parts(count)]) for value in values]


def parts(count: int) -> list[int]:
    """Return sizes that add up to the count, so that memory is bounded."""
    return [min(_AT_ONCE, count - start) for start in range(0, count, _AT_ONCE)]


def joined(looks: Sequence[Looks]) -> Looks:
    """Return the looks at several parts as one."""
    return {name: np.concatenate([part[name] for part in looks]) for name in looks[0]}


def seen(client: Client | ManyClients, values: Sequence[str], packed: Octets) -> Looks:
    """Return every look that the analyzer has at these reports, when it suspects two values."""
    mechanism = client.campaign.require_frequency()
    reports, valid = mechanism.unpack(packed)
    assert valid.all()
    first, second = items_of(mechanism, client.dictionary, values)
    loss = mechanism.log_prob(reports, int(first)) - mechanism.log_prob(reports, int(second))
    looks = {"likelihood": np.round(loss * 1e6).astype(np.int64)}
    if mechanism.report_bits <= _FEW_BITS:
        places = 256 ** np.arange(packed.shape[1], dtype=np.int64)
        looks["whole report"] = packed.astype(np.int64) @ places
    if isinstance(mechanism.responder, Interval):
        looks["low bits"] = _low_bits(
            mechanism,
            reports["start"].astype(np.uint64),
            mechanism.encoder.cell(reports, repeated(int(first), len(reports))),
        )
    return looks


def lengths(reports: Sequence[bytes]) -> Looks:
    """Return what the shuffler sees of sealed reports: how long they are."""
    return {"length": np.array([len(report) for report in reports], dtype=np.int64)}


def wire_lengths(packed: Sequence[bytes]) -> Looks:
    """Return the lengths that packed reports have when they are sealed."""
    return lengths([bytes(len(report) + SEAL_BYTES) for report in packed])


def _low_bits(mechanism: Mechanism, starts: UInt64Array, cells: UInt64Array) -> np.ndarray:
    """Return how often, up to 8 times, 2 divides the way from a window's start to a cell: what floats round away."""
    width = np.uint64(mechanism.responder.width)
    way = (cells + width - starts) % width
    return np.sum([way % np.uint64(1 << power) == 0 for power in range(1, 9)], axis=0).astype(np.int64)
