"""The maximal gain attack on frequency estimation: forged reports that support as many targets as a report can.

Cao, Jia, Gong 2021, *Data Poisoning Attacks to Local Differential Privacy Protocols*. A forger needs no secret: it
looks for a well-formed report among those that honest clients of its targets might send, and sends it many times.
"""

from __future__ import annotations

import numpy as np

from hushcount.arrays import Reports, UInt64Array
from hushcount.oracles.mechanism import Mechanism
from hushcount.randomness import Words
from tests.support.enumeration import scores


def forged(mechanism: Mechanism, targets: UInt64Array, count: int, words: Words, candidates: int = 400) -> Reports:
    """Return the report, of many candidates, that scores most on the targets together, `count` times."""
    return _extreme(mechanism, targets, count, words, candidates, 1)


def forged_against(
    mechanism: Mechanism, targets: UInt64Array, count: int, words: Words, candidates: int = 400
) -> Reports:
    """Return the report that scores least on the targets together, `count` times: it hides what is frequent."""
    return _extreme(mechanism, targets, count, words, candidates, -1)


def _extreme(
    mechanism: Mechanism, targets: UInt64Array, count: int, words: Words, candidates: int, sign: int
) -> Reports:
    drawn = mechanism.encode(np.resize(targets, candidates), words)
    best = int(np.argmax(sign * scores(mechanism, drawn, targets).sum(axis=1)))
    return np.repeat(drawn[best : best + 1], count)
