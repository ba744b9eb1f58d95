"""Golden files: what is stored for the tests, and what they expect of it.

Run by hand, and only when a file format is meant to change: what is in operators' stores and ledgers would not be
read otherwise.

    python -m tests.golden.make            expect what is made now of what is stored
    python -m tests.golden.make --after    let a run make logs, ledger and outputs anew first
    python -m tests.golden.make --anew     make new keys, campaigns and segments too
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
import struct
import sys
import tempfile
import zlib
from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from hushcount.campaigns.campaign import Campaign
from hushcount.many_clients import ManyClients
from tests.golden import by_hand
from tests.golden.by_hand import SIGNED
from tests.golden.described import as_text
from tests.golden.site import (
    AFTER,
    BEFORE,
    CAMPAIGNS,
    COLLECTOR,
    EXPECTED,
    KEYS,
    LEDGER,
    emptied,
    first_run,
    gathered,
    kept,
    restored,
)
from tests.shuffler.collector.running import STREAM, running
from tests.shuffler.collector.running import Site as Running
from tests.support import patient
from tests.support.collecting import START, collect
from tests.support.jobs import done, files_under, new_campaign, write_lines
from tests.support.records import ENVELOPES, envelopes, read_file, write_rows

BEGINS = datetime(2021, 3, 1, tzinfo=timezone.utc)
VALIDITY = {"not_before": "2021-01-01T00:00:00Z", "not_after": "2121-01-01T00:00:00Z"}
DEPLOYMENT = """store = "store"
ledger = "ledger.db"
sign_with = "signing"
shuffler_keys = "signing/public.json"
aux_server_keys = "signing/public.json"

[windows]
length = "1d"
grace = "2d"
patience = "1h"

