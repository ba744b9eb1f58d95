"""What a ledger says of itself: shown, checked, exported; and the limits that are set in it."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from hushcount.campaigns.campaign import Identifier
from hushcount.errors import FormatError, UsageError
from hushcount.formats.whole_files import write_new
from hushcount.privacy.composition import Loss, basic
from pipelines.ledger.balance import balance, counted, files_of, is_stale, losses
from pipelines.ledger.file import COLUMNS, VERSION, opened, writing
from pipelines.ledger.own_time import LedgerTime, advanced, beginning, ledger_time, warnings
from pipelines.ledger.records import Charge, Limit, charge_key, put, read_charges, read_limit, read_limits


def set_limit(
    path: Path, campaign: str, epsilon: float, delta: float, renew_days: int | None, *, fixed: bool = False
) -> dict[str, Any]:
    """Set what a campaign's releases may come to, and return its account.

    A limit that is set again keeps the beginning of its periods, so that no budget renews by being set.

    Args:
        path: the ledger, made where it is missing.
        campaign: id of the campaign, for all its epochs.
        epsilon: nats, above 0.
        delta: in [0, 1), at which the releases' epsilon is stated.
        renew_days: after which the whole budget is there again; None: never.
        fixed: whether the parameters of all its releases are declared to follow from no result, so that they compose
            numerically; to be declared before the first charge of a period.

    Raises:
        UsageError: an argument is out of its range.
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
        now = advanced(connection).now
        charges = read_charges(connection, campaign)
        begin = beginning(charges, now)
        limit = Limit(campaign, epsilon, delta, renew_days, begin, "numerical" if fixed else "basic")
        old = read_limit(connection, campaign)
        if old is not None:
            limit = replace(limit, since=old.since)
        _require_same_composition(old, limit, charges, now)
        put(connection, limit)
    return {"campaign": campaign, **balance(limit, charges, now).as_data()}


def _require_same_composition(old: Limit | None, new: Limit, charges: list[Charge], now: datetime) -> None:
    """Refuse to compose the charges of a period otherwise than they were admitted.

    Raises:
        UsageError: they were not of one campaign file with fixed parameters; or their sums pass the limit.
    """
    was_fixed = old is not None and old.composition == "numerical"
    counting = counted(new, charges, now)
    if new.composition == "numerical" and counting and not (was_fixed and len(files_of(counting)) == 1):
        raise UsageError(
            f"fixed-parameters is given after {len(counting):,} releases of campaign {new.campaign} in this period, "
            "must be given before the first: set the limit without it"
        )
    if new.composition == "basic" and was_fixed and balance(new, charges, now).spent.epsilon > new.epsilon:
        sums = basic(losses(counting, [charge for charge in charges if charge.state == "committed"]))
        raise UsageError(
            f"limit of campaign {new.campaign} is ({new.epsilon:.6g}, {new.delta:.6g}), must be at least "
            f"({sums.epsilon:.6g}, {sums.delta:.6g}) without fixed-parameters: to that its charges add up"
        )


def describe(path: Path, campaign: str | None = None) -> dict[str, Any]:
    """Return a ledger as JSON data: each campaign's account, and all charges and reservations.

    Args:
        path: the ledger.
        campaign: only this one's.
    """
    with opened(path) as connection:
        limits, charges, time = _read(connection)
    now = time.now
    known = {limit.campaign for limit in limits} | {charge.campaign for charge in charges}
    names = sorted(name for name in known if campaign in (None, name))
    return {
        "version": VERSION,
        "campaigns": [_account(name, limits, charges, now) for name in names],
        "charges": [
            {**asdict(charge), "stale": is_stale(charge, now)} for charge in charges if charge.campaign in names
        ],
    }


