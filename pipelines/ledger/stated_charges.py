"""Charges as the summaries of their releases state them, for a ledger that was restored from an older copy.

A summary is written after its charge, so the charge that it states was made. The limit that it states was in force
then: a ledger that was lost, and has no limit now, gets that limit back too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, Field, StringConstraints

from hushcount.campaigns.campaign import Campaign
from hushcount.clock import MACHINE, Clock
from hushcount.errors import FormatError
from hushcount.formats.models import Hex32
from hushcount.formats.reading import validated
from hushcount.privacy.statement import statement, window_of
from hushcount.senders import Senders, told_in
from pipelines.ledger.balance import committed
from pipelines.ledger.charges import Charge, Limit, charge_key
from pipelines.ledger.charging import cost_of
from pipelines.ledger.file import opened, put, read_charges, read_limit, writing
from pipelines.ledger.own_time import LedgerClock
from pipelines.outputs.account import Admission, Hop, Unit

_LEDGER, _ACCEPTED = "ledger", "accepted"


def _moment(text: str) -> str:
    if datetime.fromisoformat(text).tzinfo is None:
        raise ValueError("has no time zone")
    return text


_Moment = Annotated[str, StringConstraints(max_length=64), AfterValidator(_moment)]
_Epsilon = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
_Delta = Annotated[float, Field(ge=0.0, le=1.0)]


class _Charged(BaseModel):
    """The fields that are read of `pipelines.outputs.account.Charged`."""

    key: Hex32
    hop: Hop
    manifest: Hex32
    epsilon: _Epsilon
    delta: _Delta
    local: _Epsilon | None
    epoch_epsilon: _Epsilon | None
    per: Unit
    committed_at: _Moment
    outline: Hex32
    draw: Hex32 | None


class _Terms(BaseModel):
    epsilon: Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
    delta: Annotated[float, Field(ge=0.0, lt=1.0)]
    renew_days: Annotated[int, Field(ge=1)] | None
    since: _Moment
    composition: Admission


class _Ledger(BaseModel):
    charged: _Charged
    limit: _Terms | None


class _Release(BaseModel):
    ledger: _Ledger
    accepted: Annotated[int, Field(ge=0)]


@dataclass(frozen=True)
class Proof:
    """A release that was charged.

    Attributes:
        charge: the charge as it was made, without its curve.
        limit: the campaign's limit at that time, or None.
        campaign: the campaign file.
        senders: the senders of the released reports.
    """

    charge: Charge
    limit: Limit | None
    campaign: Campaign
    senders: Senders

    @property
    def moment(self) -> datetime:
        """The time of the charge."""
        return datetime.fromisoformat(self.charge.stamped)

    @property
    def with_curve(self) -> Charge:
        """The charge with the curve from its job, if there was one."""
        charge = self.charge
        if charge.hop != "analyze":
            return charge
        stated = statement(self.campaign, charge.reports, self.senders)
        # For two releases under one key only their cost is known.
        curve = (
            window_of(self.campaign, self.senders, charge.reports)
            if cost_of(stated, "analyze") == charge.loss
            else None
        )
        return replace(charge, window=curve)


def noted(summary: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return those parts of a summary that prove its charge; None if it states no charge."""
    ledger = summary.get(_LEDGER)
    if not isinstance(ledger, Mapping):
        return None
    kept = {_LEDGER: {name: ledger.get(name) for name in ("charged", "limit")}, _ACCEPTED: summary.get(_ACCEPTED)}
    return kept | told_in(summary).data()


def key_in(note: Mapping[str, Any]) -> str | None:
    """Return the key in a note, unchecked, or None."""
    try:
        return str(note[_LEDGER]["charged"]["key"])
    except (LookupError, TypeError):
        return None


def proof_of(note: Mapping[str, Any], campaign: Campaign, name: str) -> Proof:
    """Return the charged release that a note proves.

    Args:
        note: as `noted` returned it; it may have been altered since.
        campaign: the campaign file of the release.
        name: of the summary, for errors.

    Raises:
        FormatError: the note states no charge, or a charge of another campaign file.
    """
    release = validated(_Release, note, name, "does not say what was charged")
    said, terms, fingerprint = release.ledger.charged, release.ledger.limit, campaign.fingerprint.hex()
    is_own = said.key == charge_key(fingerprint, campaign.epoch, said.hop, said.manifest)
    if not is_own or (said.draw is None) == (said.hop == "discover"):
        raise FormatError(f"{name} states a charge that is not of its campaign file: restore it")
    charge = Charge(
        said.key, campaign.id, fingerprint, campaign.epoch, said.hop, said.manifest, said.outline, "committed",
        said.epsilon, said.delta, said.local, said.epoch_epsilon, said.per,
        reports=release.accepted if said.hop == "analyze" else None,
        reserved_at=said.committed_at, committed_at=said.committed_at, draw=said.draw,
    )  # fmt: skip
    limit = None if terms is None else Limit(campaign.id, **terms.model_dump())
    return Proof(charge, limit, campaign, told_in(note))


def by_time(proofs: Iterable[Proof]) -> list[Proof]:
    """Return proofs, those of the oldest charges first."""
    return sorted(proofs, key=lambda proof: proof.moment)


def charged_keys(path: Path, campaign: str) -> set[str]:
    """Return the keys of a campaign's charges; none if the ledger is missing."""
    if not path.exists():
        return set()
    with opened(path) as connection:
        # This runs before each release, so digests are not checked here: `read_charges` checks them.
        wanted = "SELECT key FROM charges WHERE campaign = ? AND state = 'committed'"
        return {str(row["key"]) for row in connection.execute(wanted, (campaign,))}


def put_back(path: Path, campaign: str, proofs: Iterable[Proof], clock: Clock = MACHINE) -> Limit | None:
    """Enter charges that a ledger lacks, even beyond its limit, because the releases were handed out.

    Args:
        path: the ledger, made if it is missing.
        campaign: id of the campaign.
        proofs: one for each key. A campaign without a limit gets the limit of the newest proof.
        clock: this machine's.

    Returns:
        The limit that the ledger had.

    Raises:
        LedgerError, UsageError, FormatError: the ledger cannot be used.
    """
    ordered = by_time(proofs)
    newest = ordered[-1]
    with opened(path, create=True) as connection, writing(connection):
        LedgerClock(clock, newest.moment).advance(connection)
        had = read_limit(connection, campaign)
        if had is None and newest.limit is not None:
            put(connection, newest.limit)
        there = {charge.key for charge in committed(read_charges(connection, campaign))}
        for proof in ordered:
            if proof.charge.key not in there:
                put(connection, proof.with_curve)
    return had
