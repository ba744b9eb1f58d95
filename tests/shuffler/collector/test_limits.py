"""Requests that are too slow, too long or no HTTP: each gets an answer or is cut off, and the others go on."""

from __future__ import annotations

import json
import os
import select
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from shuffler.collector.settings import CollectorPart
from tests.shuffler.collector.running import Running, Site, make_site, running, wait_for

GIB = 1 << 30


def connect(collector: Running) -> socket.socket:
    return socket.create_connection(("127.0.0.1", collector.port), timeout=60)


def read_all(connection: socket.socket) -> bytes:
    """Return all that comes until the other side closes."""
    parts = []
    try:
        while part := connection.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def head(collector: Running, length: int | None) -> bytes:
    """Return the head of a post whose body has a length, or comes in chunks."""
    framing = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    fields = f"POST {collector.path()} HTTP/1.1\r\nHost: here\r\nContent-Type: application/octet-stream\r\n"
    return f"{fields}{framing}\r\n\r\n".encode()


def flood(collector: Running, first: bytes, more: bytes) -> tuple[int, bytes]:
    """Send the first bytes, and then more until the collector hangs up; return how many, and the answer."""
    sent, answer = 0, b""
    with connect(collector) as connection:
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(first)
            while sent < GIB:
                connection.sendall(more)
                sent += len(more)
        with suppress(OSError):
            answer = read_all(connection)
    return sent, answer


def memory(collector: Running) -> int:
    """Return the resident bytes of the collector."""
    status = Path(f"/proc/{collector.pid}/statm").read_text()
    return int(status.split()[1]) * os.sysconf("SC_PAGE_SIZE")


def refused(collector: Running, reason: str) -> int:
    """Return how many requests were refused for a reason."""
    start = f'hushcount_collector_requests_refused_total{{reason="{reason}"}} '
    lines = collector.get("/metrics").text.splitlines()
    return sum(int(float(line.removeprefix(start))) for line in lines if line.startswith(start))


def acknowledged(collector: Running) -> int:
    """Return how many reports were acknowledged."""
    lines = collector.get("/metrics").text.splitlines()
    return sum(int(float(line.split()[-1])) for line in lines if line.startswith("hushcount_collector_reports_total{"))


def problem_of(answer: bytes) -> dict[str, Any]:
    """Return the problem details that an answer holds."""
    fields, _, body = answer.partition(b"\r\n\r\n")
    assert b"content-type: application/problem+json" in fields
    return dict(json.loads(body))


def test_a_gibibyte_is_refused_by_its_stated_length_before_it_is_sent(collector: Running) -> None:
    with connect(collector) as connection:
        connection.sendall(head(collector, GIB))
        assert connection.recv(65536).startswith(b"HTTP/1.1 413 ")


def test_what_is_sent_without_end_is_cut_off(subtests: pytest.Subtests, collector: Running) -> None:
    for reason, first, more in [
        ("too_long", head(collector, GIB), bytes(1 << 20)),
        ("too_long", head(collector, None), b"10000\r\n" + bytes(1 << 16) + b"\r\n"),
        ("head_too_long", b"GET /healthz HTTP/1.1\r\n", b"X-More: " + b"a" * 60_000 + b"\r\n"),
    ]:
        with subtests.test(reason=reason, more=more[:10]):
            before, counted = memory(collector), refused(collector, reason)
            sent, answer = flood(collector, first, more)
            assert sent < 64 << 20
            # The system may drop the answer where more came than was read.
            assert answer == b"" or answer.startswith((b"HTTP/1.1 413 ", b"HTTP/1.1 431 "))
            assert refused(collector, reason) == counted + 1
            assert memory(collector) - before < 64 << 20


