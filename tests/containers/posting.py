"""Many clients, each with a token of its own, post to a proxy by TLS; what is acknowledged is counted."""

from __future__ import annotations

import asyncio
import secrets
import ssl
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import uvloop

from hushcount.campaigns.campaign import Campaign
from hushcount.client import Client
from hushcount.many_clients import ManyClients
from hushcount.newest import Newest
from hushcount.policy import Policy

_PAUSE = 0.5
"""Seconds after a failure until a connection tries again."""


@dataclass
class Posted:
    """What became of posts.

    Attributes:
        acknowledged: reports with an answer 202, by stream.
        unsure: reports whose connection broke before the answer, by stream: they may be stored, and are not sent again.
        refused: answers that are not 202, by status; their reports were sent again.
    """

    acknowledged: Counter[str] = field(default_factory=Counter)
    unsure: Counter[str] = field(default_factory=Counter)
    refused: Counter[int] = field(default_factory=Counter)


@dataclass(frozen=True)
class Site:
    """Where clients post: the proxy's port on this machine, and the certificate of the authority that it trusts."""

    port: int
    authority: Path


def reports_of(campaign: Campaign, policy: Path, values: Sequence[str]) -> dict[str, list[bytes]]:
    """Return a sealed report of each value for each stream, made as the project's own client makes them."""
    Client(campaign, policy=Policy.read(policy, Newest()))  # as each person's would, it accepts the campaign
    clients = ManyClients(campaign)
    made = {"reports": clients.reports(values, threads=2)}
    if campaign.discovery is not None:
        made["discovery"] = clients.discovery_reports(values, threads=2)
    return {stream: [row.tobytes() for row in rows] for stream, rows in made.items()}


def post(
    site: Site, campaign: Campaign, reports: dict[str, list[bytes]], *, connections: int = 32, gives_up: bool = False
) -> Posted:
    """Send reports over keep-alive connections; the reports at one place of all streams are of one client.

    A report that is refused is sent again until it is taken; the caller's test has the time limit.

    Args:
        gives_up: whether a report that is refused, or cannot be sent, is left out instead.
    """
    posted = Posted()
    requests = _requests(campaign, reports)
    context = ssl.create_default_context(cafile=str(site.authority))

    async def all_of_them() -> None:
        sender = _Sender(site.port, context, posted, gives_up)
        await asyncio.gather(*(sender.send(requests) for _ in range(connections)))

    uvloop.run(all_of_them())
    return posted


def _requests(campaign: Campaign, reports: dict[str, list[bytes]]) -> Iterator[tuple[str, bytes]]:
    number = max(len(rows) for rows in reports.values())
    tokens = [secrets.token_hex(16) for _ in range(number)]
    # Every window gets of each stream, however many windows it takes.
    order = ((place / len(rows), place, stream) for stream, rows in reports.items() for place in range(len(rows)))
    for _, place, stream in sorted(order):
        report = reports[stream][place]
        path = f"/v1/campaigns/{campaign.id}/{stream}?fingerprint={campaign.fingerprint.hex()}&window=19700101T000000Z"
        head = (
            f"POST {path} HTTP/1.1\r\nHost: localhost\r\nClient-Token: {tokens[place]}\r\n"
            f"Content-Type: application/octet-stream\r\nContent-Length: {len(report)}\r\n\r\n"
        )
        yield stream, head.encode() + report


@dataclass
class _Sender:
    """What all connections share."""

    port: int
    context: ssl.SSLContext
    posted: Posted
    gives_up: bool

    async def send(self, requests: Iterator[tuple[str, bytes]]) -> None:
        """Take requests until none is left, each after the answer to the one before."""
        reader, writer = None, None
        for stream, request in requests:
            while True:
                sent = False
                try:
                    if writer is None or reader is None:
                        reader, writer = await asyncio.open_connection("localhost", self.port, ssl=self.context)
                    sent = True
                    writer.write(request)
                    status = await _status(reader)
                except (OSError, asyncio.IncompleteReadError):
                    writer = None
                    if sent:
                        self.posted.unsure[stream] += 1
                        break
                    status = 0
                if status == 202:
                    self.posted.acknowledged[stream] += 1
                    break
                self.posted.refused[status] += 1
                if self.gives_up:
                    break
                await asyncio.sleep(_PAUSE)
        if writer is not None:
            writer.close()


async def _status(reader: asyncio.StreamReader) -> int:
    """Read one answer to its end, and return its status."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    if "content-length: " in head:
        await reader.readexactly(int(head.split("content-length: ")[1].split("\r\n")[0]))
    return int(head.split(" ")[1])
