"""Block files and sealed reports made by hand: what a careless network or a hostile client puts between the jobs."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hushcount.campaigns.campaign import Campaign, Stream
from hushcount.collection.envelopes import client_token, envelope_dtype
from hushcount.senders import Senders
from hushcount.wire.blocks import Header, Kind, encode_blocks, read_block, read_header
from hushcount.wire.sealing import Octets
from keys.directories import KeyReference
from keys.private import PrivateKey
from keys.roles import OpeningRole, Role
from pipelines.jobs.discover import ReleaseJob, ReleaseSteps
from pipelines.outputs.staging import Output
from pipelines.outputs.summary import make_summary

SEALED = {"reports": Kind.SEALED_REPORTS, "discovery": Kind.SEALED_DISCOVERY}
ENVELOPES = {"reports": Kind.REPORT_ENVELOPES, "discovery": Kind.DISCOVERY_ENVELOPES}


def file_bytes(kind: Kind, rows: Octets, campaign: bytes, campaign_id: str) -> bytes:
    """Return the bytes of one block file of these records."""
    header = Header(kind, rows.shape[1], len(rows), campaign, campaign_id)
    return b"".join(encode_blocks(header, rows.tobytes()))


def write_rows(path: Path, kind: Kind, rows: Octets, campaign: Campaign) -> Path:
    """Write one block file of this campaign."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(file_bytes(kind, rows, campaign.fingerprint, campaign.id))
    return path


def read_file(path: Path) -> tuple[Header, Octets]:
    """Return the header and the records of a whole block file, uint8[n, length]."""
    stream = io.BytesIO(path.read_bytes())
    header = read_header(stream, str(path))
    blocks = [read_block(stream, header, index) for index in range(header.blocks)]
    assert None not in blocks, f"{path} is damaged"
    octets = np.frombuffer(b"".join(block for block in blocks if block is not None), dtype=np.uint8)
    return header, octets.reshape(header.records, header.record_bytes)


def spoil(segment: Path) -> None:
    """Let the last report of a segment be one that nobody can open, as from a client with another key."""
    header, rows = read_file(segment)
    rows = rows.copy()
    rows[-1, -1] ^= 1
    segment.write_bytes(b"".join(encode_blocks(header, rows.tobytes())))
    manifest = segment.parents[1] / "one.manifest.json"
    described = json.loads(manifest.read_text())
    (part,) = described["segments"]["reports"]
    part["digest"] = hashlib.blake2b(segment.read_bytes(), digest_size=32).hexdigest()
    manifest.write_text(json.dumps(described))


def read_rows(directory: Path) -> Octets:
    """Return the records of all block files of a directory, in the order of their names."""
    parts = [read_file(path)[1] for path in sorted(directory.glob("*.blocks"))]
    assert parts, f"{directory} holds no block file"
    return np.concatenate(parts)


def dead_letters(directory: Path, stream: Stream) -> dict[str, Octets]:
    """Return the records of every dead letter file of a stream in a job's output, by reason."""
    letters = {}
    for path in sorted((directory / "dead_letter" / stream).glob("*")):
        header, rows = read_file(path)
        assert header.kind == Kind.DEAD_LETTER
        reason, length = path.name.removesuffix(".blocks").rsplit("-", 1)
        assert int(length) == header.record_bytes
        letters[reason] = rows
    return letters


def in_order(rows: Octets) -> list[bytes]:
    """Return the rows as byte strings in ascending order: what they are, whatever order they came in."""
    return sorted(row.tobytes() for row in rows)


def as_set(rows: Octets) -> set[bytes]:
    """Return the rows as a set of byte strings."""
    return {row.tobytes() for row in rows}


def rows_of(reports: Sequence[bytes]) -> Octets:
    """Return uint8[n, L] of byte strings of one length."""
    return np.frombuffer(b"".join(reports), dtype=np.uint8).reshape(len(reports), -1)


