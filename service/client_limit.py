"""Limits how much one client may do in the present window; a client is known by a keyed hash of its token."""

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
    """A kind of counted things: its name in messages, and the reasons for refusing too many of these things."""

    things: str
    verb: str  # what a client does with the things
    too_many: Reason
    too_many_at_once: Reason


class ClientLimit:
    """Counts of things by a keyed hash of clients' tokens; the counts are forgotten at the end of the window.

    A client takes about 130 bytes of memory. At most a million clients are remembered, because an attacker may invent
    tokens, and each token counts as a client. Beyond a million, the client that has sent nothing for the longest time
    is forgotten, and its count begins at 0 again. After a restart all counts begin at 0, unless the service adds the
    counts that it kept. No client is refused because of other clients.

    Args:
        most: the limit of one client in one window; None: no limit, and nothing is counted.
        counted: the kind of things that are counted.
        clock: used for the remaining time of the window, which a refusal states.
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
        """Counts by hash, in the order in which the clients sent last."""

    def begin(self, window: Window, key: bytes) -> None:
        """Start the counts of a window, by hashes of client tokens under this key."""
        self._window, self._key = window, key
        self._sent.clear()

    def add(self, name: int, number: int) -> None:
        """Add a count that the client with this hash had before a restart."""
        if self._most is not None:
            self._sent[name] = self._sent.get(name, 0) + number
            self._remember(name)

    def reserve(self, client: bytes | None, number: int, window: Window | None, least: int = 0) -> None:
        """Count work before it is done, because the client may send other requests meanwhile; or raise Refused.

        `least` is the number of things that every client needs: if the limit is lower, `least` is the limit.
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
            # If the client was forgotten after it reserved, its new count may be lower than `number`.
            self._sent[name] = max(0, self._sent[name] - number)

    @property
    def clients(self) -> int:
        """The number of clients whose counts are kept now."""
        return len(self._sent)

    def name_of(self, client: bytes) -> int:
        """Return the hash by which a client counts in the present window."""
        return int.from_bytes(hashlib.blake2b(client, digest_size=_HASH_BYTES, key=self._key).digest(), "big")

    def _remember(self, name: int) -> None:
        self._sent.move_to_end(name)
        if len(self._sent) > self._most_clients:
            self._sent.popitem(last=False)
