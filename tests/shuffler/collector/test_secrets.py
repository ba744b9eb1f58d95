"""Tokens, addresses, user agents and reports: none is in a log, a metric, a manifest, an answer or a file's name."""

from __future__ import annotations

import hashlib
import os
import secrets
import socket
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hushcount.errors import UsageError
from service.authentication import read_digests
from tests.shuffler.collector.running import Running, Site, make_site, running

AGENT = "canary-agent/7.3"
ADDRESS = "127.0.0.77"


def send_from(collector: Running, body: bytes, header: str) -> bytes:
    """Post by a socket bound to ADDRESS, with AGENT and one more header; return the answer."""
    with socket.create_connection(("127.0.0.1", collector.port), 15, (ADDRESS, 0)) as connection:
        lines = (
            f"POST {collector.path()} HTTP/1.1\r\nHost: h\r\nUser-Agent: {AGENT}\r\n{header}\r\nConnection: close\r\n"
        )
        rest = f"Content-Type: application/octet-stream\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.sendall((lines + rest).encode() + body)
        answer = b""
        while part := connection.recv(65536):
            answer += part
    return answer


def shapes(secret: bytes) -> list[bytes]:
    """Return a secret as it could have been written."""
    return [secret, secret.hex().encode(), repr(secret)[2:-1].encode()]


def everything_but_reports(site: Site, collector: Running, told: bytes) -> bytes:
    """Return all that the collector wrote or said, but not what block files and journals hold."""
    parts = [told, collector.log.read_bytes()]
    for path in (*site.base.rglob("*"),):
        parts.append(str(path.relative_to(site.base)).encode())
        if path.is_file() and path.suffix not in (".blocks", ".journal") and path.name != "key":
            parts.append(path.read_bytes())
    return b"\n".join(parts)


def test_nothing_of_a_sender_is_written(tmp_path: Path) -> None:
    site = make_site(tmp_path / "site", window="2s", collector={"authentication": "client-token"})
    token = secrets.token_urlsafe(32)
    packed = socket.inet_aton(ADDRESS)
    with running(site) as collector:
        length = site.campaign().sealed_bytes("reports")
        report, wrong = os.urandom(length), os.urandom(length - 1)
        told = send_from(collector, report, f"Client-Token: {token}")
        assert told.startswith(b"HTTP/1.1 202 ")
        told += send_from(collector, wrong, f"Client-Token: {token}")
        told += send_from(collector, report, "Client-Token: short-canary")
        told += b"".join(collector.get(path).content for path in ("/metrics", "/readyz", "/healthz"))
        told += send_from(collector, report, f"Client-Token: {token}\r\nbroken header {token}")
        assert collector.stop() == 0
    seen = everything_but_reports(site, collector, told)
    for canary in (token.encode(), b"short-canary", AGENT.encode(), ADDRESS.encode(), report, wrong):
        assert not any(shape in seen for shape in shapes(canary)), canary
    assert site.sealed() == [report]
    (envelopes,) = site.stored()
    assert envelopes["address"].tobytes() == bytes(16)
    assert packed not in envelopes.tobytes()
    assert token.encode() not in envelopes.tobytes()
    # The same search does find what is there: the campaign's id, and the report in its segment.
    assert b"words" in seen
    assert report in envelopes.tobytes()


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Any:
    site = make_site(tmp_path_factory.mktemp("site"), collector={"authentication": "client-token"})
    with running(site) as collector:
        yield site, collector


