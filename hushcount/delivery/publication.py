"""What a client needs of a campaign, read from the documents of a collector: none of it is believed yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import quote

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.delegation import CampaignSignature, parse_campaign_signature
from hushcount.campaigns.dictionary import MOST_BYTES, Dictionary, parse_dictionary
from hushcount.campaigns.log import LOG_BYTES, CampaignLog, parse_log
from hushcount.campaigns.signatures import SIGNATURE_BYTES
from hushcount.delivery.documents import Document, NotServed, fetch
from hushcount.delivery.site import Site
from hushcount.errors import FormatError
from hushcount.formats.reading import RECORD_BYTES, parse_model
from hushcount.items import MOST_SPELLED_BYTES

Documents = Mapping[str, Document]
"""Documents by name: campaign, log, dictionary."""
Check = Callable[[Campaign, CampaignSignature | None], object]
"""What raises Untrusted if the policy refuses a campaign file."""


@dataclass(frozen=True)
class Publication:
    """One epoch of a campaign as a collector serves it: the file, its signature, the log and the dictionary."""

    campaign: Campaign
    signature: CampaignSignature | None
    log: CampaignLog | None
    dictionary: Dictionary | None


def fetch_documents(
    site: Site, id: str, kept: Documents, now: float, check: Check | None = None, most_bytes: int = MOST_BYTES
) -> dict[str, Document]:
    """Fetch the current campaign file, and what belongs to it unless that is kept.

    Args:
        check: what raises if the policy refuses the campaign file.
        most_bytes: of the dictionary.

    Raises:
        NoAnswer, NotServed: it cannot be had now.
        FormatError: it is not a campaign file.
        Untrusted: it was refused by `check`, before what it claims to be long was fetched.
    """
    base = f"/v1/campaigns/{quote(id, safe='')}"
    before = kept.get("campaign")
    fetched = {"campaign": fetch(site, base, RECORD_BYTES, now)}
    if before is not None and before.data == fetched["campaign"].data:
        return {**kept, **fetched}
    campaign = _campaign(fetched["campaign"])
    if check is not None:
        check(campaign, _signature(fetched["campaign"]))
    # The policy says whether it needs the log.
    with suppress(NotServed):
        fetched["log"] = fetch(site, f"{base}/log", LOG_BYTES, now)
    if campaign.dictionary is None:
        return fetched
    # Not by its path: the dictionary of each epoch has a name of its own.
    listed = None if before is None else _campaign(before).dictionary
    if "dictionary" in kept and listed is not None and listed.digest == campaign.dictionary.digest:
        fetched["dictionary"] = kept["dictionary"]
    else:
        most = min(most_bytes, campaign.dictionary.items * (MOST_SPELLED_BYTES + 2) + 3)
        path = f"{base}/dictionary?fingerprint={campaign.fingerprint.hex()}"
        fetched["dictionary"] = fetch(site, path, most, now)
    return fetched


def read_publication(documents: Documents, id: str, most_bytes: int = MOST_BYTES) -> Publication:
    """Return what documents hold; of a dictionary no more than `most_bytes` are unpacked.

    Raises:
        FormatError, UsageError: one of them is not what it should be, or they do not belong together.
    """
    campaign = _campaign(documents["campaign"])
    if campaign.id != id:
        raise FormatError(f"the collector serves campaign {campaign.id} as {id}: ask its operator")
    log = documents.get("log")
    return Publication(
        campaign,
        _signature(documents["campaign"]),
        None if log is None else parse_log(log.data, "the campaign's log"),
        _dictionary(campaign, documents.get("dictionary"), most_bytes),
    )


def _campaign(document: Document) -> Campaign:
    return parse_model(Campaign, document.data, "the campaign file")


def _signature(document: Document) -> CampaignSignature | None:
    raw, name = document.signature, "the campaign's signature"
    if raw is not None and len(raw) > SIGNATURE_BYTES:
        raise FormatError(f"{name} has {len(raw):,} bytes, must have at most {SIGNATURE_BYTES:,}")
    return None if raw is None else parse_campaign_signature(raw, name)


def _dictionary(campaign: Campaign, document: Document | None, most_bytes: int) -> Dictionary | None:
    part = campaign.dictionary
    if part is None:
        return None
    if document is None:
        raise FormatError("the campaign's dictionary is missing: fetch it with the campaign")
    dictionary = parse_dictionary(document.data, part.items, most_bytes)
    if not part.is_of(dictionary):
        raise FormatError("the dictionary is not the campaign's: the collector changes epochs now, or serves another")
    return dictionary
