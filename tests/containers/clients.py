"""Clients that post through whatever happens: by the exchange and the judgement of the client library.

Each report is sent with one token and in the same bytes until the collector acknowledges it, as a `Sender` does, only
without its pauses of minutes. So every report is acknowledged in the end, and some are stored twice.
"""

from __future__ import annotations

import secrets
import ssl
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue

from hushcount.campaigns.campaign import Stream
from hushcount.delivery.exchange import NoAnswer, post_octets
from hushcount.delivery.site import Site as Address
from hushcount.delivery.verdicts import verdict
from tests.containers.deployment import ITEMS, Site

_PAUSE_SECONDS = 0.3
_EXCHANGE_SECONDS = 5.0
_THREADS = 4
UNLISTED = "nobody listed this"
"""What each client sends besides a value that is listed: enough of them reveal it."""


@dataclass
class Clients:
    """Clients at work in threads of their own.

    Attributes:
        acknowledged: reports that the collector acknowledged, by stream.
        again: attempts that were repeated, by the reason.
        lost: reports that the collector refused for good, by reason: there must be none.
    """

    address: Address
    campaign: str
    fingerprint: str
    waiting: SimpleQueue[tuple[Stream, str, bytes]]
    total: int
    seconds: float
    acknowledged: Counter[str] = field(default_factory=Counter)
    again: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)
    _threads: list[threading.Thread] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self) -> Clients:
        """Begin to post, evenly over the seconds."""
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(_THREADS)]
        for thread in self._threads:
            thread.start()
        return self

    @property
    def done(self) -> int:
        """How many reports are acknowledged."""
        return self.acknowledged.total()

    def join(self, seconds: float) -> None:
        """Wait until every report is acknowledged."""
        end = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))
        assert self.done == self.total, f"{self.done} of {self.total} are acknowledged: {self.again} {self.lost}"

    def _work(self) -> None:
        pause = self.seconds * _THREADS / self.total
        while True:
            try:
                stream, token, body = self.waiting.get_nowait()
            except Empty:
                return
            while (reason := self._posted(stream, token, body)) is not None:
                with self._lock:
                    self.again[reason] += 1
                time.sleep(_PAUSE_SECONDS)
            time.sleep(pause)

    def _posted(self, stream: Stream, token: str, body: bytes) -> str | None:
        """Post a report once, and return why it must be sent again."""
        path = f"/v1/campaigns/{self.campaign}/{stream}?fingerprint={self.fingerprint}&window=19700101T000000Z"
        try:
            judged = verdict(post_octets(self.address, path, body, {"Client-Token": token}), 1)
        except NoAnswer as failure:
            return failure.failure
        with self._lock:
            if judged.fate == "sent":
                self.acknowledged[stream] += 1
                return None
            if judged.fate in ("again", "refused"):
                return judged.reason
            self.lost[judged.reason] += 1
            return None


def clients_of(site: Site, number: int, *, junk: int = 0, seconds: float = 2.0) -> Clients:
    """Return so many clients with a report of each stream, and so many reports of bytes that nobody can open."""
    campaign = site.campaign
    values = [UNLISTED if place % 2 else ITEMS[place % len(ITEMS)] for place in range(number)]
    waiting: SimpleQueue[tuple[Stream, str, bytes]] = SimpleQueue()
    made = list(_with_tokens(site.reports_of(values)))
    length = campaign.sealed_bytes("reports")
    made += [("reports", secrets.token_hex(16), secrets.token_bytes(length)) for _ in range(junk)]
    secrets.SystemRandom().shuffle(made)
    for one in made:
        waiting.put(one)
    context = ssl.create_default_context(cafile=str(site.directory / "root.crt"))
    address = Address(f"https://localhost:{site.port}", context=context, seconds=_EXCHANGE_SECONDS)
    return Clients(address, campaign.id, campaign.fingerprint.hex(), waiting, len(made), seconds)


def _with_tokens(reports: dict[str, list[bytes]]) -> Iterator[tuple[Stream, str, bytes]]:
    tokens = [secrets.token_hex(16) for _ in reports["reports"]]
    for stream, rows in reports.items():
        for token, row in zip(tokens, rows, strict=True):
            yield stream, token, row  # type: ignore[misc]
