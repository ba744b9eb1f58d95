"""An issuer in a thread that a test steers, with keys of a few days; what signs here is not constant in time."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from cryptography.hazmat.primitives.asymmetric import rsa

from hushcount.passes.blind_signatures import KEY_BYTES
from hushcount.passes.pass_keys import PassKeys, day_octets
from hushcount.passes.tokens import REQUEST_BYTES

DAYS = 4


@cache
def key(number: int) -> tuple[int, int]:
    """Return modulus and private exponent of one of the tests' keys."""
    numbers = rsa.generate_private_key(65537, 8 * KEY_BYTES).private_numbers()
    return numbers.public_numbers.n, numbers.d


def pass_keys(parties: int = 1, first: datetime | None = None) -> PassKeys:
    """Return keys of passes that are good for a day, from yesterday on."""
    begin = (first or datetime.now(timezone.utc) - timedelta(days=1)).date()
    days = tuple(tuple(f"{key(day * parties + party)[0]:0512x}" for party in range(parties)) for day in range(DAYS))
    return PassKeys(
        campaign="words", collectors=("one",), evaluator=parties == 2, seconds=86400, first=begin, days=days
    )


@dataclass
class FakeIssuer:
    """What it answers may change at any time."""

    keys: PassKeys
    address: str = ""
    requests: list[tuple[str, str, bytes]] = field(default_factory=list)
    """What was posted: the query, the authorization, the body."""
    gets: int = 0
    problem: tuple[int, str] | None = None
    loses_answers: bool = False
    wrong_keys: bool = False
    wrong_signatures: bool = False

    def signatures(self, day: str, body: bytes) -> bytes:
        place = (datetime.strptime(day, "%Y%m%d").date() - self.keys.first).days
        number = len(body) // REQUEST_BYTES
        answer = b""
        for party in range(number):
            modulus, exponent = key(place * number + party)
            blinded = int.from_bytes(body[party * REQUEST_BYTES + 3 : (party + 1) * REQUEST_BYTES], "big")
            signed = pow(blinded, exponent + self.wrong_signatures, modulus)
            answer += signed.to_bytes(KEY_BYTES, "big")
        return answer

    def keys_of(self, day: str) -> bytes:
        place = (datetime.strptime(day, "%Y%m%d").date() - self.keys.first).days
        return day_octets(self.keys.days[place - self.wrong_keys])


@contextmanager
def issuing(keys: PassKeys) -> Iterator[FakeIssuer]:
    """Run one for a block."""
    issuer = FakeIssuer(keys)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            issuer.gets += 1
            self.answer(issuer.keys_of(parse_qs(urlsplit(self.path).query)["day"][0]))

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            query = urlsplit(self.path).query
            issuer.requests.append((query, self.headers["Authorization"], body))
            if not issuer.loses_answers:
                self.answer(issuer.signatures(parse_qs(query)["day"][0], body))

        def answer(self, body: bytes) -> None:
            status, kind = 200, "application/octet-stream"
            if issuer.problem is not None:
                status, problem = issuer.problem
                body, kind = (
                    json.dumps({"type": f"urn:hushcount:problem:{problem}"}).encode(),
                    "application/problem+json",
                )
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    issuer.address = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.005}, daemon=True).start()
    try:
        yield issuer
    finally:
        server.shutdown()
        server.server_close()
