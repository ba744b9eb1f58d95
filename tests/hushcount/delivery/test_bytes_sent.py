"""All bytes that a client sends over ten windows to two collectors: no two tokens have anything in common."""

from __future__ import annotations

import json
import re
import time
from collections import defaultdict
from datetime import timedelta
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from hushcount.delivery import Sender, Site
from hushcount.delivery.exchange import _Line
from tests.hushcount.delivery.test_real_collector import policy, sign
from tests.shuffler.collector.running import Site as Deployment
from tests.shuffler.collector.running import make_site, running

WINDOWS = 10
LENGTH = 8
_WINDOW = re.compile(rb"&(window=\w+Z) ")
_TOKEN = re.compile(rb"Client-Token: ([^\r]+)\r\n")


def deployment(base: Path, name: str) -> Deployment:
    """Return a deployment with one of two collectors, windows of a second, and the campaign that names both."""
    site = make_site(base, window="1s", collector={"name": name, "authentication": "client-token"})
    path = site.campaign_file()
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "collectors": ["one", "two"], "shuffle": {**content["shuffle"], "cap": 4}}))
    sign(site, 1)
    return site


def parts(sent: bytes) -> set[bytes]:
    """Return all pieces of LENGTH bytes of each word.

    A piece that reaches over two words would be equal by chance in too many pairs.
    """
    pieces = re.split(rb"\r\n| ", sent)
    return {piece[start : start + LENGTH] for piece in pieces for start in range(len(piece) - LENGTH + 1)}


def test_no_two_windows_and_no_two_collectors_see_eight_equal_bytes_of_one_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two tokens, of 36 pieces each, share a piece by chance with probability 4e-12, all pairs with 1e-9."""
    lines: list[_Line] = []
    sent = defaultdict[int, bytes](bytes)
    sendall = _Line.sendall

    def recorded(line: _Line, data: Any) -> None:
        if not lines or lines[-1] is not line:
            lines.append(line)
        sent[len(lines)] += bytes(data)
        sendall(line, data)

    monkeypatch.setattr(_Line, "sendall", recorded)
    first, second = deployment(tmp_path / "one", "one"), deployment(tmp_path / "two", "two")
    # Both serve the same campaign file.
    second.campaign_file().write_bytes(first.campaign_file().read_bytes())
    sign(second, 1)
    seen: dict[str, dict[tuple[str, bytes], bytes]] = {"watched": {}, "another": {}}
    documents = b""
    with running(first) as one, running(second) as two:
        until = time.monotonic() + 60.0
        while min(len({token for name, token in seen["watched"] if name == each}) for each in ("one", "two")) < WINDOWS:
            assert time.monotonic() < until
            for person, requests in seen.items():
                for name, collector in (("one", one), ("two", two)):
                    lines.clear()
                    sent.clear()
                    sender = Sender(
                        Site(collector.url, name=name),
                        policy(first),
                        tmp_path / person,
                        window=timedelta(seconds=1),
                        delay=timedelta(),
                    )
                    sender.report("word-1")
                    sender.deliver()
                    for request in sent.values():
                        shown = _TOKEN.search(request)
                        if shown is None:
                            assert request.startswith(b"GET ")
                            documents += request
                        else:
                            requests[name, shown[1]] = requests.get((name, shown[1]), b"") + request + b"\r\n"
            time.sleep(0.2)
    # Whoever posts in a window states it, whether or not the other client does so in the same seconds.
    stated = b" ".join(_WINDOW.findall(b"".join(seen["watched"].values())))
    theirs = parts(documents + stated + b"\r\n" + b"".join(seen["another"].values()))
    own = {key: parts(request) - theirs for key, request in seen["watched"].items()}
    assert len({token for _, token in own}) == len(own) >= 2 * WINDOWS
    assert all(token[:LENGTH] in pieces for (_, token), pieces in own.items()), "the search sees tokens"
    for (one_key, one_parts), (other_key, other_parts) in combinations(own.items(), 2):
        assert one_parts & other_parts == set(), (one_key, other_key)
