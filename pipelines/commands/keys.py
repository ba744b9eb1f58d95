"""hushcount keys: make, rotate, retire, list and rehearse."""

from __future__ import annotations

from datetime import datetime, timezone
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from keys import rotation, store
from keys.listing import KeyListing, read_listing
from keys.records import key_path
from keys.roles import OPENING_ROLES, Role
from pipelines.console.command_table import new_app
from pipelines.console.common import JsonOption, moment, out_console, progress_console, reported, show_json, span
from pipelines.console.numbers import MOST_DAYS
from pipelines.console.options import PartyName

app = new_app("Make, rotate, retire, list and rehearse key pairs.")
KeysOption = Annotated[Path, typer.Option("--keys", help="Key directory of hushcount keys new.")]
DaysOption = Annotated[int, typer.Option(help="How long clients may seal to these keys.", max=MOST_DAYS)]
WrapOption = Annotated[
    str | None,
    typer.Option(
        help="Key of a key service that wraps the private keys: gcp-kms://projects/... or aws-kms://arn:aws:kms:..."
    ),
]


class RoleName(str, Enum):
    """Whose keys to make; both are those that open, handing-on those of the parties that sign what they hand on."""

    both = "both"
    analyzer = "analyzer"
    aux_server = "aux-server"
    operator = "operator"
    shuffler = "shuffler"
    aux_signer = "aux-signer"
    handing_on = "handing-on"


@app.command("new")
@reported
def new_keys(
    out: Annotated[Path, typer.Option(help="Directory for the key files.")],
    days: DaysOption = 365,
    role: Annotated[
        RoleName,
        typer.Option(
            help="Whose: a party makes its own alone. Operator, shuffler and aux-signer, the auxiliary server, sign; "
            "handing-on is the last two; the others open."
        ),
    ] = RoleName.both,
    wrap: WrapOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a key pair for the analyzer and one for the auxiliary server, or one of a single role.

    Example: hushcount keys new --out keys
    """
    store.create(out, days, _roles(role) or OPENING_ROLES, wrap=wrap)
    _show(out, as_json)


@app.command("list")
@reported
def list_keys(keys: KeysOption, as_json: JsonOption = False) -> None:
    """Show states, dates, ids and public keys; never a private key.

    Example: hushcount keys list --keys keys
    """
    _show(keys, as_json)


@app.command("rotate")
@reported
def rotate_keys(
    keys: KeysOption,
    overlap: Annotated[str, typer.Option(help="How long the keys before are still opened with, as in 7d.")],
    role: Annotated[RoleName | None, typer.Option(help="Whose; all in the directory when not given.")] = None,
    begins: Annotated[str | None, typer.Option(help="When, as in 2026-12-01T00:00:00Z; now when not given.")] = None,
    days: DaysOption = 365,
    wrap: WrapOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make the next keys, for the campaign of the next epoch; the keys before are kept until they are retired.

    Example: hushcount keys rotate --keys keys --overlap 7d
    """
    rotation.rotate(
        keys,
        None if role is None else _roles(role) or OPENING_ROLES,
        overlap=span("overlap", overlap),
        begins=None if begins is None else moment("begins", begins),
        days=days,
        wrap=wrap,
    )
    _show(keys, as_json)


@app.command("retire")
@reported
def retire_key(
    keys: KeysOption,
    id: Annotated[str, typer.Option(help="Of the key, as hushcount keys list shows it.")],
    early: Annotated[bool, typer.Option("--early", help="Even while its overlap with the next key lasts.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Destroy a private key: what is sealed to it can be counted as retired_key, and never be opened again.

    The file is overwritten and removed; an SSD, a snapshot or a backup may keep the old bytes all the same.

    Example: hushcount keys retire --keys keys --id 0123456789abcdef
    """
    key = rotation.require_retirable(keys, read_listing(keys), id, datetime.now(timezone.utc), early)
    question = f"Destroy the {key.role} key {id}? What is sealed to it can never be opened again"
    if not yes and not typer.confirm(question, err=True):
        progress_console().print("nothing was done", soft_wrap=True)
        raise typer.Exit(1)
    rotation.retire(keys, id, early=early)
    _show(keys, as_json)


@app.command("rehearse")
@reported
def rehearse_keys(
    campaign: Annotated[Path, typer.Option(help="Campaign file of the next epoch.")],
    keys: Annotated[list[str], typer.Option(help="Key directory or env:NAME; once for each party.")],
    party: Annotated[PartyName, typer.Option(help="Who: a party may rehearse with its own key.")] = PartyName.both,
    as_json: JsonOption = False,
) -> None:
    """Prove before a switch that the parties open what clients of this campaign will send; exit status 1 if not.

    Made-up reports go through the jobs in a temporary directory; nothing is kept, charged or sent.

    Example: hushcount keys rehearse --campaign next.json --keys keys
    """
    from pipelines.jobs.rehearse import rehearse

    parties = {PartyName.both: OPENING_ROLES, PartyName.analyzer: ("analyzer",), PartyName.aux_server: ("aux_server",)}
    result = rehearse(campaign, keys, parties[party])
    if as_json:
        show_json(result.data())
    else:
        console = out_console()
        for sentence in result.sentences():
            console.print(sentence, soft_wrap=True, markup=False)
    if not result.passed:
        raise typer.Exit(1)


def _roles(name: RoleName) -> tuple[Role, ...] | None:
    roles: dict[RoleName, tuple[Role, ...]] = {
        RoleName.analyzer: ("analyzer",),
        RoleName.aux_server: ("aux_server",),
        RoleName.operator: ("operator",),
        RoleName.shuffler: ("shuffler",),
        RoleName.aux_signer: ("aux_signer",),
        RoleName.handing_on: ("shuffler", "aux_signer"),
    }
    return roles.get(name)


def _show(directory: Path, as_json: bool) -> None:
    listing, now = read_listing(directory), datetime.now(timezone.utc)
    facts = [_facts(directory, listing, position, now) for position in range(len(listing.keys))]
    if as_json:
        show_json({"directory": str(directory), "keys": facts})
        return
    console = out_console()
    console.print(f"keys in {directory}", markup=False, soft_wrap=True)
    for fact in facts:
        console.print(f"  {fact['role']} {fact['id']}, {_sentence(fact)}", soft_wrap=True, markup=False)
        console.print(f"    public key {fact['key']}", soft_wrap=True)


def _facts(directory: Path, listing: KeyListing, position: int, now: datetime) -> dict[str, Any]:
    key = listing.keys[position]
    until, state = listing.opened_until(key), listing.state(key, now)
    due = state == "expiring" and until is not None and until <= now
    return {
        "role": key.role,
        "id": key.id,
        "state": state,
        "key": key.key,
        "not_before": key.not_before.isoformat(),
        "not_after": key.not_after.isoformat(),
        "opened_until": None if until is None else until.isoformat(),
        "retired_at": None if key.retired_at is None else key.retired_at.isoformat(),
        "may_be_retired": due,
        "private_key_here": key_path(directory, key.role, key.id).exists(),
    }


def _sentence(fact: dict[str, Any]) -> str:
    """Return state and dates of a key in words."""
    text = f"{fact['state']}, valid {fact['not_before']} to {fact['not_after']}"
    if fact["retired_at"] is not None:
        return f"{text}, retired on {fact['retired_at']}"
    if fact["may_be_retired"]:
        text += f", opened with until {fact['opened_until']}: may be retired"
    elif fact["state"] == "expiring" and fact["opened_until"] is not None:
        text += f", opened with until {fact['opened_until']}"
    return text if fact["private_key_here"] else f"{text}; its private key is not here"
