"""A collector and evaluator in a thread that a test steers: what it publishes and answers, and what it was sent."""

from __future__ import annotations

import base64
import json
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.delegation import CampaignSignature
from hushcount.campaigns.log import CampaignLog
from hushcount.collection.windows import window_start
from hushcount.delivery import Sender
from hushcount.policy import Policy, terms_of
from keys.evaluating import EvaluatorKey
from tests.hushcount.campaigns.test_campaign_file import WORDS, data, listed
from tests.hushcount.campaigns.test_chain import log_of
from tests.hushcount.campaigns.vouched import KEY, public_part, signed

REPORTED = "one"
"""A value that the dictionary lists."""
EVALUATOR = EvaluatorKey(bytes(range(32)))
OBLIVIOUS = {"epsilon": 1.0, "delta": 1e-6, "relation": "replace-one", "rule": "optimal", "max_value_bytes": 32}
YEARS = {"not_before": "2026-01-01T00:00:00Z", "not_after": "2046-01-01T00:00:00Z"}
"""When keys are valid: whatever a device's clock shows."""
Answer = tuple[int, str, dict[str, str]]
"""To a post: status, name of the problem, headers."""
Evaluate = Callable[[bytes], tuple[int, str, bytes]]
"""What an evaluator answers to a body: status, media type, body."""


def campaign(previous: Campaign | None = None, **changes: Any) -> Campaign:
    """Return the first epoch's file of the campaign "words", or that after another."""
    chained = {} if previous is None else {"epoch": previous.epoch + 1, "previous": previous.head.hex()}
    shuffle = {"cap": 100, "minimum_batch": 10, "delta": 1e-7}
    made = {**data(), "shuffle": shuffle, **chained, **changes}
    keys = {party: [{**key, **YEARS} for key in listed] for party, listed in made["keys"].items()}
    return Campaign.model_validate({**made, "keys": keys})


def oblivious(previous: Campaign | None = None, **changes: Any) -> Campaign:
    """Return the same campaign with an evaluator."""
    keys = {**data()["keys"], "evaluator": [listed(EVALUATOR)]}
    return campaign(previous, **{"discovery": {**OBLIVIOUS, "hash": "oblivious"}, "keys": keys, **changes})


def policy(**changes: Any) -> Policy:
    """Return a policy that accepts the campaign, with an evaluator or without."""
    return Policy(**{**dict(terms_of(campaign(), (public_part(KEY, -3650, 7300),))), **changes})


def answered(key: EvaluatorKey = EVALUATOR) -> Evaluate:
    """Return an evaluator with a key."""
    return lambda blinded: (200, "application/octet-stream", key.evaluate(blinded))


def refused(status: int, problem: str) -> Evaluate:
    """Return an evaluator that refuses all evaluations."""
    body = json.dumps({"type": f"urn:hushcount:problem:{problem}"}).encode()
    return lambda _: (status, "application/problem+json", body)


@dataclass(frozen=True)
class Post:
    """What was posted and is on the collector's disk."""

    stream: str
    fingerprint: str
    token: str
    reports: tuple[bytes, ...]


@dataclass(frozen=True)
class Asked:
    """Evaluations that the evaluator was asked, in one request."""

    fingerprint: str
    token: str
    authorization: str | None
    blinded: bytes
    at: float

    @property
    def elements(self) -> list[bytes]:
        return [self.blinded[start : start + 32] for start in range(0, len(self.blinded), 32)]


