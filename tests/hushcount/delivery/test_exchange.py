"""An exchange ends, in bounded bytes and time, whatever the other side does; it goes nowhere else."""

from __future__ import annotations

import os
import socket
import ssl
import time
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from hushcount.delivery.exchange import NoAnswer, Reply, Request, exchange
from hushcount.delivery.site import Site
from hushcount.errors import UsageError
from tests.hushcount.delivery.misbehaving import Talk, http, read_request, saying, serving

ASKED = Request("POST", "/v1/x?a=b", {"Client-Token": "t" * 20}, b"body")
MOST = 1000


def failure_of(site: Site) -> str:
    with pytest.raises(NoAnswer) as raised:
        exchange(site, ASKED, MOST)
    return raised.value.failure


def test_an_exchange_sends_what_it_was_given_and_nothing_that_names_the_client() -> None:
    with serving(saying(http(202, b"ok", "X-One: 1", "X-ONE: 2"))) as heard:
        reply = exchange(heard.site, ASKED, MOST)
    assert reply == Reply(202, {"content-length": "2", "x-one": "1"}, b"ok")
    head, _, body = heard.requests[0].partition(b"\r\n\r\n")
    names = [line.split(b":")[0].lower() for line in head.split(b"\r\n")[1:]]
    assert head.startswith(b"POST /v1/x?a=b HTTP/1.1\r\n")
    assert sorted(names) == [b"accept-encoding", b"client-token", b"connection", b"content-length", b"host"]
    assert body == b"body"


def test_a_redirect_is_an_answer_and_not_followed() -> None:
    with serving(saying(http(202))) as other:
        moved = http(307, b"", f"Location: {other.site.address}/v1/x")
        with serving(saying(moved)) as heard:
            assert exchange(heard.site, ASKED, MOST).status == 307
    assert len(heard.requests) == 1
    assert other.requests == []


