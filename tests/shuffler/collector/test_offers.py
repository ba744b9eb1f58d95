"""A request that offers another protocol is served as if the offer were not there (RFC 9110, 7.8), by every service."""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Iterator
from itertools import product

import pytest

from tests.evaluator.running import asked, evaluating, make_asked_site, public_key
from tests.shuffler.collector.in_a_thread import collecting, served
from tests.shuffler.collector.running import Running, Site, wait_for
from tests.shuffler.collector.test_limits import connect, problem_of, read_all, refused
from tests.shuffler.collector.test_slow_peers import arrived

H2C = b"Connection: Upgrade\r\nUpgrade: h2c\r\n"
OFFERS = [
    H2C,
    b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAAIAAAAB\r\n",
    b"Connection: Upgrade\r\nUpgrade: websocket\r\n",
    b"Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
    b"Sec-WebSocket-Version: 13\r\n",
    b"Upgrade: h2c\r\nUpgrade: websocket, x/1\r\nConnection: Upgrade\r\nConnection: keep-alive\r\n",
]
LAST = b"GET /healthz HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n"


@pytest.fixture(scope="module")
def evaluator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    site = make_asked_site(tmp_path_factory.mktemp("asked"), evaluator={"authentication": "none"})
    with evaluating(site) as started:
        yield started


def posted(service: Running, stream: str, body: bytes, more: bytes, chunked: bool) -> bytes:
    """Return a post in bytes, with more headers."""
    framing = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: %d" % len(body)
    start = f"POST {service.path(stream)} HTTP/1.1\r\nHost: here\r\nContent-Type: application/octet-stream\r\n"
    sent = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if chunked else body
    return start.encode() + more + framing + b"\r\n\r\n" + sent


def statuses(answers: bytes) -> list[bytes]:
    return re.findall(rb"HTTP/1\.1 (\d{3}) ", answers)


def test_the_body_of_a_post_is_taken_whatever_it_offers(subtests: pytest.Subtests, collector: Running) -> None:
    body = os.urandom(3 * collector.site.campaign().sealed_bytes("reports"))
    for offer, chunked, apart in product(OFFERS, [False, True], [False, True]):
        with subtests.test(offer=offer, chunked=chunked, apart=apart), connect(collector) as connection:
            # The head alone first: the server reads the body later.
            waits = b"Expect: 100-continue\r\n" if apart else b""
            request = posted(collector, "reports", body, offer + waits, chunked) + LAST
            place = request.index(b"\r\n\r\n") + 4 if apart else 0
            connection.sendall(request[:place])
            assert not apart or connection.recv(65536).startswith(b"HTTP/1.1 100 ")
            connection.sendall(request[place:])
            assert statuses(read_all(connection)) == [b"202", b"200"]


def test_an_offer_that_comes_in_bytes_is_as_one_in_a_piece(collector: Running) -> None:
    body = os.urandom(collector.site.campaign().sealed_bytes("reports"))
    with connect(collector) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in posted(collector, "reports", body, OFFERS[1], chunked=True) + LAST:
            connection.sendall(bytes([byte]))
        assert statuses(read_all(connection)) == [b"202", b"200"]


def test_a_refusal_says_the_same_with_an_offer(subtests: pytest.Subtests, collector: Running) -> None:
    for chunked in [False, True]:
        with subtests.test(chunked=chunked):
            answers = []
            for offer in [b"", *OFFERS]:
                with connect(collector) as connection:
                    connection.sendall(posted(collector, "reports", b"short", offer, chunked) + LAST)
                    answer = read_all(connection)
                assert statuses(answer) == [b"400", b"200"]
                answers.append(re.sub(rb"date: [^\r]*", b"", answer))
            assert len(set(answers)) == 1


def test_a_get_that_offers_is_answered_and_so_are_the_next_ones(subtests: pytest.Subtests, collector: Running) -> None:
    for offer in OFFERS:
        with subtests.test(offer=offer), connect(collector) as connection:
            get = b"GET /healthz HTTP/1.1\r\nHost: here\r\n" + offer + b"\r\n"
            connection.sendall(get * 3 + LAST)
            answers = read_all(connection)
            assert statuses(answers) == [b"200"] * 4
            assert answers.count(b'{"alive": true}') == 4


def test_evaluations_are_made_whatever_offer_comes_with_them(subtests: pytest.Subtests, evaluator: Running) -> None:
    for offer, chunked in product(OFFERS, [False, True]):
        with subtests.test(offer=offer, chunked=chunked), connect(evaluator) as connection:
            questions = asked("one", "two")
            connection.sendall(posted(evaluator, "evaluations", questions.blinded, offer, chunked) + LAST)
            answers = read_all(connection)
            assert statuses(answers) == [b"200", b"200"]
            body = answers.partition(b"\r\n\r\n")[2]
            assert len(questions.finish(body[: len(questions.blinded) + 64], public_key(evaluator.site))) == 2


def test_a_head_that_is_too_long_is_refused_with_an_offer_too(collector: Running) -> None:
    before = refused(collector, "head_too_long")
    request = b"GET /healthz HTTP/1.1\r\nHost: here\r\n" + OFFERS[0] + b"X-More: aaaa\r\n" * 3000 + b"\r\n"
    with connect(collector) as connection:
        connection.sendall(request)
        assert statuses(read_all(connection)) == [b"431"]
    assert refused(collector, "head_too_long") == before + 1


def test_connect_is_no_offer_and_is_refused(subtests: pytest.Subtests, collector: Running) -> None:
    for offer in [b"", *OFFERS]:
        with subtests.test(offer=offer), connect(collector) as connection:
            connection.sendall(b"CONNECT here:443 HTTP/1.1\r\nHost: here\r\n" + offer + b"\r\n")
            assert problem_of(read_all(connection))["status"] == 400


def test_an_offer_gives_a_request_no_more_time(site: Site) -> None:
    with served(collecting(site)) as server, server.connect() as connection:
        place = f"/v1/campaigns/words/reports?fingerprint={site.fingerprint()}&window=19700101T000000Z"
        request = f"POST {place} HTTP/1.1\r\nHost: here\r\n"
        connection.sendall(request.encode())
        arrived(server, len(request))
        server.pass_by(0.9)
        rest = b"Content-Type: application/octet-stream\r\nContent-Length: %d\r\n\r\n"
        connection.sendall(H2C + rest % site.campaign().sealed_bytes("reports"))
        wait_for(lambda: any(one._head_done for one in server.connections), what="the head")
        server.pass_by(0.2)
        assert json.loads(read_all(connection).partition(b"\r\n\r\n")[2])["type"].endswith("too_slow")
