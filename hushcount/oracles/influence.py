"""How far forged reports can move an estimate: an exact bound for any reports, because every report counts once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hushcount.oracles.mechanism import Mechanism
from hushcount.senders import WEAKEST, Authentication

FORGERS = 0.01
"""The share of all clients that forge, for which results say what forgers could do."""


_ANYBODY = "A forger can pretend to be any number of clients."
_FORGING: Mapping[Authentication, str] = {
    "none": _ANYBODY,
    "bearer": "A forger with the app's token can pretend to be any number of clients.",
    "client-token": _ANYBODY,
    "privacy-pass": "A forger needs a pass of the issuer for each client that it pretends to be, and two of one "
    "installation are good in a window at most.",
}


@dataclass(frozen=True)
class Influence:
    """The most users that one well-formed report can add to an estimated count, or take from it.

    Each report adds a score to every item and 1 to n, so the report adds `(score - q*) / (p* - q*)` to an estimated
    count. Scores lie in 0..1, or in -1..1 with blocks of items, where `q* = 0`: a report adds at most

        (1 - q*) / (p* - q*)    and takes at most    q* / (p* - q*),    with blocks 1 / (p* - q*) both ways.

    For every item some reports reach either bound, and a forger may send only such reports. A client that holds the
    item adds 1 on average, so one forged report can do as much as `up` honest clients. f reports together add the sum
    of their single contributions, so a forger gains nothing by sending them together.

    Attributes:
        up: the most users that one report can add.
        down: the most users that one report can take; positive.
        items: g, the most items that one report supports, and so raises at once; None in an open domain.
            Of groups of `size` items, the most groups.
        share: the share of all items, or of all strings, that these are.

    Reference: Cao, Jia, Gong 2021, *Data Poisoning Attacks to Local Differential Privacy Protocols*; the tests run its
    maximal gain attack. The estimator is that of docs/mathematics.md section 3.
    """

    up: float
    down: float
    items: int | None
    share: float


def influence(mechanism: Mechanism, size: int = 1) -> Influence:
    """Return the influence of one report on the count of an item, the same for every item.

    With `size` above 1: on the sum of a group of so many items. `up` is then an upper bound, because the group's items
    may not be those that one report supports; so is `down`.
    """
    law, domain = mechanism.law, mechanism.encoder.domain
    reach = mechanism.encoder.reach(mechanism.responder.most_cells)
    raised = None if domain is None else int(reach * domain)
    gain, other = float(law.gain), size * float(law.other)
    most = size if raised is None else min(size, raised)
    items = None if raised is None or domain is None else min(raised, domain // size)
    return Influence((most - other) / gain, (other - size * law.least) / gain, items, float(reach))


def forged_part(asked: float) -> float:
    """Return the share of the reports that `FORGERS` of all clients send; `asked`: the share of clients that is asked.

    Forgers choose ids inside the sample, so all of them answer.
    """
    return min(1.0, FORGERS / asked)


def influence_sentence(found: Influence, asked: float = 1.0, way: Authentication = WEAKEST) -> str:
    """Return sentences that explain the bound to the reader of a result.

    Args:
        asked: as in `forged_part`.
        way: how senders showed who they are, which decides how many clients a forger can pretend to be.
    """
    reach = (
        f"{100 * found.share:.3g} % of all values"
        if found.items is None
        else f"{found.items:,} item{'' if found.items == 1 else 's'}"
    )
    sample = (
        ""
        if asked == 1.0
        else f" Forgers choose to be in the sample: {100 * FORGERS:g} % of all clients send "
        f"{100 * forged_part(asked):.3g} % of its reports."
    )
    return (
        f"Nothing here shows which reports are forged: each forged report can raise an item's count by at most "
        f"{found.up:.4g} users or lower it by at most {found.down:.4g}, and f of them by f times that. One report can "
        f"raise {reach} at once.{sample} {_FORGING[way]}"
    )
