"""Show, check and export a ledger, and set limits in it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from hushcount.campaigns.parts import Identifier
from hushcount.errors import FormatError, UsageError
from hushcount.formats.whole_files import write_once
from hushcount.privacy.composition import Loss, basic
from pipelines.files.csv_cells import csv_text
from pipelines.ledger.balance import balance, committed, counted, files_of, losses, spent
from pipelines.ledger.charges import Charge, Limit, charge_key
from pipelines.ledger.file import VERSION, opened, put, read_charges, read_limit, read_limits, writing
from pipelines.ledger.own_time import ALONE, LedgerClock, LedgerTime, beginning, warnings
from pipelines.ledger.runs import is_stale
from pipelines.outputs.account import Account

_NO_TIME = "has a time that is no ISO 8601 time with a zone"


@dataclass(frozen=True)
class Described:
    """The content of a ledger, or of one campaign in it.

    Attributes:
        accounts: the account of each campaign, by the campaign's id.
        charges: all charges and reservations, oldest first.
        stale: keys of reservations by runs that have ended.
    """

    accounts: Mapping[str, Account]
    charges: list[Charge]
    stale: frozenset[str]

    def data(self) -> dict[str, Any]:
        """Return the overview as JSON data."""
        return {
            "version": VERSION,
            "campaigns": [{"campaign": name, **asdict(account)} for name, account in self.accounts.items()],
            "charges": [{**charge.row(), "stale": charge.key in self.stale} for charge in self.charges],
        }


@dataclass(frozen=True)
class WholeLedger:
    """The result of checking a ledger that has no fault.

    Attributes:
        charges, reservations, limits: the number of each kind of row.
        over: the campaigns whose charges exceed their limit, because the limit was lowered later.
        warnings: a sentence for each trace of a wrong clock.
    """

    charges: int
    reservations: int
    limits: int
    over: list[str]
    warnings: list[str]


def set_limit(
    path: Path, campaign: str, epsilon: float, delta: float, renew_days: int | None, *, fixed: bool = False
) -> Account:
    """Set the limit of a campaign's releases, and return its account.

    If a limit is set again, the beginning of its periods does not change, so setting it again renews no budget.

    Args:
        path: the ledger, made if it is missing.
        campaign: id of the campaign, for all its epochs.
        epsilon: nats, above 0.
        delta: the delta at which the releases' epsilon is stated, in [0, 1).
        renew_days: number of days after which the whole budget is available again; None: never.
        fixed: whether the operator declares, before the first charge of a period, that neither the parameters nor the
            numbers of reports of any release depend on a result, so that charges compose jointly.

    Raises:
        UsageError: an argument is outside its allowed range.
        LedgerError: the ledger cannot be used.
    """
    try:
        TypeAdapter(Identifier).validate_python(campaign)
        Loss(epsilon, delta)
    except ValidationError:
        raise UsageError(f"campaign is {campaign!r}, must be an id: a-z, 0-9, '.', '_', '-', at most 64") from None
    except ValueError as error:
        raise UsageError(str(error)) from None
    if epsilon <= 0.0:
        raise UsageError(f"epsilon is {epsilon}, must be above 0")
    if renew_days is not None and not 1 <= renew_days <= 36500:
        raise UsageError(f"renew-days is {renew_days}, must be in 1..36500")
    with opened(path, create=True) as connection, writing(connection):
        now = ALONE.advance(connection).now
        charges, old = read_charges(connection, campaign), read_limit(connection, campaign)
        since = beginning(charges, now) if old is None else old.since
        limit = Limit(campaign, epsilon, delta, renew_days, since, "joint" if fixed else "basic")
        _require_same_composition(old, limit, committed(charges), now)
        put(connection, limit)
    return balance(limit, charges, now)


def _require_same_composition(old: Limit | None, new: Limit, charges: list[Charge], now: datetime) -> None:
    """Check that the new limit's kind of composition is valid for the period's charges, which the old limit admitted.

    Raises:
        UsageError: joint composition is wanted, but the charges were not of one campaign file with fixed parameters; or
            basic composition is wanted, but the charges' sums exceed the limit.
    """
    was_fixed = old is not None and old.composition == "joint"
    counting = counted(new, charges, now)
    if new.composition == "joint" and counting and not (was_fixed and len(files_of(counting)) == 1):
        raise UsageError(
            f"fixed-parameters is given after {len(counting):,} releases of campaign {new.campaign} in this period, "
            "must be given before the first: set the limit without it"
        )
    if new.composition == "basic" and was_fixed and spent(new, counting, charges).epsilon > new.epsilon:
        sums = basic(losses(counting, charges))
        raise UsageError(
            f"limit of campaign {new.campaign} is ({new.epsilon:.6g}, {new.delta:.6g}), must be at least "
            f"({sums.epsilon:.6g}, {sums.delta:.6g}) without fixed-parameters: its charges add up to that"
        )


def describe(path: Path, campaign: str | None = None, clock: LedgerClock = ALONE) -> Described:
    """Return each campaign's account, and all charges and reservations; or only those of one campaign.

    Raises:
        UsageError, FormatError, LedgerError: the ledger cannot be read.
    """
    with opened(path) as connection:
        limits, charges, time = _read(connection, clock)
    charges = [charge for charge in charges if campaign in (None, charge.campaign)]
    names = {charge.campaign for charge in charges}
    names |= {limit.campaign for limit in limits if campaign in (None, limit.campaign)}
    stale = frozenset(charge.key for charge in charges if is_stale(path, charge, time.now))
    return Described(_accounts(names, limits, charges, time.now), charges, stale)


def check(path: Path, clock: LedgerClock = ALONE) -> WholeLedger:
    """Check a ledger: its pages, its schema, the digest, key and range of every row, and the sums.

    Raises:
        FormatError: the ledger has a fault; the error names the first one.
        UsageError, LedgerError: the ledger cannot be read.
    """
    with opened(path) as connection:
        faults = [row[0] for row in connection.execute("PRAGMA integrity_check") if row[0] != "ok"]
        if faults:
            raise FormatError(f"ledger {path} is damaged, {faults[0]}: restore it from a copy")
        limits, charges, time = _read(connection, clock)
    for charge in charges:
        if fault := _fault_of(charge):
            raise FormatError(f"ledger {path}: charge {charge.key} {fault}: restore it from a copy")
    for limit in limits:
        if not _are_moments(limit.since):
            raise FormatError(f"ledger {path}: limit of campaign {limit.campaign} {_NO_TIME}: restore it from a copy")
    accounts = _accounts({limit.campaign for limit in limits}, limits, charges, time.now)
    over = [name for name, account in accounts.items() if _is_over(account)]
    done = len(committed(charges))
    return WholeLedger(done, len(charges) - done, len(limits), over, warnings(limits, charges, time))


def export(path: Path, out: Path) -> int:
    """Write all charges and reservations to a new .csv file or, with the limits, to a new .json file; return how many.

    Raises:
        UsageError: the file exists, has a name with another ending, or cannot be written.
    """
    if out.suffix not in (".csv", ".json"):
        raise UsageError(f"out is {out}, must end in .csv or .json")
    with opened(path) as connection:
        limits, charges, _ = _read(connection, ALONE)
    rows = [charge.row() for charge in charges]
    if out.suffix == ".json":
        data = {"version": VERSION, "limits": [asdict(limit) for limit in limits], "charges": rows}
        text = json.dumps(data, indent=2) + "\n"
    else:
        columns = [field.name for field in fields(Charge) if field.compare]
        text = csv_text(columns, ([row[name] for name in columns] for row in rows))
    write_once(out, "table of charges", text, 0o600)
    return len(rows)


def _read(connection: sqlite3.Connection, clock: LedgerClock) -> tuple[list[Limit], list[Charge], LedgerTime]:
    """Return all rows of a ledger, read in one transaction, and the ledger's time."""
    connection.execute("BEGIN")
    try:
        return read_limits(connection), read_charges(connection), clock.time(connection)
    finally:
        connection.execute("COMMIT")