def test_a_head_of_very_many_small_headers_is_refused(subtests: pytest.Subtests, collector: Running) -> None:
    """Whatever of it the parser leaves out, as the spaces around a value: it is the parser's input that is bounded."""
    for more in [b"x:\r\n", b"x-aaaaaa:\r\n", b"x:       \r\n", b"x: a\r\n"]:
        for length in [50_000, 200_000]:
            with subtests.test(more=more, length=length):
                before, counted = memory(collector), refused(collector, "head_too_long")
                request = b"GET /healthz HTTP/1.1\r\nHost: here\r\n" + more * (length // len(more)) + b"\r\n"
                with connect(collector) as connection:
                    with suppress(BrokenPipeError, ConnectionResetError):
                        connection.sendall(request)
                    answer = read_all(connection)
                # The system may drop the answer where more came than was read.
                assert answer == b"" or answer.startswith(b"HTTP/1.1 431 ")
                assert refused(collector, "head_too_long") == counted + 1
                assert memory(collector) - before < 16 << 20


def test_headers_are_counted(subtests: pytest.Subtests, collector: Running) -> None:
    for number, status in [(90, 200), (120, 431)]:
        with subtests.test(number=number), connect(collector) as connection:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nConnection: close\r\n" + b"x: a\r\n" * number + b"\r\n")
            assert read_all(connection).startswith(f"HTTP/1.1 {status} ".encode())


def test_what_a_chunked_body_has_besides_its_content_is_bounded(
    subtests: pytest.Subtests, collector: Running, site: Site
) -> None:
    for answered in [False, True]:
        for part in ["extension", "name", "headers after it", "small chunks of long extensions"]:
            with subtests.test(part=part, answered=answered):
                length = site.campaign().sealed_bytes("reports")
                chunk = f"{length:x}".encode()
                body = {
                    "extension": chunk + b";x=" + b"a" * 70_000 + b"\r\n" + bytes(length) + b"\r\n0\r\n\r\n",
                    "name": chunk + b";" + b"a" * 70_000 + b"\r\n" + bytes(length) + b"\r\n0\r\n\r\n",
                    "headers after it": chunk + b"\r\n" + bytes(length) + b"\r\n0\r\n" + b"x:\r\n" * 20_000 + b"\r\n",
                    "small chunks of long extensions": (b"1;x=" + b"a" * 600 + b"\r\n0\r\n") * length + b"0\r\n\r\n",
                }[part]
                request = head(collector, None)
                if answered:
                    request = request.replace(b"octet-stream", b"wrong")
                before, stored = refused(collector, "malformed_request"), acknowledged(collector)
                with connect(collector) as connection:
                    try:
                        connection.sendall(request)
                        answer = connection.recv(65536) if answered else b""
                        connection.sendall(body)
                    except (BrokenPipeError, ConnectionResetError):
                        pass
                    answer += read_all(connection)
                # The system may drop the answer where more came than was read.
                assert (
                    answer.startswith(b"HTTP/1.1 415 ")
                    if answered
                    else answer == b"" or answer.startswith(b"HTTP/1.1 400 ")
                )
                assert answer.count(b"HTTP/1.1 ") <= 1
                assert refused(collector, "malformed_request") == before + (not answered)
                assert acknowledged(collector) == stored


def test_a_body_in_very_small_chunks_is_taken(collector: Running, site: Site) -> None:
    """400 reports in chunks of one byte: five times as many bytes as the body, and more than a head may have."""
    body = os.urandom(400 * site.campaign().sealed_bytes("reports"))
    request = head(collector, None)
    with connect(collector) as connection:
        connection.sendall(request + b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 202 ")


def test_many_requests_in_one_piece_are_each_within_the_limit(collector: Running, site: Site) -> None:
    length = site.campaign().sealed_bytes("reports")
    with connect(collector) as connection:
        connection.sendall((head(collector, length) + os.urandom(length)) * 200)
        answers = b""
        while answers.count(b"HTTP/1.1 202 ") < 200 and (part := connection.recv(65536)):
            answers += part
        assert answers.count(b"HTTP/1.1 202 ") == 200


def test_a_whole_head_above_the_limit_is_refused_though_it_comes_in_one_piece(
    subtests: pytest.Subtests, collector: Running, site: Site
) -> None:
    """The limit was looked at between two reads, and one read took a whole head and its body."""
    for long in ["one header", "many headers", "target"]:
        with subtests.test(long=long):
            length = site.campaign().sealed_bytes("reports")
            request = head(collector, length)
            if long == "target":
                request = request.replace(b" HTTP/1.1", b"&" + b"a" * 40_000 + b" HTTP/1.1", 1)
            else:
                more = b"X-More: " + b"a" * 40_000 + b"\r\n" if long == "one header" else b"X-More: aaaa\r\n" * 3000
                request = request[:-2] + more + b"\r\n"
            before = refused(collector, "head_too_long")
            with connect(collector) as connection:
                connection.sendall(request + os.urandom(length))
                answer = read_all(connection)
            assert answer.startswith(b"HTTP/1.1 431 ")
            assert answer.count(b"HTTP/1.1") == 1
            assert refused(collector, "head_too_long") == before + 1
            assert collector.get("/healthz").status_code == 200


def test_what_is_no_http_is_answered_with_a_problem_and_counted(subtests: pytest.Subtests, collector: Running) -> None:
    for garbage in [
        b"\x00\x01\x02\x03\r\n\r\n",
        b"GET\r\n\r\n",
        b"POST / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nbad header\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ]:
        with subtests.test(garbage=garbage):
            before = refused(collector, "malformed_request")
            with connect(collector) as connection:
                connection.sendall(garbage)
                answer = read_all(connection)
            assert answer.startswith(b"HTTP/1.1 400 ")
            problem = problem_of(answer)
            assert problem["type"].endswith("malformed_request")
            assert problem["detail"].endswith(".")
            assert refused(collector, "malformed_request") == before + 1
            assert collector.get("/healthz").status_code == 200


def test_a_second_request_whose_target_cannot_be_read_is_answered_and_counted(
    subtests: pytest.Subtests, collector: Running, site: Site
) -> None:
    for target in [b"http://", b"/\xff"]:
        with subtests.test(target=target):
            before = refused(collector, "malformed_request")
            length = site.campaign().sealed_bytes("reports")
            with connect(collector) as connection:
                connection.sendall(head(collector, length) + os.urandom(length))
                assert connection.recv(65536).startswith(b"HTTP/1.1 202 ")
                connection.sendall(b"GET " + target + b" HTTP/1.1\r\nHost: here\r\n\r\n")
                assert problem_of(read_all(connection))["status"] == 400
            assert refused(collector, "malformed_request") == before + 1


def test_what_follows_a_refusal_gets_no_second_answer(collector: Running) -> None:
    with connect(collector) as connection:
        chunked = head(collector, None)
        connection.sendall(chunked.replace(b"octet-stream", b"wrong"))
        answer = connection.recv(65536)
        connection.sendall(b"zz\r\n")
        answer += read_all(connection)
    assert answer.startswith(b"HTTP/1.1 415 ")
    assert answer.count(b"HTTP/1.1 ") == 1


def test_bodies_that_come_in_are_bounded_all_together(tmp_path: Path) -> None:
    budget = 16 << 20
    settings = {"body_seconds": 300.0, "most_incoming_bytes": budget}
    site = make_site(tmp_path / "site", collector=settings)
    length = site.campaign().sealed_bytes("reports")
    most = (1 << 20) // length * length
    with running(site) as collector:
        before = memory(collector)
        held = [connect(collector) for _ in range(100)]
        for connection in held:
            connection.sendall(head(collector, most) + bytes(most - 1))
        wait_for(lambda: refused(collector, "queue_full") >= 100 - budget // most - 1, what="the refusals")
        # The operating system's buffers and the parts of Python's memory that it keeps are a few more.
        assert memory(collector) - before < budget + (32 << 20)
        # Whoever sends a report in one piece is not kept out.
        assert collector.post(os.urandom(length)).status_code == 202
        # Which of them are within the budget is not ours to say.
        answered, _, _ = select.select(held, [], [], 0)
        answer = answered[0].recv(65536)
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"retry-after: " in answer
        waiting = next(connection for connection in held if connection not in answered)
        waiting.sendall(bytes(1))
        assert waiting.recv(65536).startswith(b"HTTP/1.1 202 ")
        for connection in held:
            connection.close()
        wait_for(lambda: "hushcount_collector_incoming_bytes 0.0" in collector.get("/metrics").text)


def test_a_budget_for_less_than_one_body_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"most_incoming_bytes.* 2048.*most_body_bytes.*4096"):
        CollectorPart(name="one", most_body_bytes=4096, most_incoming_bytes=2048)


def test_random_bytes_never_end_it(collector: Running) -> None:
    for _ in range(50):
        with connect(collector) as connection:
            connection.sendall(os.urandom(200) + b"\r\n\r\n")
            connection.shutdown(socket.SHUT_WR)
            read_all(connection)
    assert not collector.ended()


def test_a_hundred_continues_are_asked_for_only_if_the_body_is_wanted(collector: Running, site: Site) -> None:
    length = site.campaign().sealed_bytes("reports")
    expecting = b"Expect: 100-continue\r\nHost"
    with connect(collector) as connection:
        connection.sendall(head(collector, length).replace(b"Host", expecting))
        assert connection.recv(65536).startswith(b"HTTP/1.1 100 ")
        connection.sendall(os.urandom(length))
        assert connection.recv(65536).startswith(b"HTTP/1.1 202 ")
    with connect(collector) as connection:
        connection.sendall(head(collector, GIB).replace(b"Host", expecting))
        assert connection.recv(65536).startswith(b"HTTP/1.1 413 ")


def test_connections_beyond_the_most_are_told_to_come_back(tmp_path: Path) -> None:
    with running(make_site(tmp_path / "site", collector={"most_connections": 3, "body_seconds": 60})) as collector:
        held = [connect(collector) for _ in range(3)]
        with connect(collector) as connection:
            answer = read_all(connection)
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"retry-after: " in answer
        for connection in held:
            connection.close()
        wait_for(lambda: refused(collector, "too_many_connections") == 1)
        assert collector.get("/healthz").status_code == 200


def test_a_body_that_stays_away_holds_up_no_shutdown_beyond_its_time(tmp_path: Path) -> None:
    site = make_site(tmp_path / "site", collector={"body_seconds": 0.5})
    with running(site) as collector, connect(collector) as connection:
        connection.sendall(head(collector, 65).replace(b"Host", b"Expect: 100-continue\r\nHost"))
        # Now the request has begun.
        assert connection.recv(65536).startswith(b"HTTP/1.1 100 ")
        assert collector.stop() == 0
        assert read_all(connection).startswith(b"HTTP/1.1 408 ")
