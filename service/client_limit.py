"""Limits how much one client may do in the present window; clients count by a keyed hash of their token."""

from __future__ import annotations

import hashlib
import secrets
from collections import OrderedDict
from dataclasses import dataclass

from hushcount.clock import MACHINE, Clock
from hushcount.collection.windows import Window
from service.refusals import Reason, Refused
from service.window_notes import KEY_BYTES

_HASH_BYTES = 8
_MOST_CLIENTS = 1 << 20


@dataclass(frozen=True)
class Counted:
    """The counted things: their name in messages, and the reasons for refusing too many of them."""

    things: str
    verb: str  # what a client does with them
    too_many: Reason
    too_many_at_once: Reason


class ClientLimit:
    """Counts by a keyed hash of clients' tokens; the counts are forgotten with the window.

    A client takes about 130 bytes, and at most a million are remembered: an attacker may invent tokens, and each token
    counts as a client. Beyond that number, the client that has sent nothing for the longest is forgotten, and its limit
    begins anew. So do all limits after a restart, unless the service adds the counts that it kept. No client is refused
    because of others.

    Args:
        most: the limit of one client in one window; None: no limit, and nothing is counted.
        counted: the things that are counted.
        clock: for the remaining time of the window in a refusal.
        most_clients: number of clients that are remembered, at least 1.
    """

    def __init__(
        self, most: int | None, counted: Counted, most_clients: int = _MOST_CLIENTS, clock: Clock = MACHINE
    ) -> None:
        self._most = most
        self._counted = counted
        self._clock = clock
        self._most_clients = most_clients
        self._window: Window | None = None
        self._key = b""
        self._sent: OrderedDict[int, int] = OrderedDict()
        """Counts by hash; the client that sent last comes last."""

    def begin(self, window: Window, key: bytes) -> None:
        """Start the counts of a window, by hashes under a key."""
        self._window, self._key = window, key
        self._sent.clear()

    def add(self, name: int, number: int) -> None:
        """Add a count that the client with this hash had before a restart."""
        if self._most is not None:
            self._sent[name] = self._sent.get(name, 0) + number
            self._remember(name)

    def reserve(self, client: bytes | None, number: int, window: Window | None, least: int = 0) -> None:
        """Count for a client before the work is done, as it may send other requests meanwhile; or raise Refused.

        `least` is the number that every client needs: if the limit is lower, `least` is the limit.
        """
        if self._most is None or client is None or window is None:
            return
        most, counted = max(self._most, least), self._counted
        if number > most:
            raise Refused(
                counted.too_many_at_once,
                f"{counted.verb.capitalize()} at most {most} {counted.things} in one request: a client may "
                f"{counted.verb} no more in a window.",
                **{f"most_{counted.things}": most},
            )
        if window != self._window:
            self.begin(window, secrets.token_bytes(KEY_BYTES))
        name = self.name_of(client)
        sent = self._sent.setdefault(name, 0) + number
        self._remember(name)
        if sent > most:
            left = max(1, int((window.end - self._clock.now()).total_seconds()) + 1)
            raise Refused(
                counted.too_many,
                f"A client may {counted.verb} {most} {counted.things} in a window: {counted.verb} the others in the "
                "next.",
                ((b"retry-after", str(left).encode()),),
                **{f"most_{counted.things}": most},
            )
        self._sent[name] = sent

    def give_back(self, client: bytes | None, number: int, window: Window | None) -> None:
        """Take back a reservation of a window for work that was not done."""
        if self._most is None or client is None or window is None or window != self._window:
            return
        name = self.name_of(client)
        if name in self._sent:
            # A client that was forgotten meanwhile may have a lower count than it gives back.
            self._sent[name] = max(0, self._sent[name] - number)

    @property
    def clients(self) -> int:
        """The number of clients that are remembered."""
        return len(self._sent)

    def name_of(self, client: bytes) -> int:
        """Return the hash by which a client counts in the present window."""
        return int.from_bytes(hashlib.blake2b(client, digest_size=_HASH_BYTES, key=self._key).digest(), "big")

    def _remember(self, name: int) -> None:
        self._sent.move_to_end(name)
        if len(self._sent) > self._most_clients:
            self._sent.popitem(last=False)
