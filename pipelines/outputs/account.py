"""What a ledger says of one release and of the campaign's limit, as summary.json and `hushcount ledger` show it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from hushcount.privacy.composition import Bound, Loss

Hop = Literal["analyze", "discover"]
Admission = Literal["basic", "joint"]
"""How a limit composes charges, as `pipelines.ledger.charges.Limit` explains it."""
Unit = Literal["client", "report"]
"""Who bears a cost: one client with as many reports as the cap allows, or one report, where the cap binds nobody."""
NoLedger = Literal["no ledger"]
"""In place of `Charged`, if a job was given no ledger."""


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
    """What the charges of a period come to.

    Attributes:
        epsilon: nats, at `delta`; None: no bound states it at this delta.
        composition: the bound that gives it.
        releases: how many charges.
        per: "report" as soon as the cap bound nobody in one of them.
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
        limit: None: no limit is set.
        spent: by all charges of the period, at the limit's delta; by basic composition if there is no limit.
        remaining: a loss that the limit certainly still admits, beside reservations; None without a limit. Where
            charges compose jointly, a larger one may fit.
        renews: when the next period begins, ISO 8601 in UTC; None: never.
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
        """Return it as summary.json holds it."""
        charged = asdict(self)
        account = charged.pop("account")
        return {"charged": charged, **account}
