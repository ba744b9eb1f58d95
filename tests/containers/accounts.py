"""What became of every report that a deployment acknowledged, by the `status` of its parties."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.containers.deployment import Site

COPIES = "duplicate"
"""Why the shuffler drops what a client sent again because it had no answer."""


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


def account_of(site: Site) -> dict[str, Account]:
    """Return the account of each stream."""
    seen = {party: site.status(party) for party in ("shuffler", "aux-server", "analyzer")}
    return {stream: _account(seen, stream) for stream in LAST}


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


def reconciled(
    site: Site, acknowledged: Mapping[str, int], dropped: Counter[str], seconds: float
) -> dict[str, Account]:
    """Wait until everything that was acknowledged is settled; check that each report is, once, and all numbers agree.

    Args:
        acknowledged: different reports, by stream.
        dropped: why reports of the stream `reports` must have been dropped.
    """
    end = time.monotonic() + seconds
    while True:
        found = account_of(site)
        if all(found[stream].settled >= number for stream, number in acknowledged.items()):
            break
        assert time.monotonic() < end, f"acknowledged {acknowledged}, settled {found}\n{site.logs()}"
        time.sleep(1.0)
    for stream, account in found.items():
        assert account.settled == acknowledged[stream], (acknowledged, found)
        assert account.stored == acknowledged[stream] + account.copies, (acknowledged, found)
    assert found["reports"].dropped == dropped
    assert not found["discovery"].dropped
    for party in ("shuffler", "aux-server", "analyzer"):
        status = site.status(party)
        assert status["differences"] == [], status
        assert status["waiting"] == [], status
    windows = site.status("shuffler")["windows"]
    assert {state for window in windows for state in window["states"]} == {"batched"}, windows
    return found
