"""The clients of the simulated week: the posts that they make each day, and how the posts are sent to the collector."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from hushcount.campaigns.campaign import Campaign
from hushcount.many_clients import ManyClients

LATE, TWICE, BROKEN = 100, 100, 1000
CONNECTIONS, PIPELINED = 32, 32
WORDS = [f"feature-{number}" for number in range(100)]
WINDOW = "20260101T000000Z"
"""The window of the tokens, which has begun: these clients have one token each."""
RISING = 9
"""Index of the word that becomes more frequent."""


@dataclass
class Day:
    """What clients sent on one day, by kind, and the collector's answers, by status."""

    window: str
    sent: Counter[str] = field(default_factory=Counter)
    answers: Counter[int] = field(default_factory=Counter)


@dataclass
class Post:
    """One request: its kind, the client's token, the fingerprint of the campaign file, and the body."""

    kind: str
    token: str
    fingerprint: str
    body: bytes


def made_posts(
    campaign: Campaign, clients: list[str], rng: np.random.Generator, rises: bool
) -> tuple[list[Post], list[Post]]:
    """Return the posts that the clients send on this day, and the posts that they send a day late.

    Args:
        rises: whether the word RISING is 50 % more frequent.
    """
    weights = 1.0 / np.arange(1, len(WORDS) + 1)
    weights[RISING] *= 1.5 if rises else 1.0
    chosen = rng.choice(len(WORDS), size=len(clients), p=weights / weights.sum())
    sealed = ManyClients(campaign).reports([WORDS[item] for item in chosen], threads=2)
    fingerprint = campaign.fingerprint.hex()
    now: list[Post] = []
    late: list[Post] = []
    for number, client in enumerate(clients):
        post = Post("report", client, fingerprint, sealed[number].tobytes())
        if number % LATE == 1:
            late.append(Post("late", client, fingerprint, post.body))
            continue
        now.append(post)
        if number % TWICE == 2:
            now.append(Post("copy", client, fingerprint, post.body))
        if number % BROKEN == 3:
            now.append(Post("unreadable", secrets.token_hex(16), fingerprint, secrets.token_bytes(len(post.body))))
            now.append(Post("wrong length", client, fingerprint, post.body[:-1]))
    order = rng.permutation(len(now))
    return [now[index] for index in order], late


async def send(posts: list[Post], port: int, day: Day) -> None:
    """Send all posts; a post without an answer, because the collector was killed, is sent again with the same bytes."""
    queue = list(reversed(posts))
    await asyncio.gather(*(_connection(queue, port, day) for _ in range(CONNECTIONS)))


async def _connection(queue: list[Post], port: int, day: Day) -> None:
    while queue:
        batch = [queue.pop() for _ in range(min(PIPELINED, len(queue)))]
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            while batch:
                writer.write(b"".join(_request(post) for post in batch))
                await writer.drain()
                while batch:
                    status = await _answer(reader)
                    if status == 503:
                        raise ConnectionError
                    day.sent[batch[0].kind] += 1
                    day.answers[status] += 1
                    del batch[0]
                batch = [queue.pop() for _ in range(min(PIPELINED, len(queue)))]
            writer.close()
        except (OSError, asyncio.IncompleteReadError):
            queue.extend(batch)
            await asyncio.sleep(0.3)


def _request(post: Post) -> bytes:
    head = (
        f"POST /v1/campaigns/features/reports?fingerprint={post.fingerprint}&window={WINDOW} HTTP/1.1\r\n"
        "Host: c\r\n"
        f"Client-Token: {post.token}\r\nContent-Type: application/octet-stream\r\n"
        f"Content-Length: {len(post.body)}\r\n\r\n"
    )
    return head.encode() + post.body


async def _answer(reader: asyncio.StreamReader) -> int:
    head = await reader.readuntil(b"\r\n\r\n")
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            await reader.readexactly(int(line.split(b":")[1]))
    return int(head.split(b" ", 2)[1])
