"""How far forged reports can move an estimate: an exact bound for any reports, because every report counts once."""

from __future__ import annotations

from dataclasses import dataclass

from hushcount.oracles.mechanism import Mechanism


@dataclass(frozen=True)
class Influence:
    """The most users that one well-formed report can add to an item's estimated count, or take from it.

    Each report adds a score to every item and 1 to n, so the report adds `(score - q*) / (p* - q*)` to an estimated
    count. Scores lie in 0..1, or in -1..1 with blocks of items, where `q* = 0`: a report adds at most

        (1 - q*) / (p* - q*)    and takes at most    q* / (p* - q*),    with blocks 1 / (p* - q*) both ways.

    For every item some reports reach either bound, and a forger may send only such reports. A client that holds the
    item adds 1 on average, so one forged report can do as much as `up` honest clients. f reports together add the sum
    of their single contributions, so a forger gains nothing by sending them together.

    Attributes:
        up: the most users that one report can add.
        down: the most users that one report can take; positive.

    Reference: Cao, Jia, Gong 2021, *Data Poisoning Attacks to Local Differential Privacy Protocols*; the tests run its
    maximal gain attack. The estimator is that of docs/mathematics.md section 3.
    """

    up: float
    down: float


def influence(mechanism: Mechanism) -> Influence:
    """Return the influence of one report, the same for every item."""
    law = mechanism.law
    gain, other = float(law.gain), float(law.other)
    return Influence((1.0 - other) / gain, (other - law.least) / gain)


def influence_sentence(found: Influence) -> str:
    """Return a sentence that explains the bound to the reader of a result."""
    return (
        f"Nothing here shows which reports are forged: each forged report can raise an item's count by at most "
        f"{found.up:.4g} users or lower it by at most {found.down:.4g}, and f of them by f times that."
    )
