"""hushcount campaign: sign, delegate, restart and verify campaign files, and write the policy of an app."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from hushcount.campaigns.campaign import GREATEST_EPOCH, Campaign
from hushcount.campaigns.delegation import (
    CampaignSignature,
    read_campaign_signature,
    read_delegation,
    read_restart,
    verify_campaign,
)
from hushcount.campaigns.signatures import signature_path
from hushcount.errors import UsageError
from hushcount.formats.whole_files import write_once
from hushcount.policy import terms_of
from keys import directories, vouching
from keys.listing import listed_keys
from pipelines.console import options
from pipelines.console.answer import Answer
from pipelines.console.tables import facts

OperatorKeys = Annotated[Path, Option("--keys", help="The operator's public.json or its directory.")]
PrivateKeys = Annotated[str, Option("--keys", help="Directory with the operator's private key, or env:NAME.")]
Serial = Annotated[
    int,
    Option(
        help="1 for the campaign's first delegation or restart, then one more each time; smaller ones then end.",
        min=1,
        max=GREATEST_EPOCH,
    ),
]


def sign_campaign(
    campaign: options.CampaignFile,
    keys: Annotated[str, Option(help="Directory with the signer's private key, or env:NAME.")],
    delegation: Annotated[Path | None, Option(help="Sign as the publisher that this file names.")] = None,
    restart: Annotated[Path | None, Option(help="Include this file of hushcount campaign restart.")] = None,
) -> Answer:
    """Use it so that clients accept the file. It writes the signature beside it, also valid for the redacted file.

    Example: hushcount campaign sign --campaign words.json --keys operator-keys
    """
    file, given = Campaign.read(campaign), None if delegation is None else read_delegation(delegation)
    signer = directories.active_key(keys, "operator" if given is None else "publisher")
    said = None if restart is None else read_restart(restart)
    signature, path = vouching.sign_campaign(signer, file, given, said), signature_path(campaign)
    _write(path, "signature", signature.text())
    return _signed(f"signature {path}", signature, file)


def delegate(
    campaign: options.CampaignFile,
    keys: PrivateKeys,
    publisher: Annotated[Path, Option(help="The publisher's public.json or its directory; its newest key counts.")],
    last_epoch: Annotated[int, Option(help="Last epoch that the publisher may sign.", min=1, max=GREATEST_EPOCH)],
    serial: Serial,
    out: Annotated[Path, Option(help="Delegation file to write.")],
    evaluator_keys: Annotated[
        list[Path] | None,
        Option(
            help="The evaluator's public.json or its directory: the publisher may use its keys, one for each epoch."
        ),
    ] = None,
) -> Answer:
    """Use it to keep the operator's key offline: a publisher then signs new dictionaries and what follows.

    Example: hushcount campaign delegate --campaign w.json --keys op --publisher pub --last-epoch 9 --serial 1 --out d
    """
    operator, newest = directories.active_key(keys, "operator"), directories.verify_keys(publisher, "publisher")[-1]
    file, named = Campaign.read(campaign), listed_keys(evaluator_keys or ())
    if file.is_oblivious != bool(named):
        needs = "is oblivious: give" if file.is_oblivious else "has no evaluator: leave out"
        raise UsageError(f"campaign {file.id} {needs} --evaluator-keys, the evaluator's keys for later epochs")
    made = vouching.delegate(operator, file, newest, last_epoch, serial, named)
    _write(out, "delegation", made.model_dump_json(indent=2) + "\n")
    data = {"publisher": newest.id, "operator": operator.id, "serial": serial, "terms": made.terms}
    data["last_epoch"] = last_epoch
    if named:
        data["evaluator_keys"] = ", ".join(key.id for key in named)
    return Answer(data, [facts(f"delegation {out}", data)])


def restart(
    campaign: options.CampaignFile,
    keys: PrivateKeys,
    serial: Serial,
    out: Annotated[Path, Option(help="Restart file to write.")],
) -> Answer:
    """Use it when a publisher's key was stolen: clients then follow this campaign file, whatever they accepted later.

    It ends all delegations with a smaller serial. Give its file to `hushcount campaign sign` with the next campaign
    file.

    Example: hushcount campaign restart --campaign words.json --keys operator --serial 2 --out restart.json
    """
    operator, file = directories.active_key(keys, "operator"), Campaign.read(campaign)
    made = vouching.restart(operator, file, serial)
    _write(out, "restart", made.model_dump_json(indent=2) + "\n")
    data = {"operator": operator.id, "serial": serial, "epoch": made.epoch, "head": made.head}
    return Answer(data, [facts(f"restart {out}", data)])


def verify_campaign_file(
    campaign: options.CampaignFile,
    keys: Annotated[Path, Option(help="The operator's public.json or its directory, from a source you trust.")],
    signature: Annotated[Path | None, Option(help="Signature file.", show_default="beside the campaign file")] = None,
) -> Answer:
    """Use it before you trust a campaign file. Exit status 1: the operator did not sign it.

    Example: hushcount campaign verify --campaign words.json --keys operator/public.json
    """
    held = read_campaign_signature(signature or signature_path(campaign))
    signed = Campaign.read(campaign)
    verify_campaign(directories.verify_keys(keys, "operator"), signed, held)
    who = "the operator" if held.delegation is None else "a publisher to whom the operator delegates"
    return _signed(f"campaign file {campaign} is signed by {who}", held, signed)


def write_policy(
    campaign: options.CampaignFile,
    keys: OperatorKeys,
    out: Annotated[Path, Option(help="Policy file to write, for apps.")] = Path("policy.json"),
    host: Annotated[
        list[str] | None, Option(help="Only host of which the campaign may learn paths; repeatable.")
    ] = None,
) -> Answer:
    """Use it to begin an app. The policy allows the cost of this campaign and no more: read it, ship it with the app.

    Example: hushcount campaign policy --campaign words.json --keys operator/public.json --out policy.json
    """
    allowed = Campaign.read(campaign)
    terms = terms_of(allowed, directories.verify_keys(keys, "operator"), allowed.read_dictionary(), host or ())
    _write(out, "policy", terms.text())
    data = terms.model_dump(mode="json")
    shown = data | {"operator_keys": ", ".join(key.id for key in terms.operator_keys)}
    return Answer(data, [facts(f"policy {out}", shown)])


def _write(path: Path, what: str, text: str) -> None:
    write_once(path, what, text, if_there="exists and is never overwritten: remove it first")


def _signed(title: str, signature: CampaignSignature, campaign: Campaign) -> Answer:
    data: dict[str, object] = {"key": signature.key_id, "fingerprint": campaign.fingerprint.hex()}
    if signature.serial:
        data["serial"] = signature.serial
    return Answer(data, [facts(title, data)])