def test_a_client_has_one_token_in_a_window_and_its_time_is_the_windows(tokens: tuple[Site, Running]) -> None:
    site, collector = tokens
    length = site.campaign().sealed_bytes("reports")
    for client, number in (("a" * 16, 3), ("b" * 256, 1), ("a" * 16, 2)):
        headers = {"client-token": client}
        assert collector.post(os.urandom(length * number), headers=headers).status_code == 202
    key = next(site.journal.glob("*Z/key")).read_bytes()
    assert collector.stop() == 0
    envelopes = np.concatenate(site.stored())
    expected = hashlib.blake2b(b"a" * 16, digest_size=16, key=key).digest()
    octets = envelopes.view(np.uint8).reshape(len(envelopes), -1)
    assert [bytes(row[:16]) == expected for row in octets] == [True, True, True, False, True, True]
    window = site.windows()[0].name
    moments = {int(moment) for moment in envelopes["received_ms"]}
    assert len(moments) == 1
    assert np.datetime64(moments.pop(), "ms") == np.datetime64(
        f"{window[:4]}-{window[4:6]}-{window[6:8]}T{window[9:11]}:{window[11:13]}:{window[13:15]}"
    )
    with running(site) as again:
        assert again.post(os.urandom(length), headers={"client-token": "a" * 16}).status_code == 202
        assert again.stop() == 0
    later = np.concatenate(site.stored())
    octets = later.view(np.uint8).reshape(len(later), -1)
    # A restart in the same window must not give a client a second allowance.
    assert sum(bytes(row[:16]) == expected for row in octets) == 6


def test_a_client_without_a_proper_token_is_refused(subtests: pytest.Subtests) -> None:
    for token in [None, "", "a" * 15, "a" * 257, "a" * 16 + " b", "\x7f" * 16]:
        with subtests.test(token=token):
            from service.authentication import ClientToken
            from service.refusals import Refused

            with pytest.raises(Refused) as caught:
                ClientToken().client(None if token is None else token.encode(), None, 0.0)
            assert caught.value.reason.status == 401
            assert b"www-authenticate" in dict(caught.value.headers)


def test_apps_show_a_token_and_their_reports_are_of_clients_that_nothing_tells_apart(tmp_path: Path) -> None:
    good, other = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
    base = tmp_path / "site"
    base.mkdir()
    path = base / "tokens"
    path.write_text(
        f"# apps\n\nphone sha256:{hashlib.sha256(good.encode()).hexdigest()}\n"
        f"tablet blake2b:{hashlib.blake2b(other.encode(), digest_size=32).hexdigest()}\n"
    )
    path.chmod(0o600)
    site = make_site(base, collector={"authentication": "bearer", "tokens": "tokens"})
    length = site.campaign().sealed_bytes("reports")
    with running(site) as collector:

        def status(authorization: str | None) -> int:
            headers = {} if authorization is None else {"authorization": authorization}
            return int(collector.post(os.urandom(2 * length), headers=headers).status_code)

        assert [status(f"Bearer {token}") for token in (good, other)] == [202, 202]
        assert status(f"bearer {good}") == 202
        for wrong in (None, "", "Bearer", f"Basic {good}", f"Bearer {good}x", f"Bearer {good[:-1]}", f"Bearer  {good}"):
            assert status(wrong) == 401
        assert collector.post(b"x").headers["www-authenticate"] == "Bearer"
        assert collector.stop() == 0
    envelopes = np.concatenate(site.stored())
    assert len(set(envelopes["client_token"])) == 6
    assert good not in collector.log.read_text()


def test_a_wrong_file_of_tokens_is_refused_in_a_sentence(subtests: pytest.Subtests, tmp_path: Path) -> None:
    for number, (text, mode, says) in enumerate(
        [
            ("phone sha256:" + "0" * 64, 0o640, "chmod 600"),
            ("phone sha256:" + "0" * 63, 0o600, "line 1"),
            ("phone md5:" + "0" * 64, 0o600, "line 1"),
            ("# nothing\n", 0o600, "no digest"),
        ]
    ):
        home = tmp_path / str(number)
        home.mkdir()
        with subtests.test(says=says):
            path = home / "tokens"
            path.write_text(text)
            path.chmod(mode)
            with pytest.raises(UsageError, match=says):
                read_digests(path)
