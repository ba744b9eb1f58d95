"""Charges as the summaries of the releases state them, to complete a ledger that was restored from an older copy.

A summary is written after the charge that it states, so this charge was made. The limit in the newest summary was in
force at its charge: a ledger that was lost, and has no limit now, gets this limit back too.
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
    """The fields of `pipelines.outputs.account.Charged` that this module reads."""

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
        charge: the charge as it was made, without its privacy curve.
        limit: the campaign's limit when the charge was made, or None.
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
        """The charge with the privacy curve that its job computes, if there is one."""
        charge = self.charge
        if charge.hop != "analyze":
            return charge
        stated = statement(self.campaign, charge.reports, self.senders)
        # If another release under this key raised the charge, only the cost of both is known, not a curve.
        curve = (
            window_of(self.campaign, self.senders, charge.reports)
            if cost_of(stated, "analyze") == charge.loss
            else None
        )
        return replace(charge, window=curve)


def noted(summary: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the part of a summary that proves its charge; None if the summary states no charge."""
    ledger = summary.get(_LEDGER)
    if not isinstance(ledger, Mapping):
        return None
    kept = {_LEDGER: {name: ledger.get(name) for name in ("charged", "limit")}, _ACCEPTED: summary.get(_ACCEPTED)}
    return kept | told_in(summary).data()


def key_in(note: Mapping[str, Any]) -> str | None:
    """Return the charge's key in a note without checking it; None if there is no key."""
    try:
        return str(note[_LEDGER]["charged"]["key"])
    except (LookupError, TypeError):
        return None


def proof_of(note: Mapping[str, Any], campaign: Campaign, name: str) -> Proof:
    """Return the charged release that a note proves.

    Args:
        note: a value that `noted` returned; it may have been altered since.
        campaign: the campaign file of the release.
        name: the summary's name, for error messages.

    Raises:
        FormatError: the note states no charge, or states a charge of another campaign file.
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
    """Return proofs in the order of their charges, oldest first."""
    return sorted(proofs, key=lambda proof: proof.moment)


def charged_keys(path: Path, campaign: str) -> set[str]:
    """Return the keys of a campaign's charges; no keys if the ledger is missing."""
    if not path.exists():
        return set()
    with opened(path) as connection:
        # This function runs before each release, so it does not check the rows' digests; `read_charges` checks them.
        wanted = "SELECT key FROM charges WHERE campaign = ? AND state = 'committed'"
        return {str(row["key"]) for row in connection.execute(wanted, (campaign,))}


def put_back(path: Path, campaign: str, proofs: Iterable[Proof], clock: Clock = MACHINE) -> Limit | None:
    """Enter charges that a ledger lacks, even if they exceed its limit, because the releases were handed out.

    Args:
        path: the ledger, which is made if it is missing.
        campaign: id of the campaign.
        proofs: a proof for each charge's key. A campaign without a limit gets the limit that the newest proof states.
        clock: this machine's.

    Returns:
        The campaign's limit in the ledger before this call.

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
