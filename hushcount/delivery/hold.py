"""After a failure nothing is sent to a collector or evaluator for a while; kept in the queue: all processes wait."""

from __future__ import annotations

from hushcount.delivery.queue import Queue
from hushcount.delivery.waits import LONGEST_WAIT, is_ahead, pause

COLLECTOR = "hold"
EVALUATOR = "hold_evaluator"
"""Facts of the queue: how many attempts failed in a row, and until when nothing is sent, in seconds since 1970."""


def held_until(queue: Queue, now: float, whom: str = COLLECTOR) -> float | None:
    """Return until when nothing is sent, or None."""
    until = _read(queue, whom)[1]
    return until if is_ahead(until, now, LONGEST_WAIT) else None


def hold(queue: Queue, now: float, asked: float, whom: str = COLLECTOR) -> float:
    """Note one more failure, and return until when nothing is sent; `asked`: seconds by Retry-After."""
    failures = _read(queue, whom)[0] + 1
    until = now + pause(failures, asked)
    queue.note(whom, f"{failures} {until}")
    return until


def release(queue: Queue, whom: str = COLLECTOR) -> None:
    """Note that the other side answers."""
    if _read(queue, whom)[0]:
        queue.note(whom, "0 0")


def _read(queue: Queue, whom: str) -> tuple[int, float]:
    failures, _, until = (queue.fact(whom) or "0 0").partition(" ")
    return int(failures), float(until)
