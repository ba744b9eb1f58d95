"""The records of a release's charge and a campaign's limit that summary.json and `hushcount ledger` show."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from hushcount.privacy.composition import Bound, Loss

Hop = Literal["analyze", "discover"]
Admission = Literal["basic", "joint"]
"""How a limit adds up charges; `pipelines.ledger.charges.Limit` explains "basic" and "joint"."""
Unit = Literal["client", "report"]
"""Whose loss a cost is: of one client with all reports that the cap allows or, if no cap is enforced, of one report."""
NoLedger = Literal["no ledger"]
"""The value of a summary's field `ledger` if the job had no ledger; otherwise the field has a `Charged`."""


@dataclass(frozen=True)
class Terms:
    """The terms of a limit; `pipelines.ledger.charges.Limit` explains them."""

    epsilon: float
    delta: float
    renew_days: int | None
    since: str
    composition: Admission


@dataclass(frozen=True)
class Spent:
    """The sum of the charges of one period of a limit.

    Attributes:
        epsilon: the sum in nats, at `delta`; None: no bound gives an epsilon at this delta.
        composition: name of the bound by which `epsilon` was computed.
        releases: number of charges.
        per: "report" if at least one of the charges is for one report (`Unit`); else "client".
    """

    epsilon: float | None
    delta: float
    composition: Bound
    releases: int
    per: Unit


@dataclass(frozen=True)
class Account:
    """A campaign's account in the present period of its limit.

    Attributes:
        limit: the terms of the limit; None: no limit is set.
        spent: sum of all charges of the period, at the limit's delta; if there is no limit, by basic composition.
        remaining: a loss that the limit certainly still allows, in addition to charges and reservations; None without a
            limit. If the limit's composition is joint, the limit may also allow a larger loss.
        renews: start of the next period, ISO 8601 in UTC; None: never.
    """

    limit: Terms | None
    spent: Spent
    remaining: Loss | None
    renews: str | None


@dataclass(frozen=True)
class Charged:
    """The charge of one release; `pipelines.ledger.charges.Charge` explains the fields.

    Attributes:
        new: whether this run charged the release; False: an earlier run charged it.
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
        """Return the charge and the account as JSON data, as they are in summary.json."""
        charged = asdict(self)
        account = charged.pop("account")
        return {"charged": charged, **account}
