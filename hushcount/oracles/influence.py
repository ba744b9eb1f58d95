"""How far forged reports can move an estimate: exact, whatever they say, because every report counts once."""

from __future__ import annotations

from dataclasses import dataclass

from hushcount.oracles.mechanism import Mechanism


@dataclass(frozen=True)
class Influence:
    """How many users one well-formed report can add to an item's estimated count, or take from it, at most.

    A report adds a score to every item and one to n, so it adds `(score - q*) / (p* - q*)` to the estimated count.
    Scores lie in 0..1, or in -1..1 with blocks of items, where `q* = 0`: a report adds at most

        (1 - q*) / (p* - q*)    and takes at most    q* / (p* - q*),    with blocks 1 / (p* - q*) both ways.

    For every item there are reports that reach either end, and a forger may send nothing but these. A client that holds
    the item adds 1 on average, so `up` is also how many honest clients a forged report is worth.

    Attributes:
        up: users added at most by a report.
        down: users taken at most by a report; positive.

    Reference: Cao, Jia, Gong 2021, *Data Poisoning Attacks to Local Differential Privacy Protocols*, whose maximal
    gain attack the tests run; the estimator of docs/mathematics.md section 3.
    """

    up: float
    down: float

    def count_shift(self, forged: int) -> tuple[float, float]:
        """Return (low, high): by how many users so many forged reports move an estimated count.

        Against the estimate from the other reports alone. The forger's reports move it by the sum of what each adds,
        so nothing is gained by sending them together.

        Raises:
            ValueError: forged is negative.
        """
        if forged < 0:
            raise ValueError(f"forged is {forged}, must be at least 0")
        return -forged * self.down, forged * self.up

    def share_shift(self, forged: int, reports: int, share: float) -> tuple[float, float]:
        """Return (low, high): by how much forged reports move an estimated share, the count over all reports.

        It moves by `(f/n) (x - share)`, x the users that a forged report adds on average, because forged reports are
        among those that the count is divided by.

        Args:
            forged: f, how many of the reports are forged.
            reports: n, all reports, forged ones included.
            share: as the honest reports alone estimate it.

        Raises:
            ValueError: there are no reports, or fewer than forged ones.
        """
        if not 0 <= forged <= reports or reports < 1:
            raise ValueError(f"forged is {forged}, must be in 0..{reports} of at least 1 report")
        part = forged / reports
        return part * (-self.down - share), part * (self.up - share)


def influence(mechanism: Mechanism) -> Influence:
    """Return the influence of one report of a mechanism, the same for every item."""
    law = mechanism.law
    gain, other = float(law.gain), float(law.other)
    return Influence((1.0 - other) / gain, (other - law.least) / gain)


def influence_sentence(found: Influence) -> str:
    """Return what the bound means for whoever reads a result."""
    return (
        f"Nothing here shows which reports are forged: each forged report can raise an item's count by at most "
        f"{found.up:.4g} users or lower it by at most {found.down:.4g}, and f of them by f times that."
    )
