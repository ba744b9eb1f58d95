"""hushcount simulate --send: real reports of many simulated people, posted to a collector as clients post them."""

from __future__ import annotations

import http.client
import math
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from itertools import chain

from httptools import HttpParserError, HttpResponseParser

from hushcount.arrays import IntArray, Octets
from hushcount.campaigns.campaign import Stream
from hushcount.clock import MACHINE
from hushcount.collection.windows import window_at
from hushcount.delivery import Site
from hushcount.delivery.exchange import NoAnswer, Reply, connection_to
from hushcount.delivery.publication import Publication, fetch_documents, read_publication
from hushcount.delivery.verdicts import Verdict, verdict
from hushcount.delivery.waits import pause
from hushcount.errors import UsageError
from hushcount.many_clients import ManyClients
from hushcount.policy import Policy
from hushcount.report_making import measured
from hushcount.threads import available_threads
from keys.opening_engines import sealing_for

_AT_ONCE = 1 << 15
"""People of one block. Their reports are made before the first is posted, so that they arrive in few seconds."""
_CONNECTIONS = 64
_PATIENCE = 60.0
"""Seconds without any success after which the reports of a connection are given up."""
_START = 10.0
"""Seconds for which a collector that cannot be reached is asked again."""
_PIPELINED = 32
_NO_ANSWER = Verdict("again", "unreachable")


@dataclass(frozen=True)
class Posted:
    """What the collector took, and what was given up, by stream; `given_up` by reason.

    Attributes:
        accepted: indices of the people all of whose reports the collector has on its disk.
        began: when the first report of each block was posted.
    """

    accepted: list[int] = field(default_factory=list)
    sent: Counter[Stream] = field(default_factory=Counter)
    given_up: Counter[str] = field(default_factory=Counter)
    began: list[datetime] = field(default_factory=list)


def published(site: Site, policy: Policy) -> Publication:
    """Fetch the present campaign file, and check it by the policy, as a client does.

    A collector that just starts may not listen yet, so it is asked again for some seconds.

    Raises:
        NoAnswer, NotServed: the collector cannot be reached, or does not serve the campaign.
        Untrusted: the policy refuses the campaign.
        UsageError: the campaign has an evaluator, which answers each caller only a few times.
    """
    now, most = MACHINE.seconds(), policy.max_dictionary_bytes
    until = MACHINE.steady() + _START
    while True:
        try:
            documents = fetch_documents(site, policy.campaign_id, {}, now, policy.check, most)
            break
        except NoAnswer as error:
            if error.failure != "unreachable" or MACHINE.steady() > until:
                raise
            time.sleep(0.2)
    publication = read_publication(documents, policy.campaign_id, most)
    policy.accept(publication.campaign, publication.signature, publication.log)
    if publication.campaign.is_oblivious:
        raise UsageError(
            f"campaign {policy.campaign_id} has an evaluator, which answers each caller only a few times: simulate "
            "people in a campaign with --hash keyed"
        )
    return publication