[next_epoch.words]
review = true
least_length = "1d"
"""
COLLECTING = """
[collector]
name = "one"
port = 0
journal = "journal"
authentication = "client-token"
least_free_bytes = 0
"""
OVER = "20210315T000000Z"
"""The window of what the collector left."""
_KEYS = ("keys", "signing")


def make_before() -> None:
    """Make keys, a campaign and what collectors stored of six windows."""
    emptied(BEFORE).mkdir(parents=True)
    done("keys", "new", "--out", BEFORE / "keys", "--days", 36500)
    done("keys", "new", "--out", BEFORE / "signing", "--role", "handing-on", "--days", 36500)
    for party in _KEYS:
        _set_validity(BEFORE / party / "public.json")
    (BEFORE / "deployment.toml").write_text(DEPLOYMENT)
    folder = BEFORE / "campaigns" / "words"
    folder.mkdir(parents=True)
    dictionary = write_lines(folder / "words.txt", ["alpha", "beta", "größe"])
    path = _campaign(folder / "words.json", dictionary, 1)
    epochs = [{"epoch": 1, "file": path.name, "begins": BEGINS.isoformat(), "ends": None, "grace_ends": None}]
    (folder / "collection.json").write_text(json.dumps({"format": 1, "epochs": epochs}))
    with tempfile.TemporaryDirectory() as scratch:
        shutil.copy(dictionary, scratch)
        # Its reports are sealed to the same keys, and bound to another campaign file.
        other = _campaign(Path(scratch) / "words.json", Path(scratch) / dictionary.name, 2)
        _collect_all(BEFORE / "store", path, other, Path(scratch))
    keys = {str(one.relative_to(BEFORE)): one.read_text() for one in sorted(BEFORE.rglob("*.key"))}
    KEYS.write_text(json.dumps(keys, indent=1) + "\n")
    for name in (*keys, "sent.txt"):
        (BEFORE / name).unlink()


def make_after() -> None:
    """Let a run do all that is due, and store what it leaves but for pages and looks; the ledger as a dump."""
    emptied(AFTER).mkdir()
    with tempfile.TemporaryDirectory() as scratch, mock.patch("socket.gethostname", return_value="golden"):
        root = first_run(Path(scratch).resolve() / "site").root
        passed_over = {*json.loads(KEYS.read_text()), *files_under(BEFORE), LEDGER}
        for name, data in files_under(root).items():
            if name in passed_over or name.endswith((".html", ".lock", ".look.json")):
                continue
            _write(AFTER / name, data)
        (AFTER / f"{LEDGER}.sql").write_text(_dumped(root / LEDGER), encoding="utf-8")


def _dumped(path: Path) -> str:
    with closing(sqlite3.connect(path)) as connection:
        pragmas = [
            f"PRAGMA {name} = {connection.execute(f'PRAGMA {name}').fetchone()[0]};"
            for name in ("application_id", "user_version")
        ]
        return "\n".join([*pragmas, *connection.iterdump()]) + "\n"


def make_campaigns() -> None:
    """Make a campaign file of each family, with and without dictionary, memory and discovery, and sign one."""
    emptied(CAMPAIGNS).mkdir()
    words = write_lines(CAMPAIGNS / "words.txt", ["alpha", "beta", "größe"])
    pool = ("--set", "k=512", "--set", "m=64")
    listed = {"dictionary": words, "min_batch": 50}
    many: dict[str, tuple[str | None, tuple[object, ...], dict[str, Any]]] = {
        "ss.json": ("ss", (), listed),
        "grr.json": ("grr", ("--cap", 3, "--delta", 1e-7), {**listed, "discovery": 2.0}),
        "ais.json": ("ais", ("--memory", "--memory-values", 2), listed),
        "rappor.json": ("rappor", pool, listed),
        "hcms.json": ("hcms", pool, listed),
        "rhr.json": ("rhr", (), listed),
        "wss.json": ("wss", (), listed),
        "gcms-open.json": ("gcms", pool, {"min_batch": 1000}),
        "found.json": (
            None, ("--discovery-relation", "add-remove", "--discovery-rule", "laplace"), {**listed, "discovery": 1.0},
        ),
    }  # fmt: skip
    for name, (mechanism, options, settings) in many.items():
        new_campaign(CAMPAIGNS / name, BEFORE / "keys", *options, mechanism=mechanism, **settings)
    with tempfile.TemporaryDirectory() as scratch:
        keys = Path(scratch) / "operator"
        done("keys", "new", "--out", keys, "--role", "operator", "--days", 36500)
        _set_validity(keys / "public.json")
        done("campaign", "sign", "--campaign", CAMPAIGNS / SIGNED, "--keys", keys)
        (CAMPAIGNS / "operator").mkdir()
        shutil.copy(keys / "public.json", CAMPAIGNS / "operator")


def make_collector() -> None:
    """Let a collector take reports of both streams, kill it, and store its disk as of a window that is over."""
    emptied(COLLECTOR).mkdir()
    with tempfile.TemporaryDirectory() as scratch:
        site = Running(restored(Path(scratch).resolve() / "site"))
        with site.config.open("a") as file:
            file.write(COLLECTING)
        campaign = Campaign.read(site.base / "campaigns/words/words.json")
        client = ManyClients(campaign)
        with running(site) as one:
            for index in range(4):
                token = {"client-token": f"a-secret-of-client-{index}-that-it-keeps-for-itself"}
                made = {"reports": client.report("alpha"), "discovery": client.discovery_report("new")}
                for stream, report in made.items():
                    query = f"fingerprint={campaign.fingerprint.hex()}&window=19700101T000000Z"
                    url = f"{one.url}/v1/campaigns/words/{stream}?{query}"
                    answer = patient.post(url, content=report, headers={**STREAM, **token})
                    assert answer.status_code == 202, answer.text
            one.kill()
        shutil.copy(site.config, COLLECTOR)
        (now,) = (path for path in site.journal.iterdir() if path.is_dir() and path.name.endswith("Z"))
        for name, data in files_under(now).items():
            _write(COLLECTOR / "journal" / OVER / name, _moved(data) if name.endswith(".journal") else data)


def _moved(journal: bytes) -> bytes:
    """Return a journal as one of the window OVER: its header says when the window began."""
    begins = datetime.strptime(OVER, "%Y%m%dT%H%M%S%z")
    raw = bytearray(journal)
    struct.pack_into("<Q", raw, 24, int(begins.timestamp()) * 1000)
    struct.pack_into("<I", raw, 140, zlib.crc32(raw[:140]))
    return bytes(raw)


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _set_validity(path: Path) -> None:
    listing = json.loads(path.read_text())
    for key in listing["keys"]:
        key.update(VALIDITY)
    path.write_text(json.dumps(listing, indent=2) + "\n")


def _campaign(path: Path, dictionary: Path, epoch: int) -> Path:
    return new_campaign(
        path, BEFORE / "keys", "--epoch", epoch, "--max-value-bytes", 16, dictionary=dictionary, discovery=3.0,
    )  # fmt: skip


def _collect_all(store: Path, path: Path, other: Path, scratch: Path) -> None:
    first = (BEGINS - START).days
    # 35 of one value and one of another: a bin of 12 would be revealed once in a hundred runs.
    words = ["alpha", "beta", "nobody", "nobody", "größe", "nobody"]
    sent = [*words[:5], "alone", *(words[index % len(words)] for index in range(66))]
    # Two collectors, and what a client sent twice.
    collect(store, path, sent, first)
    (segment, *_) = collect(store, path, sent[:6], first, "two", streams=("reports",))
    _add_junk(segment, path, other, scratch, 51)
    # Too few: they wait for the next window.
    collect(store, path, sent[:9], first + 1)
    collect(store, path, sent[:51], first + 2, streams=("reports",), authentication="none")
    # Nearly all cannot be opened.
    (segment, *_) = collect(store, path, sent[:3], first + 6, streams=("reports",))
    _add_junk(segment, path, other, scratch, 51)
    # Altered after it was listed.
    (segment, *_) = collect(store, path, sent[:12], first + 10, streams=("reports",))
    raw = bytearray(segment.read_bytes())
    raw[-1] ^= 1
    segment.write_bytes(raw)


def _add_junk(segment: Path, path: Path, other: Path, scratch: Path, number: int) -> None:
    """Add reports that were sealed under another campaign file, as a client that did not follow would send."""
    campaign = Campaign.read(path)
    out = scratch / "junk"
    shutil.rmtree(out, ignore_errors=True)
    lines = write_lines(scratch / "junk.txt", ["alpha"] * number)
    done("job", "encode", "--campaign", other, "--values", lines, "--out", out)
    sealed_bytes = campaign.sealed_bytes("reports")
    sealed = [read_file(one)[1][:, -sealed_bytes:] for one in sorted((out / "reports").glob("*.blocks"))]
    rows = envelopes(campaign, np.concatenate(sealed), [f"stray {index}" for index in range(number)])
    together = np.concatenate([read_file(segment)[1], rows])
    write_rows(segment, ENVELOPES["reports"], together, campaign)
    _list_again(segment)


def _list_again(segment: Path) -> None:
    """Let the manifest say what the segment has now."""
    manifest = next(segment.parents[1].glob(f"{segment.name.split('-')[0]}.manifest.json"))
    listed = json.loads(manifest.read_text())
    for part in listed["segments"]["reports"]:
        if part["name"] == segment.name:
            data = segment.read_bytes()
            digest = hashlib.blake2b(data, digest_size=32).hexdigest()
            part.update(records=len(read_file(segment)[1]), bytes=len(data), digest=digest)
    manifest.write_text(json.dumps(listed))


def write_expected(name: str, data: Any) -> None:
    """Write what a test expects."""
    (EXPECTED / f"{name}.json").write_text(as_text(data) + "\n", encoding="utf-8")


def main() -> None:
    """Write the golden files."""
    emptied(EXPECTED).mkdir()
    if "--anew" in sys.argv[1:]:
        make_before()
        make_campaigns()
        make_collector()
    if {"--after", "--anew"} & set(sys.argv[1:]):
        make_after()
    with tempfile.TemporaryDirectory() as scratch:
        for name, data in gathered(Path(scratch).resolve() / "site").items():
            write_expected(name, data)
    with tempfile.TemporaryDirectory() as scratch:
        for name, data in kept(Path(scratch).resolve() / "site").items():
            write_expected(name, data)
    for run in (by_hand.chain, by_hand.tools, by_hand.campaigns, by_hand.collector):
        with tempfile.TemporaryDirectory() as scratch:
            for name, data in run(Path(scratch).resolve()).items():
                write_expected(name, data)


if __name__ == "__main__":
    main()