def envelopes(
    campaign: Campaign,
    sealed: Octets,
    clients: Sequence[str] | None = None,
    received_ms: Sequence[int] | None = None,
) -> Octets:
    """Return envelopes around sealed reports: by default every report has a client of its own, one a millisecond."""
    names = clients or [f"client {index}" for index in range(len(sealed))]
    made = np.zeros(len(sealed), dtype=envelope_dtype(sealed.shape[1]))
    tokens = [client_token(name, campaign.fingerprint) for name in names]
    made["client_token"] = tokens
    made["received_ms"] = received_ms if received_ms is not None else np.arange(len(sealed)) + 1_700_000_000_000
    made["address"] = np.frombuffer(b"".join(b"\xfd" + token[1:] for token in tokens), dtype="V16")
    made["sealed"] = np.ascontiguousarray(sealed).view(f"S{sealed.shape[1]}").reshape(-1)
    return np.frombuffer(made.tobytes(), dtype=np.uint8).reshape(len(sealed), -1)


def write_envelopes(directory: Path, campaign: Campaign, stream: Stream, rows: Octets, name: str = "part") -> Path:
    """Write a file of envelopes where hushcount job shuffle looks for them."""
    return write_rows(directory / stream / f"{name}.blocks", ENVELOPES[stream], rows, campaign)


def write_shuffled(directory: Path, campaign: Campaign, streams: dict[Stream, Sequence[Octets]]) -> Path:
    """Write what hushcount job shuffle would have: files of sealed reports, and a summary that counts them."""
    counts: dict[str, dict[str, Any]] = {}
    for stream, parts in streams.items():
        total = sum(len(part) for part in parts)
        counts[stream] = {"received": total, "accepted": total, "rejected": {}}
        (directory / stream).mkdir(parents=True)
        for index, part in enumerate(parts):
            write_rows(directory / stream / f"part-{index:05d}.blocks", SEALED[stream], part, campaign)
    write_summary(directory, campaign, counts)
    return directory


def write_summary(directory: Path, campaign: Campaign, streams: dict[str, dict[str, Any]]) -> None:
    """Write the summary.json of hushcount job shuffle for this campaign."""
    data = {
        "hop": "shuffle",
        "campaign": campaign.id,
        "fingerprint": campaign.fingerprint.hex(),
        "received": sum(counts["received"] for counts in streams.values()),
        "accepted": sum(counts["accepted"] for counts in streams.values()),
        "rejected": {},
        "streams": streams,
        "upstream": [],
        **Senders("client-token").data(),
    }
    (directory / "summary.json").write_text(json.dumps(data), encoding="utf-8")


def key_file(keys: Path, role: Role) -> Path:
    """Return the one private key file that a key directory has of a role."""
    (path,) = keys.glob(f"{role}-*.key")
    return path


def key_reference(keys: Path, role: Role) -> KeyReference:
    """Return the reference to the one private key that a key directory has of a role."""
    return KeyReference(str(keys), role, key_file(keys, role).stem.rpartition("-")[2])


def private_key(keys: Path, role: OpeningRole) -> PrivateKey:
    """Open the one private key that a key directory has of a role."""
    return key_reference(keys, role).read()


def plain_reports(campaign: Campaign, keys: Path, sealed: Octets) -> Octets:
    """Open sealed frequency reports and return their wire bytes without the binding."""
    key = private_key(keys, "analyzer")
    opened = [key.open(row.tobytes()) for row in sealed]
    binding = campaign.binding("reports")
    assert all(plain is not None and plain.startswith(binding) for plain in opened)
    return rows_of([plain[len(binding) :] for plain in opened if plain is not None])


def release_job(campaign: Campaign, key: KeyReference) -> ReleaseJob:
    """Return the plan of the auxiliary server's job on no report."""
    return ReleaseJob(
        campaign=campaign,
        to=Output("nowhere"),
        steps=ReleaseSteps(campaign=campaign, key=key, rule=campaign.require_keep_rule()),
        analyzer=None,
        evaluator=None,
        upstream=make_summary("shuffle", campaign, {}, None),
        folder="nowhere",
        files=[],
    )
