"""What became of every report that a deployment acknowledged, by the `status` of its parties."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.containers.deployment import Site

COPIES = "duplicate"
"""Why the shuffler drops what a client sent again because it had no answer."""
BELOW = "below_minimum"
"""Why the analyzer drops what it could open of a batch of which it could not open enough."""


@dataclass(frozen=True)
class Account:
    """Where the reports of one stream are.

    Attributes:
        stored: reports in the windows that the shuffler's schedule knows.
        copies: of these, what was stored before.
        counted: what the last hop accepted.
        dropped: what some hop rejected, by reason, without copies.
    """

    stored: int
    copies: int
    counted: int
    dropped: Counter[str]

    @property
    def settled(self) -> int:
        """Reports that are counted, or dropped with a reason."""
        return self.counted + self.dropped.total()


LAST = {"reports": "analyze", "discovery": "release"}
"""The hop that counts each stream's reports; later ones count bins."""


def _account(seen: Mapping[str, dict[str, Any]], stream: str) -> Account:
    shuffled = list(_hops(seen["shuffler"], "shuffle", stream))
    last = list(_hops(seen["analyzer" if stream == "reports" else "aux-server"], LAST[stream], stream))
    dropped: Counter[str] = Counter()
    for hop in (*shuffled, *last):
        dropped.update(hop["rejected"])
    copies = dropped.pop(COPIES, 0)
    stored = sum(window["received"] for window in seen["shuffler"]["windows"] if window["stream"] == stream)
    return Account(stored, copies, sum(hop["accepted"] for hop in last), dropped)


def _hops(status: dict[str, Any], hop: str, stream: str) -> Iterator[dict[str, Any]]:
    return (one for one in status["hops"] if (one["hop"], one["stream"]) == (hop, stream))


def _withheld(hops: Iterator[dict[str, Any]], floor: int) -> Counter[str]:
    """Return what was left of batches that only reports which nobody can open had brought to the minimum."""
    withheld: Counter[str] = Counter()
    for hop in hops:
        if left := hop["rejected"].get(BELOW, 0):
            assert left < floor <= left + hop["rejected"].get("not_opened", 0), hop
            withheld[BELOW] += left
    return withheld


def reconciled(site: Site, dropped: Counter[str]) -> dict[str, Account]:
    """Check that each report that was acknowledged is counted or dropped, once, and that all numbers agree.

    Args:
        dropped: why reports of the stream `reports` must have been dropped.
    """
    seen = {party: site.status(party) for party in ("shuffler", "aux-server", "analyzer")}
    found = {stream: _account(seen, stream) for stream in LAST}
    for stream, account in found.items():
        assert account.settled == site.acknowledged[stream], (site.acknowledged, found)
        assert account.stored == site.acknowledged[stream] + account.copies, (site.acknowledged, found)
    dropped = dropped + _withheld(_hops(seen["analyzer"], "analyze", "reports"), site.campaign.shuffle.minimum_batch)
    assert found["reports"].dropped == dropped, (dropped, found)
    assert not found["discovery"].dropped, found
    for status in seen.values():
        assert status["differences"] == [], status
        assert status["waiting"] == [], status
    windows = seen["shuffler"]["windows"]
    assert {state for window in windows for state in window["states"]} == {"batched"}, windows
    return found
