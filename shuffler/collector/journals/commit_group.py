"""Groups of reports that are synced together, and the envelopes that are made of them."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import struct
from dataclasses import dataclass, field

import numpy as np

from hushcount.collection.envelopes import TOKEN_BYTES
from shuffler.collector.campaigns import Target

_MILLISECONDS = struct.Struct("<Q")


@dataclass
class WaitingReports:
    """Reports of one target in a group."""

    bodies: list[bytes] = field(default_factory=list)  # one or more sealed reports in each
    clients: list[tuple[int, bytes | None]] = field(
        default_factory=list
    )  # reports of a body, and what its client showed
    reports: int = 0


@dataclass
class CommitGroup:
    """Reports that are synced together."""

    waiting: dict[Target, WaitingReports] = field(default_factory=dict)
    reports: int = 0
    done: asyncio.Event = field(default_factory=asyncio.Event)  # set after the try
    kept: set[Target] = field(default_factory=set)  # those with all their reports on the disk


def envelopes(target: Target, waiting: WaitingReports, key: bytes, window_ms: int) -> bytes:
    """Return the waiting reports' envelopes: a token, the window's start in ms, no address, the sealed report.

    Privacy: a client token is BLAKE2b, under the window's key, of what the client showed. If it showed nothing, the
        token is fresh for each report.
    Randomness: the operating system's cryptographic generator.
    """
    rows = np.zeros((waiting.reports, target.record_bytes), np.uint8)
    tokens = b"".join(_token(reports, client, key) for reports, client in waiting.clients)
    rows[:, :TOKEN_BYTES] = np.frombuffer(tokens, np.uint8).reshape(-1, TOKEN_BYTES)
    rows[:, TOKEN_BYTES : TOKEN_BYTES + _MILLISECONDS.size] = np.frombuffer(_MILLISECONDS.pack(window_ms), np.uint8)
    sealed = np.frombuffer(b"".join(waiting.bodies), np.uint8)
    rows[:, -target.sealed_bytes :] = sealed.reshape(-1, target.sealed_bytes)
    return rows.tobytes()


def _token(reports: int, client: bytes | None, key: bytes) -> bytes:
    if client is None:
        return secrets.token_bytes(TOKEN_BYTES * reports)
    return hashlib.blake2b(client, digest_size=TOKEN_BYTES, key=key).digest() * reports