def post_all(
    site: Site,
    publication: Publication,
    values: tuple[str, ...],
    drawn: IntArray,
    track: Callable[[Iterable[int], int], Iterable[int]] = lambda parts, total: parts,
) -> Posted:
    """Make one report of each stream for each person, and post each with a token of this person alone.

    A refusal that asks to wait is honoured, for a minute without any success; any other refusal ends this report.

    Args:
        values: as lines of a file (`hushcount.report_making.measured`).
        drawn: int64[people], the index of each person's value in `values`.
        track: shows progress; it gets the beginnings of the blocks, and their number.
    """
    campaign, posted = publication.campaign, Posted()
    seal = sealing_for(len(drawn) * len(campaign.streams))
    many = ManyClients(campaign, dictionary=publication.dictionary, seal_rows=seal)
    starts, lost = range(0, len(drawn), _AT_ONCE), set[int]()
    with ThreadPoolExecutor(_CONNECTIONS) as pool:
        for start in track(starts, len(starts)):
            texts = [values[index] for index in drawn[start : start + _AT_ONCE]]
            posts = list(_posts(site, many, texts, start))
            posted.began.append(MACHINE.now())
            share = max(_PIPELINED, -(-len(posts) // _CONNECTIONS))
            parts = [posts[first : first + share] for first in range(0, len(posts), share)]
            for post, said in chain.from_iterable(pool.map(partial(_settled, site), parts)):
                if said.fate == "sent":
                    posted.sent[post.stream] += 1
                else:
                    posted.given_up[said.reason] += 1
                    lost.add(post.person)
    posted.accepted.extend(person for person in range(len(drawn)) if person not in lost)
    return posted


@dataclass(frozen=True, eq=False)
class _Post:
    """The request with one report of a person."""

    person: int
    stream: Stream
    request: bytes


def _posts(site: Site, many: ManyClients, texts: list[str], first: int) -> Iterator[_Post]:
    campaign = many.campaign
    made = {stream: _made(many, stream, texts) for stream in campaign.streams}
    bearer = "" if site.app_token is None else f"Authorization: Bearer {site.app_token}\r\n"
    host = f"[{site.host}]" if ":" in site.host else site.host
    head = f"HTTP/1.1\r\nHost: {host}:{site.port}\r\nContent-Type: application/octet-stream\r\n{bearer}"
    window = window_at(MACHINE.now(), timedelta(days=1)).name
    for number in range(len(texts)):
        token = secrets.token_urlsafe(32)
        for stream, reports in made.items():
            report = reports[number].tobytes()
            query = f"fingerprint={campaign.fingerprint.hex()}&window={window}"
            path = f"{site.path}/v1/campaigns/{campaign.id}/{stream}?{query}"
            sent = f"POST {path} {head}Client-Token: {token}\r\nContent-Length: {len(report)}\r\n\r\n"
            yield _Post(first + number, stream, sent.encode() + report)


def _made(many: ManyClients, stream: Stream, texts: list[str]) -> Octets:
    if stream == "reports":
        return many.measured(texts, available_threads())
    listed, texts = many.dictionary or (), [measured(many.campaign, text).value for text in texts]
    short = [text if text in listed or not many.campaign.is_too_long(text) else None for text in texts]
    return many.discovery_reports(short, available_threads())


def _settled(site: Site, posts: list[_Post]) -> Iterable[tuple[_Post, Verdict]]:
    """Post until each report is sent or given up; return the last verdict on each."""
    connection, settled = connection_to(site), dict.fromkeys(posts, _NO_ANSWER)
    failures, until, most = 0, math.inf, _PIPELINED
    while posts:
        said = _verdicts(connection, posts[:most])
        settled.update(zip(posts, said, strict=False))
        again = [post for post, one in zip(posts, said, strict=False) if one.fate == "again"]
        posts = again + posts[len(said) :]
        if len(again) < len(said):
            failures, until = 0, math.inf
        if said and not again:
            continue
        failures += 1
        if not said:
            # A server that closes the connection after each answer loses answers that are still on their way.
            most = 1
        wait = pause(failures, max((settled[post].wait for post in again), default=0.0))
        until = min(until, MACHINE.steady() + _PATIENCE)
        if MACHINE.steady() + wait > until:
            break
        time.sleep(wait)
    connection.close()
    return settled.items()


def _verdicts(connection: http.client.HTTPConnection, posts: list[_Post]) -> list[Verdict]:
    """Send requests at once on one connection; return what the answers mean, as many as came, in order."""
    answers = _Answers()
    try:
        if connection.sock is None:
            connection.connect()
        connection.sock.sendall(b"".join(post.request for post in posts))
        while len(answers.replies) < len(posts):
            if not (octets := connection.sock.recv(1 << 16)):
                raise ConnectionResetError
            answers.parser.feed_data(octets)
    except (OSError, http.client.HTTPException, HttpParserError):
        connection.close()
    return [verdict(reply, 1) for reply in answers.replies[: len(posts)]]


class _Answers:
    """The answers that a connection brought; the parser calls the methods."""

    def __init__(self) -> None:
        self.parser, self.replies = HttpResponseParser(self), list[Reply]()
        self._headers: dict[str, str] = {}
        self._body = b""

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.setdefault(name.decode("latin-1").lower(), value.decode("latin-1"))

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        self.replies.append(Reply(self.parser.get_status_code(), self._headers, self._body))
        self._headers, self._body = {}, b""
