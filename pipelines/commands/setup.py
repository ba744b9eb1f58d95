"""hushcount keys, hushcount campaign: what is made once, before anything is collected."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from hushcount.campaign import Campaign
from hushcount.errors import UsageError
from hushcount.systems import SYSTEMS
from keys import store
from keys.private import ROLES, Role
from pipelines.commands.common import JsonOption, out_console, reported, show_facts, show_json
from pipelines.commands.settings import parse_settings
from pipelines.create import create_campaign


class RoleName(str, Enum):
    """Whose keys to make."""

    both = "both"
    analyzer = "analyzer"
    aux_server = "aux-server"


_ROLES: dict[RoleName, tuple[Role, ...]] = {
    RoleName.both: ROLES,
    RoleName.analyzer: ("analyzer",),
    RoleName.aux_server: ("aux_server",),
}
keys_app = typer.Typer(help="Make and show key pairs.", no_args_is_help=True)
campaign_app = typer.Typer(help="Make, show and describe campaign files.", no_args_is_help=True)


@keys_app.command("new")
@reported
def new_keys(
    out: Annotated[Path, typer.Option(help="Directory for the key files.")],
    days: Annotated[int, typer.Option(help="How long clients may seal to these keys.")] = 365,
    role: Annotated[
        RoleName, typer.Option(help="Whose: a party that runs by itself makes its own alone.")
    ] = RoleName.both,
    as_json: JsonOption = False,
) -> None:
    """Make a key pair for the analyzer and one for the auxiliary server, or one of them.

    Example: hushcount keys new --out keys
    """
    _show_keys(store.create(out, days, _ROLES[role]), str(out), as_json)


@keys_app.command("show")
@reported
def show_keys(
    keys: Annotated[Path, typer.Option(help="Directory of hushcount keys new.")],
    as_json: JsonOption = False,
) -> None:
    """Show ids, public keys and validity; never a private key.

    Example: hushcount keys show --keys keys
    """
    _show_keys(store.read_public([keys]), str(keys), as_json)


def _show_keys(part: store.PublicFile, directory: str, as_json: bool) -> None:
    if as_json:
        show_json(part.model_dump(mode="json"))
        return
    console = out_console()
    console.print(f"keys in {directory}", markup=False, soft_wrap=True)
    for role, listed in (("analyzer", part.analyzer), ("aux_server", part.aux_server)):
        for key in listed:
            console.print(
                f"  {role} {key.id}, valid {key.not_before.isoformat()} to {key.not_after.isoformat()}", soft_wrap=True
            )
            console.print(f"    public key {key.key}", soft_wrap=True)


@campaign_app.command("new")
@reported
def new_campaign(
    id: Annotated[str, typer.Option(help="Name of the campaign: lower case letters, digits, dot, dash.")],
    keys: Annotated[
        list[Path], typer.Option(help="Directory with public.json of hushcount keys new; once for each party.")
    ],
    out: Annotated[Path, typer.Option(help="Campaign file to write, .json or .toml.")],
    mechanism: Annotated[
        str | None, typer.Option(help=f"{', '.join(SYSTEMS)}; leave it out for discovery only.")
    ] = None,
    epsilon: Annotated[float | None, typer.Option(help="Local budget of one report.")] = None,
    dictionary: Annotated[Path | None, typer.Option(help="Known items, one a line.")] = None,
    open_domain: Annotated[bool, typer.Option("--open-domain", help="Any string is an item.")] = False,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="name=value: k, m, s, p, B, objective (l2, the default, or mse), or target_share."),
    ] = None,
    cap: Annotated[int, typer.Option(help="Reports of one client that are forwarded.")] = 1,
    min_batch: Annotated[int, typer.Option(help="Nothing is released below so many reports.")] = 1000,
    delta: Annotated[float, typer.Option(help="Delta at which the shuffled epsilon of one report is stated.")] = 1e-8,
    epoch: Annotated[int, typer.Option(help="Number of the collection period.")] = 1,
    discovery_epsilon: Annotated[float | None, typer.Option(help="Turns discovery on.")] = None,
    discovery_delta: Annotated[float | None, typer.Option(help="Delta of discovery; 1e-8 if not given.")] = None,
    discovery_relation: Annotated[str | None, typer.Option(help="replace-one, if not given, or add-remove.")] = None,
    discovery_rule: Annotated[str | None, typer.Option(help="optimal, if not given, or laplace.")] = None,
    max_value_bytes: Annotated[
        int | None, typer.Option(help="Longest value to discover, in UTF-8 bytes; 64 if not given.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write a campaign file: what clients and parties must agree on, validated and with a fingerprint.

    Example: hushcount campaign new --id w --mechanism ais --epsilon 1 --dictionary w.txt --keys keys --out w.json
    """
    settings, objective = parse_settings(set_ or [])
    if dictionary is not None and open_domain:
        raise UsageError("give --dictionary or --open-domain, not both")
    if mechanism is not None and dictionary is None and not open_domain:
        raise UsageError("give --dictionary FILE, or --open-domain for any string")
    discovery = _given(
        epsilon=discovery_epsilon,
        delta=discovery_delta,
        relation=discovery_relation,
        rule=discovery_rule,
        max_value_bytes=max_value_bytes,
    )
    if discovery and discovery_epsilon is None:
        raise UsageError(f"{', '.join(discovery)} of discovery given without --discovery-epsilon, which turns it on")
    campaign = create_campaign(
        id,
        store.read_public(keys),
        out.parent,
        mechanism=mechanism,
        epsilon=epsilon,
        dictionary=dictionary,
        settings=settings,
        objective=objective,
        shuffle={"cap": cap, "minimum_batch": min_batch, "delta": delta},
        discovery={"delta": 1e-8, **discovery} if discovery else None,
        epoch=epoch,
    )
    campaign.write(out)
    _show_campaign(campaign, out, as_json)


