"""Make a deployment with a long past cheaply: jobs make one window, and all other windows and campaigns are copies.

A copy has names, entries and digests of its own, as a run would have written them, but the reports of the first window.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from benchmarks.junk import WORDS
from hushcount.campaigns.campaign import Campaign, Stream
from hushcount.clock import Clock
from hushcount.collection.envelopes import ENVELOPES, client_token, envelope_dtype
from hushcount.collection.epochs import epoch_folder
from hushcount.collection.manifests import Manifest, SegmentPart
from hushcount.many_clients import ManyClients
from keys.directories import create
from pipelines.deployment.campaigns import read_campaign
from pipelines.deployment.settings import PARTIES, Deployment, Party
from pipelines.files import storage
from pipelines.files.block_files import write_file
from pipelines.handover.hops import CHAIN, hop_names
from pipelines.jobs.new_campaign import create_campaign
from pipelines.ledger.charges import charge_key
from pipelines.log.entry_files import digest_of, read_entry
from pipelines.log.facts import Head
from pipelines.log.fold import Fold
from pipelines.log.folding import Folding, published
from pipelines.log.log import Log
from pipelines.outputs.staging import SUMMARY
from pipelines.outputs.summary import digest_of_json
from pipelines.schedule.run import run
from pipelines.schedule.stating import state
from pipelines.schedule.work import Vouched

LENGTH = timedelta(hours=1)
_ID, _FIRST, _REPORTS = "first-campaign", datetime(2020, 1, 1, tzinfo=timezone.utc), 60
_BEHIND = 50
"""Windows after the newest checkpoint; a party puts one or two entries for each window."""


def window_name(start: datetime) -> str:
    """Return the name of a window."""
    return f"{start:%Y%m%dT%H%M%SZ}"


def make_deployment(folder: Path) -> Deployment:
    """Write keys, a campaign with both streams and a deployment, and take one window through all hops."""
    home = folder / "campaigns" / _ID
    home.mkdir(parents=True)
    (home / "words.txt").write_text("".join(f"{word}\n" for word in WORDS))
    campaign = create_campaign(
        _ID, create(folder / "keys", 9999, ("analyzer", "aux_server")), home, mechanism="grr", epsilon=1.0,
        dictionary=home / "words.txt", shuffle={"minimum_batch": 50}, discovery={"epsilon": 1.0, "delta": 1e-8},
    )  # fmt: skip
    _publish(campaign, home)
    (folder / "deployment.toml").write_text(
        'store = "store"\nledger = "ledger.db"\n[windows]\nlength = "1h"\ngrace = "1h"\npatience = "10m"\n'
    )
    deployment = Deployment.read(folder / "deployment.toml")
    _collect(deployment, campaign, home)
    done = run(deployment, clock=Clock((_FIRST + 2 * LENGTH).timestamp), vouched=Vouched(clock_is_right=True))
    if len(done.hops) != (wanted := len(hop_names(campaign, PARTIES))) or done.problems:
        raise SystemExit(f"{len(done.hops)} of {wanted} hops are done: {done.problems[:3]}")
    return deployment


def _publish(campaign: Campaign, home: Path) -> None:
    campaign.write(home / "epoch-000001.json")
    epoch = {"epoch": 1, "file": "epoch-000001.json", "begins": _FIRST.isoformat(), "ends": None, "grace_ends": None}
    (home / "collection.json").write_text(json.dumps({"epochs": [epoch]}))


def _collect(deployment: Deployment, campaign: Campaign, home: Path) -> None:
    client = ManyClients(Campaign.read(home / "epoch-000001.json"))
    made = {
        "reports": client.reports([WORDS[one % 3] for one in range(_REPORTS)]),
        "discovery": client.discovery_reports(["delta" for _ in range(_REPORTS)]),
    }
    folder = Path(deployment.folder("segments", _ID, epoch_folder(campaign), window_name(_FIRST)))
    parts: dict[Stream, tuple[SegmentPart, ...]] = {}
    for stream in campaign.streams:
        rows = np.zeros(_REPORTS, dtype=envelope_dtype(campaign.sealed_bytes(stream)))
        rows["client_token"] = [client_token(str(one), campaign.fingerprint) for one in range(_REPORTS)]
        rows["sealed"] = [one.tobytes() for one in made[stream]]
        path = folder / stream / "one-0000000000000000-000000.blocks"
        write_file(str(path), ENVELOPES[stream], rows.itemsize, rows.tobytes(), campaign.fingerprint, campaign.id)
        data = path.read_bytes()
        digest = hashlib.blake2b(data, digest_size=32).hexdigest()
        parts[stream] = (SegmentPart(name=path.name, records=_REPORTS, bytes=len(data), digest=digest),)
    manifest = Manifest(
        collector="one", campaign=_ID, epoch=1, fingerprint=campaign.fingerprint.hex(), window=window_name(_FIRST),
        seconds=int(LENGTH.total_seconds()), authentication="client-token", segments=parts, refused={},
    )  # fmt: skip
    path = folder / "one-0000000000000000.manifest.json"
    path.write_text(manifest.model_dump_json())
    ended = (_FIRST + LENGTH).timestamp()
    os.utime(path, (ended, ended))


def party_alone(deployment: Deployment, party: Party) -> Deployment:
    """Write and return a deployment of one party, beside the deployment of all parties, on the same store."""
    path = deployment.path.with_name(f"{party}.toml")
    if not path.exists():
        path.write_text(f'parties = ["{party}"]\n{deployment.path.read_text()}')
    return Deployment.read(path)


@dataclass
class _Copy:
    """A log that consists of copied entries."""

    folding: Folding
    head: Head = field(default_factory=Head)


class Copies:
    """Writes the files of a deployment that ran for a long time; the first window comes from another deployment."""

    def __init__(self, first: Deployment, folder: Path) -> None:
        """Read the first window.

        Args:
            first: the result of `make_deployment`.
            folder: gets a deployment of its own, with the same keys and a copy of the ledger.
        """
        store = Path(first.folder("log")).parent
        shutil.copytree(first.keys, folder / "keys")
        for path in (first.path, first.base / "ledger.db"):
            shutil.copy(path, folder)
        (folder / "campaigns").mkdir()
        self.deployment = Deployment.read(folder / first.path.name)
        self._campaign = Campaign.read(first.campaigns / _ID / "epoch-000001.json")
        self._home = first.campaigns / _ID
        self._files = {
            str(path.relative_to(store)): path.read_bytes()
            for folder in ("segments", "estimates", *(hop.folder for hop in CHAIN.values()))
            for path in (store / folder).rglob("*")
            # The summary of an output is written from its entry.
            if path.is_file() and not path.match(f"{folder}/{_ID}/*/{SUMMARY}")
        }
        self._entries: dict[Party, list[dict[str, Any]]] = {
            party: [
                json.loads(path.read_bytes()) for path in sorted((store / "log" / party / _ID / "000001").iterdir())
            ]
            for party in PARTIES
        }
        self._digests = {
            hop.folder: digest_of_json(json.loads(path.read_bytes()))
            for hop in CHAIN.values()
            for path in (store / hop.folder).glob(f"*/*/{SUMMARY}")
        }

    def write(self, id: str, starts: list[datetime]) -> None:
        """Write a campaign with a window at each of these moments, which must be in order."""
        home = self.deployment.campaigns / id
        home.mkdir(parents=True)
        for path in self._home.glob("*.txt"):
            (home / path.name).write_bytes(path.read_bytes())
        _publish(self._campaign.model_copy(update={"id": id}), home)
        campaign = Campaign.read(home / "epoch-000001.json")
        logs = {party: _Copy(Folding(party, id)) for party in PARTIES}
        for index, start in enumerate(starts):
            digests: dict[str, str] = {}

            def text(said: str, start: datetime = start, digests: dict[str, str] = digests) -> str:
                for old, new in {
                    window_name(_FIRST): window_name(start), _ID: id,
                    self._campaign.fingerprint.hex(): campaign.fingerprint.hex(),
                    self._campaign.fingerprint.hex()[:16]: campaign.fingerprint.hex()[:16], **digests,
                }.items():  # fmt: skip
                    said = said.replace(old, new)
                return said

            for file, data in self._files.items():
                self._put(text(file), text(data.decode()).encode() if file.endswith(".json") else data)
            for party, entries in self._entries.items():
                for entry in entries:
                    if index and entry["decision"]["kind"] in ("opened", "settings", "charging", "confirmed"):
                        continue
                    self._add(id, party, logs[party], json.loads(text(json.dumps(entry))), start, digests)
                if len(starts) - index == _BEHIND:
                    self._checkpoint(id, party, logs[party])
        for party in PARTIES:
            log = Log(self.deployment, party, id)
            log.read()
            epochs = read_campaign(home)
            state(self.deployment, epochs, log)
            # This writes the receipts too, which only separate parties leave.
            state(party_alone(self.deployment, party), epochs, log)

    def _add(
        self, id: str, party: Party, log: _Copy, entry: dict[str, Any], start: datetime, digests: dict[str, str]
    ) -> None:
        at = (start + LENGTH + timedelta(minutes=10)).isoformat().replace("+00:00", "Z")
        number, decision = log.head.number + 1, entry["decision"]
        if "ledger" in decision.get("summary", {}):
            charged = decision["summary"]["ledger"]["charged"]
            charged["manifest"] = digest_of(f"{charged['manifest']} {start}".encode())
            fingerprint = decision["summary"]["fingerprint"]
            charged["key"] = charge_key(fingerprint, 1, charged["hop"], charged["manifest"])
        entry |= {"number": number, "before": log.head.digest, "id": secrets.token_hex(8), "at": at}
        data = json.dumps(entry, sort_keys=True, separators=(",", ":")).encode() + b"\n"
        path = f"log/{party}/{id}/000001/{number:010d}.json"
        self._put(path, data)
        log.folding.add(read_entry(data, path, lambda _: b""))
        log.head = Head(1, number, digest_of(data))
        if decision["kind"] == "done":
            hop = CHAIN[decision["hop"]]
            summary = published(decision["summary"], log.head)
            self._put(f"{hop.folder}/{id}/{decision['batch']}/{SUMMARY}", storage.json_bytes(summary))
            digests[self._digests[hop.folder]] = digest_of_json(summary)

    def _checkpoint(self, id: str, party: Party, log: _Copy) -> None:
        data = TypeAdapter(Fold).dump_json(log.folding.fold)
        self._put(f"log/{party}/{id}/checkpoints/000001.json", data)

    def _put(self, path: str, data: bytes) -> None:
        target = Path(self.deployment.folder(path))
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)


def hours_before(end: datetime, windows: int) -> Iterator[datetime]:
    """Yield the starts of the last `windows` windows before a moment, the oldest first."""
    yield from (end - number * LENGTH for number in range(windows, 0, -1))
