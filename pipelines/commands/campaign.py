"""hushcount campaign: what every party agrees on, before anything is collected."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.signatures import read_signature, signature_path, verify_campaign
from hushcount.errors import UsageError
from hushcount.formats.whole_files import write_new
from hushcount.oracles.catalogue import CATALOGUE
from keys import store
from pipelines.console.command_table import new_app
from pipelines.console.common import JsonOption, moment, progress_console, reported, show_facts, show_json
from pipelines.console.mechanism_options import parse_settings
from pipelines.console.numbers import MOST_REPORTS
from pipelines.jobs.new_campaign import create_campaign

_HIGH_EPSILON = 8.0
app = new_app("Make, show, sign and describe campaign files.")


@app.command("new")
@reported
def new_campaign(
    id: Annotated[str, typer.Option(help="Name of the campaign: lower case letters, digits, dot, dash.")],
    keys: Annotated[
        list[Path], typer.Option(help="Directory with public.json of hushcount keys new; once for each party.")
    ],
    out: Annotated[Path, typer.Option(help="Campaign file to write, .json or .toml.")],
    mechanism: Annotated[
        str | None, typer.Option(help=f"{', '.join(CATALOGUE)}; leave it out for discovery only.")
    ] = None,
    epsilon: Annotated[float | None, typer.Option(help="Local budget of one report.")] = None,
    dictionary: Annotated[Path | None, typer.Option(help="Known items, one a line.")] = None,
    open_domain: Annotated[bool, typer.Option("--open-domain", help="Any string is an item.")] = False,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="name=value: k, m, s, p, B, objective (l2, the default, or mse), or target_share."),
    ] = None,
    cap: Annotated[int, typer.Option(help="Reports of one client that are forwarded.")] = 1,
    min_batch: Annotated[int, typer.Option(help="Nothing is released below so many reports.", max=MOST_REPORTS)] = 1000,
    delta: Annotated[float, typer.Option(help="Delta at which the shuffled epsilon of one report is stated.")] = 1e-8,
    memory: Annotated[
        bool, typer.Option("--memory", help="Clients repeat their answer to a value for the whole epoch.")
    ] = False,
    memory_values: Annotated[
        int | None,
        typer.Option(help="With --memory: different values that a client answers in an epoch; 1 if not given."),
    ] = None,
    epoch: Annotated[int, typer.Option(help="Number of the collection period.")] = 1,
    begins: Annotated[
        str | None,
        typer.Option(help="When clients get it, as in 2026-12-01T00:00:00Z: it takes the keys active then; or now."),
    ] = None,
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
    if memory_values is not None and not (memory and memory_values > 0):
        raise UsageError(f"memory-values is {memory_values}, must be at least 1 and given with --memory")
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
        store.read_public(keys, None if begins is None else moment("begins", begins)),
        out.parent,
        mechanism=mechanism,
        epsilon=epsilon,
        dictionary=dictionary,
        settings=settings,
        objective=objective,
        shuffle={"cap": cap, "minimum_batch": min_batch, "delta": delta},
        discovery={"delta": 1e-8, **discovery} if discovery else None,
        memory=(memory_values or 1) if memory else 0,
        epoch=epoch,
    )
    campaign.write(out)
    if epsilon is not None and epsilon > _HIGH_EPSILON:
        progress_console().print(
            f"warning: epsilon is {epsilon:g}, above {_HIGH_EPSILON:g}: one report alone multiplies the odds "
            f"between two values by up to {math.exp(epsilon):,.0f}, so whoever opens it all but knows the value",
            markup=False, soft_wrap=True,
        )  # fmt: skip
    _show_campaign(campaign, out, as_json)


@app.command("show")
@reported
def show_campaign(
    campaign: Annotated[Path, typer.Option(help="Campaign file.")],
    as_json: JsonOption = False,
) -> None:
    """Check a campaign file and show what it fixes.

    Example: hushcount campaign show --campaign words.json
    """
    _show_campaign(Campaign.read(campaign), campaign, as_json)


@app.command("redact")
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


@app.command("sign")
@reported
def sign_campaign(
    campaign: Annotated[Path, typer.Option(help="Campaign file.")],
    keys: Annotated[str, typer.Option(help="Directory with the operator's private key, or env:NAME.")],
    as_json: JsonOption = False,
) -> None:
    """Sign a campaign file as its operator: the signature goes beside it, and serves the redacted file too.

    Example: hushcount campaign sign --campaign words.json --keys operator-keys
    """
    fingerprint = Campaign.read(campaign).fingerprint
    signature = store.active_key(keys, "operator").sign(fingerprint, "campaign")
    path = signature_path(campaign)
    try:
        write_new(path, signature.model_dump_json() + "\n", 0o644)
    except FileExistsError:
        raise UsageError(f"signature {path} exists and is never overwritten: remove it first") from None
    _show_signature(f"signature {path}", signature.key_id, fingerprint, as_json)


@app.command("verify")
@reported
def verify_campaign_file(
    campaign: Annotated[Path, typer.Option(help="Campaign file.")],
    keys: Annotated[Path, typer.Option(help="The operator's public.json, or its directory, from a way you trust.")],
    signature: Annotated[
        Path | None, typer.Option(help="Signature file; beside the campaign file when not given.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check the operator's signature of a campaign file; exit status 1 if it is wrong.

    Example: hushcount campaign verify --campaign words.json --keys operator/public.json
    """
    held = read_signature(signature or signature_path(campaign))
    signed = Campaign.read(campaign)
    key = verify_campaign(store.verify_keys(keys, "operator"), signed, held)
    _show_signature(f"campaign file {campaign} is signed by the operator", key.id, signed.fingerprint, as_json)


@app.command("schema")
@reported
def schema() -> None:
    """Print the JSON Schema of campaign files.

    Example: hushcount campaign schema > campaign.schema.json
    """
    show_json(Campaign.model_json_schema())


def _show_signature(title: str, key: str, fingerprint: bytes, as_json: bool) -> None:
    facts = {"key": key, "fingerprint": fingerprint.hex()}
    if as_json:
        show_json(facts)
        return
    show_facts(title, facts)


def _show_campaign(campaign: Campaign, path: Path, as_json: bool) -> None:
    facts: dict[str, Any] = {"id": campaign.id, "epoch": campaign.epoch, "fingerprint": campaign.fingerprint.hex()}
    facts |= {
        "cap": campaign.shuffle.cap,
        "minimum_batch": campaign.shuffle.minimum_batch,
        "delta": campaign.shuffle.delta,
    }
    if campaign.memory:
        facts |= {"memory_values": campaign.memory_values, "epsilon_of_an_epoch": campaign.epoch_epsilon}
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
