"""hushcount campaign audit: compare the histories of a campaign that collectors show in several places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.delegation import CampaignSignature, read_campaign_signature, verify_campaign
from hushcount.campaigns.forks import Seen, forks, other_restarts, seen_in_file, seen_in_log
from hushcount.campaigns.log import LOG_BYTES, CampaignLog, parse_log
from hushcount.campaigns.public_keys import VerifyKeyPart
from hushcount.campaigns.signatures import SignatureError, signature_path
from hushcount.clock import MACHINE
from hushcount.delivery import Site
from hushcount.delivery.publication import fetch_documents, read_publication
from hushcount.errors import UsageError
from hushcount.formats.reading import parse_object, read_file
from keys import directories
from pipelines.console import options
from pipelines.console.answer import Answer, note
from pipelines.console.tables import Table


def audit_campaign(
    places: Annotated[
        list[str], Argument(help="Collectors, as https://a.example.com; saved logs; campaign files of apps.")
    ],
    campaign: options.CampaignId = None,
    config: options.Config = options.HERE,
    keys: Annotated[
        Path | None, Option(help="The operator's public.json: check the signature of each campaign file.")
    ] = None,
    plain_http: Annotated[bool, Option("--plain-http", help="Permit http:// to another machine.")] = False,
) -> Answer:
    """Use it to check that everybody was shown the same history and restarts. Exit status 1: not so, or not signed.

    Run it from several networks: save /v1/campaigns/ID/log of each collector there, and compare all files here.

    Example: hushcount campaign audit --campaign settings https://a.example.com https://b.example.com log-at-home.json
    """
    if campaign is None:
        # Imported only here, because an auditor who gives --campaign needs no deployment.
        from pipelines.deployment.campaigns import require_campaign
        from pipelines.deployment.settings import Deployment

        campaign = require_campaign(Deployment.read(config).campaigns, None).campaign
    trusted = None if keys is None else directories.verify_keys(keys, "operator")
    seen: list[Seen] = []
    unsigned: list[str] = []
    for place in places:
        read = _of_site(Site(place, plain=plain_http), campaign) if "://" in place else _of_file(Path(place))
        for one, signature in read:
            if (one.campaign if isinstance(one, CampaignLog) else one.id) != campaign:
                raise UsageError(f"{place} is not of campaign {campaign}: compare files of one campaign")
            if isinstance(one, CampaignLog):
                seen.append(seen_in_log(f"log of {place}", one))
            else:
                seen.append(seen_in_file(f"campaign file of {place}", one, signature))
                unsigned += _fault(trusted, one, signature, place)
    if len(places) == 1:
        note("one place alone cannot show a fork: give other places too, such as a log that was saved elsewhere")
    return _answer(seen, unsigned)


def _of_site(site: Site, campaign: str) -> Iterator[tuple[Campaign | CampaignLog, CampaignSignature | None]]:
    """Yield the newest campaign file and the log of epochs that a collector shows to clients."""
    shown = read_publication(fetch_documents(site, campaign, {}, MACHINE.seconds()), campaign)
    if shown.log is None:
        raise UsageError(f"{site.address} serves no log of campaign {campaign}: ask its operator")
    yield shown.campaign, shown.signature
    yield shown.log, None


def _of_file(path: Path) -> Iterator[tuple[Campaign | CampaignLog, CampaignSignature | None]]:
    raw = read_file(path, "log or campaign file", LOG_BYTES)
    if "entries" in parse_object(raw, str(path)):
        yield parse_log(raw, str(path)), None
    else:
        beside = signature_path(path)
        yield Campaign.read(path), read_campaign_signature(beside) if beside.exists() else None


def _fault(
    trusted: Sequence[VerifyKeyPart] | None, campaign: Campaign, signature: CampaignSignature | None, place: str
) -> list[str]:
    if trusted is None:
        return []
    if signature is None:
        return [f"the campaign file of {place} is unsigned"]
    try:
        verify_campaign(trusted, campaign, signature)
    except SignatureError as error:
        return [f"{place}: {error}"]
    return []


def _answer(seen: list[Seen], unsigned: list[str]) -> Answer:
    found, restarts = forks(seen), other_restarts(seen)
    rows = [(one.place, str(one.newest), one.heads[one.newest].hex() if one.heads else "none") for one in seen]
    table = Table("", ("place", "newest epoch", "head"), rows)
    data = {
        "places": [
            {"place": one.place, "heads": {str(epoch): head.hex() for epoch, head in one.heads.items()}} for one in seen
        ],
        "forks": [{"epoch": fork.epoch, "places": list(fork.places)} for fork in found],
        "restarts": [asdict(one) for one in restarts],
        "unsigned": unsigned,
    }
    pairs = Table("", ("fork at epoch", "between", "and"), [(str(fork.epoch), *fork.places) for fork in found])
    faults = list(unsigned)
    if restarts:
        faults.insert(
            0, f"{restarts[0]}: publish the same signature everywhere; if you are not the operator, ask the operator"
        )
    if found:
        first = min(found, key=lambda fork: fork.epoch)
        faults.insert(
            0, f"{first}: somebody was shown another history; send no report to this campaign, and ask the operator"
        )
    return Answer(data, [table, pairs] if found else [table], "; ".join(faults))