@campaign_app.command("show")
@reported
def show_campaign(
    campaign: Annotated[Path, typer.Option(help="Campaign file.")],
    as_json: JsonOption = False,
) -> None:
    """Check a campaign file and show what it fixes.

    Example: hushcount campaign show --campaign words.json
    """
    _show_campaign(Campaign.read(campaign), campaign, as_json)


@campaign_app.command("redact")
@reported
def redact_campaign(
    campaign: Annotated[Path, typer.Option(help="Campaign file.")],
    out: Annotated[Path, typer.Option(help="Campaign file to write, .json or .toml.")],
    as_json: JsonOption = False,
) -> None:
    """Write the campaign file for the shuffler and the auxiliary server: without the key of the discovery hash.

    Example: hushcount campaign redact --campaign words.json --out parties.json
    """
    redacted = Campaign.read(campaign).redacted()
    redacted.write(out)
    _show_campaign(redacted, out, as_json)


@campaign_app.command("schema")
@reported
def schema() -> None:
    """Print the JSON Schema of campaign files.

    Example: hushcount campaign schema > campaign.schema.json
    """
    show_json(Campaign.model_json_schema())


def _show_campaign(campaign: Campaign, path: Path, as_json: bool) -> None:
    facts: dict[str, Any] = {"id": campaign.id, "epoch": campaign.epoch, "fingerprint": campaign.fingerprint.hex()}
    facts |= {
        "cap": campaign.shuffle.cap,
        "minimum_batch": campaign.shuffle.minimum_batch,
        "delta": campaign.shuffle.delta,
    }
    for role, listed in (("analyzer", campaign.keys.analyzer), ("aux_server", campaign.keys.aux_server)):
        facts[f"{role}_keys"] = ", ".join(f"{key.id} to {key.not_after.date()}" for key in listed)
    if campaign.dictionary is not None:
        facts["dictionary"] = f"{campaign.dictionary.path}, {campaign.dictionary.items:,} items"
    if campaign.mechanism is not None:
        mechanism = campaign.require_frequency()
        facts["domain"] = "open" if campaign.dictionary is None else "the dictionary and 'other'"
        facts |= {
            "mechanism": campaign.mechanism.name,
            "parameters": dict(campaign.mechanism.parameters),
            "epsilon_spent": mechanism.epsilon,
            "p": mechanism.p_star,
            "q": mechanism.q_star,
            "standard_error_of_100000_reports": float(mechanism.variance(100_000, 0.0)) ** 0.5,
            "report_bytes": mechanism.report_bytes,
            "sealed_bytes": campaign.sealed_bytes("reports"),
        }
    if campaign.discovery is not None:
        rule = campaign.require_keep_rule()
        facts |= {
            "discovery_epsilon": rule.epsilon,
            "discovery_delta": rule.delta,
            "discovery_relation": rule.relation,
            "discovery_sealed_bytes": campaign.sealed_bytes("discovery"),
            "clients_for_even_chance": rule.count_for(0.5),
            "clients_for_95_percent": rule.count_for(0.95),
        }
    if as_json:
        show_json({**facts, "campaign": campaign.model_dump(mode="json")})
        return
    show_facts(f"campaign file {path}", facts)


def _given(**options: Any) -> dict[str, Any]:
    """Return the options that were given."""
    return {name: value for name, value in options.items() if value is not None}