@dataclass
class FakeCollector:
    """What it publishes may change at any time."""

    address: str = ""
    epochs: list[Campaign] = field(default_factory=lambda: [campaign()])
    signature: CampaignSignature | None = None
    max_age: int = 300
    accepted: set[str] | None = None  # fingerprints; None: that of the newest epoch
    answers: list[Answer] = field(default_factory=list)
    """Answers to the next posts."""
    always: Answer | None = None
    takes_before_answering: bool = False
    """Whether what such an answer refuses was stored nevertheless, as when an answer is lost."""
    most_reports: int = 10**6
    most_bytes: int = 10**9
    """Of a post that a proxy before it lets through."""
    dictionary: tuple[bytes, dict[str, str]] = (WORDS.packed(), {"Content-Type": "application/gzip"})
    posts: list[Post] = field(default_factory=list)
    gets: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    evaluate: Evaluate = field(default_factory=answered)
    down: bool = False
    seconds: float = 0.0
    """How long it takes to answer a post."""
    date: str | None = None
    """What its answers say of the time; None: what it is; empty: nothing."""

    now: float = math.inf
    """By what time it refuses windows that have not begun, in seconds since 1970; by default it refuses none."""

    @property
    def campaign(self) -> Campaign:
        return self.epochs[-1]

    def received(self, stream: str = "reports") -> list[bytes]:
        """Return each report that was taken, in order, copies included."""
        return [report for post in self.posts if post.stream == stream for report in post.reports]

    @property
    def evaluations(self) -> list[bytes]:
        """Return each blinded element that was asked about, in order, copies included."""
        return [element for asked in self.asked for element in asked.elements]

    def document(self, path: str) -> tuple[bytes, dict[str, str]] | None:
        if path == "/v1/campaigns/words":
            signature = self.signature or signed(self.campaign)
            header = ":" + base64.b64encode(signature.text().encode()).decode() + ":"
            text = json.dumps(self.campaign.model_dump(mode="json", exclude_none=True))
            return text.encode(), {"Campaign-Signature": header, "Content-Type": "application/json"}
        if path == "/v1/campaigns/words/log":
            return self.log().text().encode(), {"Content-Type": "application/json"}
        if path == "/v1/campaigns/words/dictionary":
            return self.dictionary
        return None

    def log(self) -> CampaignLog:
        return log_of(self.epochs)

    def verdict(  # noqa: PLR0911  # one for each answer
        self, stream: str, fingerprint: str, window: str, body: bytes
    ) -> Answer:
        if window_start(window).timestamp() > self.now and not (self.answers or self.always):
            return 425, "window_not_begun", {}
        if self.answers or self.always is not None:
            return self.answers.pop(0) if self.answers else self.always  # type: ignore[return-value]
        if len(body) > self.most_bytes:
            return 413, "A page of its own", {}
        known = {one.fingerprint.hex(): one for one in self.epochs}
        if fingerprint not in known:
            return 409, "unknown_fingerprint", {}
        if fingerprint not in (self.accepted or {self.campaign.fingerprint.hex()}):
            return 409, "epoch_closed", {}
        assert len(body) % known[fingerprint].sealed_bytes(stream) == 0  # type: ignore[arg-type]
        if len(body) // known[fingerprint].sealed_bytes(stream) > self.most_reports:  # type: ignore[arg-type]
            return 413, "too_many_reports_at_once", {}
        return 202, "", {}


def sender(collector: FakeCollector, folder: Path | None = None, **options: Any) -> Sender:
    """Return a sender, without delay if none is given, which raises what stops a report."""
    options = {"site": collector.address, "policy": policy(), "delay": timedelta(), "strict": True, **options}
    return Sender(options.pop("site"), options.pop("policy"), folder, **options)


def wait_for(condition: Callable[[], object]) -> None:
    """Wait until what a thread does makes a condition hold, a minute at most."""
    until = time.monotonic() + 60.0
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


@contextmanager
def collecting(**options: Any) -> Iterator[FakeCollector]:
    """Run one for a block."""
    collector = FakeCollector(**options)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            collector.gets.append((self.path, headers))
            served = collector.document(urlsplit(self.path).path)
            if collector.down:
                self.answer(503, b"", {})
            elif served is None:
                self.answer(404, b"", {})
            else:
                body, more = served
                etag = f'"{hash(body)}"'
                more = {**more, "ETag": etag, "Cache-Control": f"public, max-age={collector.max_age}"}
                if headers.get("if-none-match") == etag:
                    self.answer(304, None, more)
                else:
                    self.answer(200, body, more)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if len(body) < int(self.headers["Content-Length"]):
                return  # the client was killed
            parts = urlsplit(self.path)
            stream, query = parts.path.rpartition("/")[2], parse_qs(parts.query)
            fingerprint = query["fingerprint"][0]
            time.sleep(collector.seconds)
            if stream == "evaluations":
                shown = self.headers["Client-Token"], self.headers.get("Authorization")
                collector.asked.append(Asked(fingerprint, *shown, body, time.time()))
                status, kind, said = collector.evaluate(body)
                self.answer(status, said, {"Content-Type": kind})
                return
            if collector.down:
                self.answer(503, b"", {})
                return
            status, problem, headers = collector.verdict(stream, fingerprint, query["window"][0], body)
            if status == 202 or collector.takes_before_answering:
                known = {one.fingerprint.hex(): one for one in collector.epochs}
                length = known[fingerprint].sealed_bytes(stream)  # type: ignore[arg-type]
                reports = tuple(body[at : at + length] for at in range(0, len(body), length))
                token = self.headers["Client-Token"] or self.headers["Authorization"]
                collector.posts.append(Post(stream, fingerprint, token, reports))
            details = json.dumps({"type": f"urn:hushcount:problem:{problem}"}).encode() if problem else b""
            self.answer(status, details, {"Content-Type": "application/problem+json", **headers})

        def answer(self, status: int, body: bytes | None, headers: dict[str, str]) -> None:
            # The client may be killed meanwhile.
            with suppress(OSError):
                self.send_response_only(status)
                if date := formatdate(usegmt=True) if collector.date is None else collector.date:
                    self.send_header("Date", date)
                for name, value in headers.items():
                    self.send_header(name, value)
                if body is not None:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body or b"")

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    collector.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.005}, daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()