def test_an_answer_that_is_too_long_or_not_whole_is_refused(subtests: pytest.Subtests) -> None:
    for answer, failure in [
        (http(200, b"x" * (MOST + 1)), "too_long"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * (MOST + 1), "too_long"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 100_000, "too_long"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;" + b"x" * 200_000, "malformed"),
        (b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 100_000, "malformed"),
        (b"HTTP/1.1 100 Continue\r\nA: %s\r\n\r\n" % (b"x" * 60_000) * 90, "too_long"),
        (b"HTTP/1.1 200 " + b"x" * 200_000, "malformed"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfour", "malformed"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfour", "malformed"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "malformed"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nfour\r\n", "malformed"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-" + b"f" * 30 + b"\r\nfour\r\n", "malformed"),
        (b"SSH-2.0-OpenSSH_9.9\r\n", "malformed"),
        (b"<html>", "malformed"),
        (b"", "unreachable"),
    ]:
        with subtests.test(answer=answer[:60], failure=failure), serving(saying(answer)) as heard:
            assert failure_of(heard.site) == failure


def test_a_status_that_refuses_counts_whatever_its_body_is(subtests: pytest.Subtests) -> None:
    for rest in [
        b"Content-Length: 70000\r\n\r\n" + b"x" * 70_000,
        b"Content-Length: 5\r\n\r\nfour",
        b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 100_000,
        b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n-5\r\nfour\r\n",
        b"\r\n" + b"x" * 70_000,
    ]:
        for status in (202, 403, 413):
            answer = f"HTTP/1.1 {status} Said\r\n".encode() + rest
            with subtests.test(status=status, rest=rest[:60]), serving(saying(answer)) as heard:
                reply = exchange(heard.site, ASKED, MOST)
                assert (reply.status, reply.body) == (status, b"")


def test_a_proxy_that_refuses_before_it_has_read_the_body_is_understood() -> None:
    asked = Request("POST", "/v1/x", {}, b"x" * (1 << 24))

    def refuse(connection: socket.socket) -> None:
        connection.recv(1000)
        connection.sendall(http(413, b"<html>"))

    with serving(refuse, reads=False) as heard:
        assert exchange(heard.site, asked, MOST).status == 413


def dripping(beginning: bytes) -> Talk:
    def talk(connection: socket.socket) -> None:
        connection.sendall(beginning)
        while True:
            connection.sendall(b"x")
            time.sleep(0.02)

    return talk


def test_a_server_that_sends_a_byte_now_and_then_is_left_when_the_time_is_over(subtests: pytest.Subtests) -> None:
    for beginning in (b"", b"HTTP/1.1 200 OK\r\n", http(200, b"x" * 500)[:-400]):
        with subtests.test(beginning=beginning), serving(dripping(beginning), seconds=0.2) as heard:
            assert failure_of(heard.site) == "too_slow"


def test_a_server_that_takes_nothing_is_left_when_the_time_is_over() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        site = Site(f"http://127.0.0.1:{listener.getsockname()[1]}", seconds=0.1)
        with pytest.raises(NoAnswer) as raised:
            exchange(site, Request("POST", "/", {}, b"x" * (1 << 24)), MOST)
    assert raised.value.failure == "too_slow"


@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_are_an_answer_or_no_answer(data: bytes, as_head: bool) -> None:
    with serving(saying((b"HTTP/1.1 200 OK\r\n" if as_head else b"") + data)) as heard, suppress(NoAnswer):
        assert isinstance(exchange(heard.site, ASKED, MOST), Reply)


def test_nobody_there_is_said_in_a_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(NoAnswer, match=rf"127\.0\.0\.1 port {port}"):
        exchange(Site(f"http://127.0.0.1:{port}"), ASKED, MOST)


def test_plain_http_reaches_this_machine_only(subtests: pytest.Subtests) -> None:
    for address in ["http://collector.example.com", "http://10.0.0.1", "http://[2001:db8::1]:80"]:
        with subtests.test(address=address):
            with pytest.raises(UsageError, match="https://"):
                Site(address)
            assert Site(address, plain=True).by_tls is False
            assert [Site(here).by_tls for here in ("http://localhost:1", "http://[::1]:1", "http://127.0.0.1:1")] == [
                False
            ] * 3


def test_an_address_that_is_none_is_refused(subtests: pytest.Subtests) -> None:
    cases = [
        "", "collector", "ftp://x.example", "https://", "https://user@x.example", "https://x.example/?a",
        "https://x/#a", "https://x.example:0", "https://x.example:99999", "https://x.exa\nmple", "https://x .example",
        "https://é.example",
    ]  # fmt: skip
    for address in cases:
        with subtests.test(address=address), pytest.raises(UsageError, match=r"^site "):
            Site(address)


def test_a_proxy_of_the_environment_is_used_only_if_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    with serving(saying(http(202))) as proxy, serving(saying(http(202))) as heard:
        monkeypatch.setenv("http_proxy", proxy.site.address)
        exchange(heard.site, ASKED, MOST)
        assert (len(proxy.requests), len(heard.requests)) == (0, 1)
        assert failure_of(Site(heard.site.address, environment_proxies=True)) == "unreachable"
        assert proxy.requests[0].startswith(b"CONNECT 127.0.0.1:")
        assert len(heard.requests) == 1


def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path: Path) -> None:
    own = self_signed(tmp_path / "own.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own)

    def secured(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as line:
            read_request(line)
            line.sendall(http(202))

    with serving(secured, reads=False) as heard:
        address = heard.site.address.replace("http://127.0.0.1", "https://localhost")
        assert failure_of(Site(address)) == "bad_certificate"
        trusting = ssl.create_default_context(cafile=str(own))
        assert exchange(Site(address, context=trusting), ASKED, MOST).status == 202


def test_no_connection_and_no_tls_session_is_used_twice(tmp_path: Path) -> None:
    """The server offers tickets, and the app gives one context for all exchanges."""
    own, resumed = self_signed(tmp_path / "own.pem"), list[bool | None]()
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.maximum_version = version
        context.load_cert_chain(own)

        def secured(connection: socket.socket, context: ssl.SSLContext = context) -> None:
            with context.wrap_socket(connection, server_side=True) as line:
                read_request(line)
                resumed.append(line.session_reused)
                line.sendall(http(202))

        with serving(secured, reads=False) as heard:
            site = Site(
                heard.site.address.replace("http://127.0.0.1", "https://localhost"),
                context=ssl.create_default_context(cafile=str(own)),
            )
            assert [exchange(site, ASKED, MOST).status for _ in range(3)] == [202] * 3
    assert resumed == [False] * 6


def self_signed(path: Path) -> Path:
    """Write a key and its certificate for localhost, which only it vouches for."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "here")])
    day = timedelta(days=1)
    now = datetime.now(timezone.utc)
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, now - day, now + day).add_extension(
        x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False
    )
    pem = serialization.Encoding.PEM
    raw = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_bytes(raw + made.sign(key, hashes.SHA256()).public_bytes(pem))
    return path
