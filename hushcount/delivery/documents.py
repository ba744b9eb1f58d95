"""The documents that a collector serves of a campaign, with a copy kept of each, and when to ask for them again.

No request is conditional: an ETag that a collector gives to one client only would name that client from then on.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from dataclasses import dataclass

from hushcount.delivery.database import Database
from hushcount.delivery.exchange import Reply, Request, exchange
from hushcount.delivery.site import Site
from hushcount.delivery.waits import LONGEST_WAIT, random_seconds
from hushcount.errors import HushcountError
from hushcount.formats.reading import parse_json

LEAST_AGE = 3_600.0
"""Seconds. A collector that names a shorter age would else see often when this device is in use."""
_HEADERS = ("campaign-signature",)
_AGE = re.compile(r"(?:^|[,\s])max-age=([0-9]{1,9})(?:$|[,\s])")


class NotServed(HushcountError):
    """The collector answered with something else than the document."""


@dataclass(frozen=True)
class Document:
    """What a collector served.

    Attributes:
        data: its bytes.
        headers: Campaign-Signature, if it was there, in lower case.
        refresh_at: when to ask again, in seconds since 1970.
    """

    data: bytes
    headers: tuple[tuple[str, str], ...]
    refresh_at: float

    def header(self, name: str) -> str:
        """Return a header, empty if there is none."""
        return dict(self.headers).get(name, "")

    @property
    def signature(self) -> bytes | None:
        """The signature file in the header, a byte sequence as RFC 8941 writes it; None without one."""
        text = self.header("campaign-signature")
        try:
            return base64.b64decode(text.strip(":"), validate=True) if text else None
        except (binascii.Error, ValueError):
            return None


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
    headers = {name: reply.headers[name] for name in _HEADERS if name in reply.headers}
    return Document(reply.body, tuple(headers.items()), _refresh_at(reply, now))


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
            "SELECT name, data, headers, refresh_at FROM documents WHERE campaign = ?", (campaign,)
        ).fetchall()
    return {name: Document(bytes(data), _headers(headers), at) for name, data, headers, at in rows}


def keep_documents(database: Database, campaign: str, documents: dict[str, Document]) -> None:
    """Keep these documents in place of all that were kept of a campaign."""
    with database.change() as tables:
        tables.execute("DELETE FROM documents WHERE campaign = ?", (campaign,))
        tables.executemany(
            "INSERT INTO documents VALUES (?, ?, ?, ?, ?)",
            [(campaign, name, one.data, json.dumps(one.headers), one.refresh_at) for name, one in documents.items()],
        )


def note_refresh(database: Database, campaign: str, refresh_at: float) -> None:
    """Keep when to ask again for a campaign file that is unchanged."""
    with database.change() as tables:
        tables.execute(
            "UPDATE documents SET refresh_at = ? WHERE campaign = ? AND name = 'campaign'", (refresh_at, campaign)
        )


def _headers(text: str) -> tuple[tuple[str, str], ...]:
    return tuple((str(name), str(value)) for name, value in parse_json(text.encode(), "a kept document"))
