"""Envelopes: a sealed report with its metadata, before the shuffler strips the metadata."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from hushcount.campaigns.campaign import Stream
from hushcount.wire.blocks import Kind

TOKEN_BYTES = 16
ENVELOPES: dict[Stream, Kind] = {"reports": Kind.REPORT_ENVELOPES, "discovery": Kind.DISCOVERY_ENVELOPES}
"""Kind of the block files of each stream."""


def envelope_dtype(sealed_bytes: int) -> np.dtype[Any]:
    """Return the dtype of one envelope.

    Fields: `client_token`, 16 bytes by which the contribution cap tells clients apart; `received_ms`, milliseconds
    since 1970 at the collector; `address`, the sender's IPv6 (or mapped IPv4) address; `sealed`, the sealed report.
    """
    metadata = [("client_token", f"S{TOKEN_BYTES}"), ("received_ms", "<u8"), ("address", "V16")]
    return np.dtype([*metadata, ("sealed", f"S{sealed_bytes}")])


def sealed_offset(sealed_bytes: int) -> int:
    """Return where in an envelope the sealed report begins, behind the metadata."""
    return envelope_dtype(sealed_bytes).itemsize - sealed_bytes


def client_token(client: str, campaign: bytes) -> bytes:
    """Return the token of a client in one campaign: BLAKE2b of its name keyed by the campaign's fingerprint.

    This is for trials, where only the client's name is known. In production a token must be a secret between client
    and collector: anyone who knows a client's token can use up that client's cap.
    """
    return hashlib.blake2b(client.encode(), digest_size=TOKEN_BYTES, key=campaign).digest()
