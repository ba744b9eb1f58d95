"""What a ledger says about a release and the campaign's limit, as summary.json and `hushcount ledger` show it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from hushcount.privacy.composition import Bound, Loss

Hop = Literal["analyze", "discover"]
Admission = Literal["basic", "joint"]
"""How a limit composes charges, as `pipelines.ledger.charges.Limit` explains it."""
Unit = Literal["client", "report"]
"""What a cost is for: one client with as many reports as the cap allows; or one report, if the cap binds nobody."""
NoLedger = Literal["no ledger"]
"""Stands in place of `Charged` if a job has no ledger."""


@dataclass(frozen=True)
class Terms:
    """The terms of a limit, as `pipelines.ledger.charges.Limit` explains them."""

    epsilon: float
    delta: float
    renew_days: int | None
    since: str
    composition: Admission


@dataclass(frozen=True)
class Spent:
    """The sum of a period's charges.

    Attributes:
        epsilon: in nats, at `delta`; None: no bound gives an epsilon at this delta.
        composition: the bound that gives `epsilon`.
        releases: number of charges.
        per: "report" if the cap bound nobody in at least one of the charges; else "client".
    """

    epsilon: float | None
    delta: float
    composition: Bound
    releases: int
    per: Unit


@dataclass(frozen=True)
class Account:
    """A campaign's account in the present period.

    Attributes:
        limit: the terms of the limit; None: no limit is set.
        spent: sum of all charges of the period, at the limit's delta; without a limit, by basic composition.
        remaining: a loss that the limit certainly still admits on top of charges and reservations; None without a
            limit. If charges compose jointly, a larger loss may fit.
        renews: start of the next period, ISO 8601 in UTC; None: never.
    """

    limit: Terms | None
    spent: Spent
    remaining: Loss | None
    renews: str | None


@dataclass(frozen=True)
class Charged:
    """The charge of one release, as `pipelines.ledger.charges.Charge` explains it.

    Attributes:
        new: whether this run charged it; False: an earlier run did.
        account: the campaign's account after the charge.
    """

    key: str
    campaign: str
    epoch: int
    hop: Hop
    manifest: str
    epsilon: float
    delta: float
    local: float | None
    epoch_epsilon: float | None
    per: Unit
    committed_at: str | None
    outline: str
    draw: str | None
    new: bool
    account: Account

    def data(self) -> dict[str, Any]:
        """Return the charge and the account as summary.json holds them."""
        charged = asdict(self)
        account = charged.pop("account")
        return {"charged": charged, **account}
