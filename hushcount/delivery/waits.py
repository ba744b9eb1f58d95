"""How long to wait: a random delay that hides when a value was used, and a pause that grows after each failure."""

from __future__ import annotations

from hushcount.randomness import SystemWords, uniform

LONGEST_WAIT = 86_400.0
"""Seconds. The longest pause that a collector or evaluator can demand, which otherwise could silence a client for ever.
"""
_FIRST_PAUSE = 5.0
_LONGEST_PAUSE = 3_600.0
_STEPS = 1 << 53


def random_seconds(most: float) -> float:
    """Draw a time from 0 to `most` seconds, uniformly, by the operating system's cryptographic generator."""
    return most * int(uniform(_STEPS, 1, SystemWords())[0]) / _STEPS


def is_ahead(moment: float, now: float, longest: float) -> bool:
    """Return whether a stored moment is still to come; a valid moment is at most `longest` seconds ahead.

    A moment that is further ahead was stored before the clock was set back, and counts as past. So no stored moment
    delays anything for longer than `longest` seconds.
    """
    return now < moment <= now + longest


def pause(failures: int, asked: float = 0.0) -> float:
    """Return the seconds until the next attempt, after `failures` (at least 1) failures in a row.

    The pause doubles with each failure, to an hour at most. Half of the pause is drawn at random, so that clients that
    failed together do not return together. The seconds that the other side asked for by Retry-After, `asked`, are
    added. The whole pause is a day at most.
    """
    whole = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** min(failures - 1, 20))
    return min(max(asked, 0.0), LONGEST_WAIT - whole) + whole / 2.0 + random_seconds(whole / 2.0)
