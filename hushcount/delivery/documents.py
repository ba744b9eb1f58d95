"""The documents that a collector serves of a campaign, with a copy kept of each for as long as it is fresh.

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
from hushcount.delivery.waits import LONGEST_WAIT, is_ahead
from hushcount.errors import HushcountError
from hushcount.formats.reading import parse_json

_DEFAULT_AGE = 300.0
_HEADERS = ("content-type", "campaign-signature")
_AGE = re.compile(r"(?:^|[,\s])max-age=([0-9]{1,9})(?:$|[,\s])")


class NotServed(HushcountError):
    """The collector answered with something else than the document."""


@dataclass(frozen=True)
class Document:
    """What a collector served.

    Attributes:
        data: its bytes.
        headers: Content-Type and Campaign-Signature, as far as they were there, in lower case.
        fresh_until: until when there is no need to ask again, in seconds since 1970.
    """

    data: bytes
    headers: tuple[tuple[str, str], ...]
    fresh_until: float

    def header(self, name: str) -> str:
        """Return a header, empty if there is none."""
        return dict(self.headers).get(name, "")

    def is_fresh(self, now: float) -> bool:
        """Return whether there is no need to ask again."""
        return is_ahead(self.fresh_until, now, LONGEST_WAIT)

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
    return Document(reply.body, tuple(headers.items()), _until(reply, now))


def _until(reply: Reply, now: float) -> float:
    match = _AGE.search(reply.headers.get("cache-control", "").lower())
    return now + (_DEFAULT_AGE if match is None else min(float(match[1]), LONGEST_WAIT))


def kept_documents(database: Database, campaign: str) -> dict[str, Document]:
    """Return the documents that are kept of a campaign, by name."""
    with database.change() as tables:
        rows = tables.execute(
            "SELECT name, data, headers, fresh_until FROM documents WHERE campaign = ?", (campaign,)
        ).fetchall()
    return {name: Document(bytes(data), _headers(headers), fresh) for name, data, headers, fresh in rows}


def keep_documents(database: Database, campaign: str, documents: dict[str, Document]) -> None:
    """Keep these documents in place of all that were kept of a campaign."""
    with database.change() as tables:
        tables.execute("DELETE FROM documents WHERE campaign = ?", (campaign,))
        tables.executemany(
            "INSERT INTO documents VALUES (?, ?, ?, ?, ?)",
            [(campaign, name, one.data, json.dumps(one.headers), one.fresh_until) for name, one in documents.items()],
        )


def _headers(text: str) -> tuple[tuple[str, str], ...]:
    return tuple((str(name), str(value)) for name, value in parse_json(text.encode(), "a kept document"))