def check(path: Path) -> dict[str, Any]:
    """Check that a ledger is whole: its pages, its schema, every row's digest, key and range, and the sums.

    Returns:
        How many charges, reservations and limits there are, the campaigns that are over their limit, and a sentence for
        each thing that a wrong clock left.

    Raises:
        FormatError: it is not; the first fault is named.
    """
    with opened(path) as connection:
        faults = [row[0] for row in connection.execute("PRAGMA integrity_check") if row[0] != "ok"]
        if faults:
            raise FormatError(f"ledger {path} is damaged, {faults[0]}: restore it from a copy")
        limits, charges, time = _read(connection)
    for charge in charges:
        _check_charge(path, charge)
    for limit in limits:
        _check_moments(path, f"limit of campaign {limit.campaign}", limit.since)
    accounts = [_account(name, limits, charges, time.now) for name in sorted({limit.campaign for limit in limits})]
    return {
        "charges": sum(charge.state == "committed" for charge in charges),
        "reservations": sum(charge.state == "reserved" for charge in charges),
        "limits": len(limits),
        "over": [one["campaign"] for one in accounts if _is_over(one)],
        "warnings": warnings(limits, charges, time),
    }


def export(path: Path, out: Path) -> int:
    """Write all charges and reservations to a new file, .csv, or with the limits, .json; return how many.

    Raises:
        UsageError: the file exists, has another ending, or cannot be written.
    """
    if out.suffix not in (".csv", ".json"):
        raise UsageError(f"out is {out}, must end in .csv or .json")
    with opened(path) as connection:
        limits, charges, _ = _read(connection)
    rows = [asdict(charge) for charge in charges]
    if out.suffix == ".json":
        data = {"version": VERSION, "limits": [asdict(limit) for limit in limits], "charges": rows}
        text = json.dumps(data, indent=2) + "\n"
    else:
        buffer = io.StringIO()
        writer = csv.DictWriter(buffer, COLUMNS["charges"][:-1], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        text = buffer.getvalue()
    try:
        write_new(out, text, 0o600)
    except FileExistsError:
        raise UsageError(f"{out} exists: give another name") from None
    except OSError as error:
        raise UsageError(f"cannot write {out}: {error.strerror}") from None
    return len(rows)


def _read(connection: sqlite3.Connection) -> tuple[list[Limit], list[Charge], LedgerTime]:
    """Return what a ledger held at one moment, and the present."""
    connection.execute("BEGIN")
    try:
        return read_limits(connection), read_charges(connection), ledger_time(connection)
    finally:
        connection.execute("COMMIT")


def _account(name: str, limits: list[Limit], charges: list[Charge], now: datetime) -> dict[str, Any]:
    limit = next((limit for limit in limits if limit.campaign == name), None)
    return {"campaign": name, **balance(limit, (one for one in charges if one.campaign == name), now).as_data()}


def _is_over(account: dict[str, Any]) -> bool:
    """Return whether a limit, set lower afterwards, is passed; an epsilon of None has no bound at the limit's delta."""
    spent = account["spent"]["epsilon"]
    return spent is None or spent > account["limit"]["epsilon"]


def _check_charge(path: Path, charge: Charge) -> None:
    """Check what the digest of a row does not: that it was right when it was written."""
    name = f"charge {charge.key}"
    try:
        _ = charge.loss
    except ValueError as error:
        raise FormatError(f"ledger {path}: {name} has {error}: restore it from a copy") from None
    _check_moments(path, name, charge.reserved_at, *([charge.committed_at] if charge.committed_at else []))
    key = charge_key(charge.fingerprint, charge.epoch, charge.hop, charge.manifest)
    is_drawn = charge.hop == "discover" and charge.state == "committed"
    committed = (charge.committed_at is None) == (charge.state == "reserved")
    if key != charge.key or not committed or (charge.draw is None) == is_drawn:
        raise FormatError(f"ledger {path}: {name} contradicts itself: restore it from a copy")


def _check_moments(path: Path, name: str, *moments: str) -> None:
    try:
        dated = all(datetime.fromisoformat(moment).tzinfo for moment in moments)
    except ValueError:
        dated = False
    if not dated:
        raise FormatError(f"ledger {path}: {name} has a time that is none: restore it from a copy")
