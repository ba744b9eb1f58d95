"""The documents that a collector serves of a campaign, with a copy kept of each, and when to ask for them again.

No request is conditional: an ETag that a collector gives to one client only would name that client from then on.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass

from hushcount.delivery.database import Database
from hushcount.delivery.exchange import Reply, Request, exchange
from hushcount.delivery.site import Site
from hushcount.delivery.waits import LONGEST_WAIT, random_seconds
from hushcount.errors import HushcountError

LEAST_AGE = 3_600.0
"""Seconds. A collector that names a shorter age would else see often when this device is in use."""
_AGE = re.compile(r"(?:^|[,\s])max-age=([0-9]{1,9})(?:$|[,\s])")


class NotServed(HushcountError):
    """The collector answered with something else than the document."""


@dataclass(frozen=True)
class Document:
    """What a collector served.

    Attributes:
        data: its bytes.
        signature: the signature file in the header, a byte sequence as RFC 8941 writes it; None without one.
        refresh_at: when to ask again, in seconds since 1970.
    """

    data: bytes
    signature: bytes | None
    refresh_at: float


def fetch(site: Site, path: str, most: int, now: float) -> Document:
    """Fetch a document of at most `most` bytes.

    The request shows no client token, nor anything that a collector gave to this client alone.

    Raises:
        NoAnswer: no whole answer came.
        NotServed: another answer came.
    """
    reply = exchange(site, Request("GET", path), most)
    if reply.status != 200:
        raise NotServed(f"the collector answered {reply.status} to a request for {path.partition('?')[0]}")
    return Document(reply.body, _signature(reply.headers.get("campaign-signature", "")), _refresh_at(reply, now))


def _signature(text: str) -> bytes | None:
    try:
        return base64.b64decode(text.strip(":"), validate=True) if text else None
    except (binascii.Error, ValueError):
        return None


def _refresh_at(reply: Reply, now: float) -> float:
    """Return when to ask again: after the age that the collector named, an hour to a day, and up to half as much more.

    The random part hides when the device asked before.
    """
    match = _AGE.search(reply.headers.get("cache-control", "").lower())
    age = min(max(0.0 if match is None else float(match[1]), LEAST_AGE), LONGEST_WAIT)
    return now + age + random_seconds(age / 2.0)


def kept_documents(database: Database, campaign: str) -> dict[str, Document]:
    """Return the documents that are kept of a campaign, by name."""
    with database.change() as tables:
        rows = tables.execute(
            "SELECT name, data, signature, refresh_at FROM documents WHERE campaign = ?", (campaign,)
        ).fetchall()
    return {name: Document(bytes(data), signature, at) for name, data, signature, at in rows}


def keep_documents(database: Database, campaign: str, documents: dict[str, Document]) -> None:
    """Keep these documents in place of all that were kept of a campaign."""
    with database.change() as tables:
        tables.execute("DELETE FROM documents WHERE campaign = ?", (campaign,))
        tables.executemany(
            "INSERT INTO documents VALUES (?, ?, ?, ?, ?)",
            [(campaign, name, one.data, one.signature, one.refresh_at) for name, one in documents.items()],
        )


def note_refresh(database: Database, campaign: str, refresh_at: float) -> None:
    """Keep when to ask again for a campaign file that is unchanged."""
    with database.change() as tables:
        tables.execute(
            "UPDATE documents SET refresh_at = ? WHERE campaign = ? AND name = 'campaign'", (refresh_at, campaign)
        )
