"""After a failure nothing is sent to a collector for a while; kept in the queue, so that all processes wait."""

from __future__ import annotations

from hushcount.delivery.queue import Queue
from hushcount.delivery.waits import LONGEST_WAIT, pause

_FACT = "hold"
"""Text: how many attempts failed in a row, and until when nothing is sent, in seconds since 1970."""


def held_until(queue: Queue, now: float) -> float | None:
    """Return until when nothing is sent, or None. A clock that was set back ends the hold."""
    until = _read(queue)[1]
    return until if now < until <= now + 2 * LONGEST_WAIT else None


def hold(queue: Queue, now: float, asked: float) -> float:
    """Note one more failure, and return until when nothing is sent; `asked`: seconds by Retry-After."""
    failures = _read(queue)[0] + 1
    until = now + pause(failures, asked)
    queue.note(_FACT, f"{failures} {until}")
    return until


def release(queue: Queue) -> None:
    """Note that the collector answers."""
    if _read(queue)[0]:
        queue.note(_FACT, "0 0")


def _read(queue: Queue) -> tuple[int, float]:
    failures, _, until = (queue.fact(_FACT) or "0 0").partition(" ")
    return int(failures), float(until)
