"""A campaign's documents as a collector serves them: the campaign file, the log and the dictionary, not yet checked.

A copy of each document is kept, with the time at which to ask for the document again. No request is conditional,
because a collector could give each client a different ETag, and then recognise the client by its ETag.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import quote

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.delegation import CampaignSignature, parse_campaign_signature
from hushcount.campaigns.dictionary import MOST_BYTES, Dictionary, parse_dictionary
from hushcount.campaigns.log import LOG_BYTES, CampaignLog, parse_log
from hushcount.campaigns.signatures import SIGNATURE_BYTES
from hushcount.delivery.database import Database
from hushcount.delivery.exchange import Reply, Request, exchange
from hushcount.delivery.site import Site
from hushcount.delivery.waits import LONGEST_WAIT, random_seconds
from hushcount.errors import FormatError, HushcountError
from hushcount.formats.reading import RECORD_BYTES, parse_model
from hushcount.items import MOST_SPELLED_BYTES

LEAST_AGE = 3_600.0
"""Seconds. The least age of a document at which it is fetched again; with a shorter age, a collector would often see
when this device is in use.
"""
_AGE = re.compile(r"(?:^|[,\s])max-age=([0-9]{1,9})(?:$|[,\s])")


class NotServed(HushcountError):
    """The collector answered, but its answer is not the document."""


@dataclass(frozen=True)
class Document:
    """One document that a collector served.

    Attributes:
        data: the bytes of the document.
        signature: the signature file, sent in a header as a byte sequence of RFC 8941; None if no signature came.
        refresh_at: when to ask for the document again, in seconds since 1970.
        at: when the collector answered, by its own clock, in seconds since 1970; None if that is not known.
    """

    data: bytes
    signature: bytes | None
    refresh_at: float
    at: float | None = None


def fetch(site: Site, path: str, most: int, now: float) -> Document:
    """Fetch a document of at most `most` bytes.

    The request contains no client token, and nothing else that a collector gave to this client alone.

    Raises:
        NoAnswer: no whole answer came.
        NotServed: the collector answered with another status than 200.
    """
    reply = exchange(site, Request("GET", path), most)
    if reply.status != 200:
        raise NotServed(f"the collector answered {reply.status} to a request for {path.partition('?')[0]}")
    signature = _signature_in(reply.headers.get("campaign-signature", ""))
    return Document(reply.body, signature, _refresh_at(reply, now), reply.date)


def _signature_in(text: str) -> bytes | None:
    try:
        return base64.b64decode(text.strip(":"), validate=True) if text else None
    except (binascii.Error, ValueError):
        return None


def _refresh_at(reply: Reply, now: float) -> float:
    """Return when to ask again: after the collector's max-age, limited to 1 to 24 hours, plus a random time.

    The random time is at most half of the max-age; it hides the time of the last request.
    """
    match = _AGE.search(reply.headers.get("cache-control", "").lower())
    age = min(max(0.0 if match is None else float(match[1]), LEAST_AGE), LONGEST_WAIT)
    return now + age + random_seconds(age / 2.0)


def kept_documents(database: Database, campaign: str) -> dict[str, Document]:
    """Return the documents of a campaign that are kept in the database, by name."""
    with database.change() as tables:
        rows = tables.execute(
            "SELECT name, data, signature, refresh_at FROM documents WHERE campaign = ?", (campaign,)
        ).fetchall()
    return {name: Document(bytes(data), signature, at) for name, data, signature, at in rows}


def keep_documents(database: Database, campaign: str, documents: dict[str, Document]) -> None:
    """Keep these documents, and delete all other documents of the campaign."""
    with database.change() as tables:
        tables.execute("DELETE FROM documents WHERE campaign = ?", (campaign,))
        tables.executemany(
            "INSERT INTO documents VALUES (?, ?, ?, ?, ?)",
            [(campaign, name, one.data, one.signature, one.refresh_at) for name, one in documents.items()],
        )


def note_refresh(database: Database, campaign: str, refresh_at: float) -> None:
    """Store when to ask again for the campaign file, which has not changed."""
    with database.change() as tables:
        tables.execute(
            "UPDATE documents SET refresh_at = ? WHERE campaign = ? AND name = 'campaign'", (refresh_at, campaign)
        )


Documents = Mapping[str, Document]
"""Documents by name; the names are campaign, log and dictionary."""
Check = Callable[[Campaign, CampaignSignature | None], object]
"""A function that raises Untrusted if the policy refuses a campaign file."""


@dataclass(frozen=True)
class Publication:
    """One epoch of a campaign as a collector serves it: the campaign file, its signature, log and dictionary."""

    campaign: Campaign
    signature: CampaignSignature | None
    log: CampaignLog | None
    dictionary: Dictionary | None


def fetch_documents(
    site: Site, id: str, kept: Documents, now: float, check: Check | None = None, most_bytes: int = MOST_BYTES
) -> dict[str, Document]:
    """Fetch the current campaign file, and the log and dictionary that belong to this file and are not yet kept.

    Args:
        check: function that raises Untrusted if the policy refuses the campaign file.
        most_bytes: most bytes of the dictionary.

    Raises:
        NoAnswer, NotServed: one of the documents cannot be fetched now.
        FormatError: what the collector served is not a campaign file.
        Untrusted: `check` refused the campaign file. The campaign's log and dictionary, which may be long, were then
            not fetched.
    """
    base = f"/v1/campaigns/{quote(id, safe='')}"
    before = kept.get("campaign")
    fetched = {"campaign": fetch(site, base, RECORD_BYTES, now)}
    if before is not None and before.data == fetched["campaign"].data:
        return {**kept, **fetched}
    campaign = _campaign(fetched["campaign"])
    if check is not None:
        check(campaign, _signature(fetched["campaign"]))
    # A missing log is no error here, because the policy checks later whether the log is needed.
    with suppress(NotServed):
        fetched["log"] = fetch(site, f"{base}/log", LOG_BYTES, now)
    if campaign.dictionary is None:
        return fetched
    # Dictionaries are compared by digest, not by path, because the dictionary of each epoch has a different file name.
    listed = None if before is None else _campaign(before).dictionary
    if "dictionary" in kept and listed is not None and listed.digest == campaign.dictionary.digest:
        fetched["dictionary"] = kept["dictionary"]
    else:
        most = min(most_bytes, campaign.dictionary.items * (MOST_SPELLED_BYTES + 2) + 3)
        path = f"{base}/dictionary?fingerprint={campaign.fingerprint.hex()}"
        fetched["dictionary"] = fetch(site, path, most, now)
    return fetched


def read_publication(documents: Documents, id: str, most_bytes: int = MOST_BYTES) -> Publication:
    """Return the publication that the documents contain; at most `most_bytes` bytes of a dictionary are unpacked.

    Raises:
        FormatError, UsageError: a document is invalid, or the documents do not belong together.
    """
    campaign = _campaign(documents["campaign"])
    if campaign.id != id:
        raise FormatError(f"the collector serves campaign {campaign.id} under the id {id}: tell the operator")
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
        raise FormatError(
            "the dictionary is not the campaign's: try again, the collector may be changing epochs now; if this stays, "
            "tell the operator"
        )
    return dictionary