def _accounts(names: set[str], limits: list[Limit], charges: list[Charge], now: datetime) -> dict[str, Account]:
    by_campaign = {limit.campaign: limit for limit in limits}
    return {
        name: balance(by_campaign.get(name), [charge for charge in charges if charge.campaign == name], now)
        for name in sorted(names)
    }


def _is_over(account: Account) -> bool:
    spent_by_now, limit = account.spent.epsilon, account.limit
    return limit is not None and (spent_by_now is None or spent_by_now > limit.epsilon)


def _fault_of(charge: Charge) -> str | None:
    """Return a fault that a row's digest does not show, because the row already had the fault when it was written."""
    try:
        _ = charge.loss
    except ValueError as error:
        return f"has {error}"
    if not _are_moments(charge.reserved_at, *([charge.committed_at] if charge.committed_at else [])):
        return _NO_TIME
    key = charge_key(charge.fingerprint, charge.epoch, charge.hop, charge.manifest)
    is_drawn = charge.hop == "discover" and charge.state == "committed"
    has_time = (charge.committed_at is None) == (charge.state == "reserved")
    return None if key == charge.key and has_time and (charge.draw is not None) == is_drawn else "contradicts itself"


def _are_moments(*texts: str) -> bool:
    try:
        return all(datetime.fromisoformat(text).tzinfo for text in texts)
    except ValueError:
        return False
