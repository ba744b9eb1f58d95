"""How many reports each client sent in the present window, so that one that floods is told to stop."""

from __future__ import annotations

import hashlib
import secrets
from collections import OrderedDict
from datetime import datetime, timezone

from hushcount.collection.windows import Window
from shuffler.collector.admission.refusals import Refused

_KEY_BYTES = 32
_HASH_BYTES = 8
_MOST_CLIENTS = 1 << 20


class Allowance:
    """Counts by a hash of what clients show, under a key of the process, in memory only; forgotten with the window.

    About 130 bytes for each client, of at most a million: whoever invents tokens makes a client of each. Where more
    come, the one that has sent nothing for the longest is forgotten, and may send as much again; so do all after a
    restart. Nobody is ever refused because of others. It is a protection of the collector, not the contribution cap,
    which the shuffler keeps.

    Args:
        most: reports of one client in one window; None: any number, and nothing is counted.
        most_clients: how many are remembered, at least 1.
    """

    def __init__(self, most: int | None, most_clients: int = _MOST_CLIENTS) -> None:
        self._most = most
        self._most_clients = most_clients
        self._window: Window | None = None
        self._key = b""
        self._sent: OrderedDict[int, int] = OrderedDict()
        """Reports by hash; who sent last comes last."""

    def reserve(self, client: bytes | None, reports: int, window: Window | None) -> None:
        """Count so many more reports of a client, before they are kept: others of its requests may be on the way.

        Raises:
            Refused: it may not send them before the next window, or never in one request.
        """
        if self._most is None or client is None or window is None:
            return
        if reports > self._most:
            raise Refused(
                "too_many_reports_at_once",
                f"Send at most {self._most} reports in one request: a client may send no more in a window.",
                most_reports=self._most,
            )
        self._turn(window)
        name = self._name(client)
        sent = self._sent.setdefault(name, 0) + reports
        self._sent.move_to_end(name)
        if len(self._sent) > self._most_clients:
            self._sent.popitem(last=False)
        if sent > self._most:
            left = max(1, int((window.end - datetime.now(timezone.utc)).total_seconds()) + 1)
            raise Refused(
                "too_many_reports",
                f"A client may send {self._most} reports in a window: send the others in the next.",
                ((b"retry-after", str(left).encode()),),
                most_reports=self._most,
            )
        self._sent[name] = sent

    def give_back(self, client: bytes | None, reports: int, window: Window | None) -> None:
        """Take back what was reserved in a window and not kept."""
        if self._most is None or client is None or window is None or window != self._window:
            return
        name = self._name(client)
        if name in self._sent:
            # Of a client that was forgotten meanwhile less may be known than is given back.
            self._sent[name] = max(0, self._sent[name] - reports)

    @property
    def clients(self) -> int:
        """How many clients are remembered."""
        return len(self._sent)

    def _turn(self, window: Window) -> None:
        if window != self._window:
            self._window, self._key = window, secrets.token_bytes(_KEY_BYTES)
            self._sent.clear()

    def _name(self, client: bytes) -> int:
        return int.from_bytes(hashlib.blake2b(client, digest_size=_HASH_BYTES, key=self._key).digest(), "big")
