"""Envelopes: an envelope is a sealed report with its metadata, which the shuffler removes later."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from hushcount.campaigns.campaign import Stream
from hushcount.wire.blocks import Kind

TOKEN_BYTES = 16
ENVELOPES: dict[Stream, Kind] = {"reports": Kind.REPORT_ENVELOPES, "discovery": Kind.DISCOVERY_ENVELOPES}
"""The kind of block file that holds the envelopes of each stream."""


def envelope_dtype(sealed_bytes: int) -> np.dtype[Any]:
    """Return the dtype of one envelope.

    Fields: `client_token`, 16 bytes by which the contribution cap tells clients apart; `received_ms`, milliseconds
    since 1970 at the collector; `address`, the sender's IPv6 (or mapped IPv4) address; `sealed`, the sealed report.
    """
    metadata = [("client_token", f"S{TOKEN_BYTES}"), ("received_ms", "<u8"), ("address", "V16")]
    return np.dtype([*metadata, ("sealed", f"S{sealed_bytes}")])


def sealed_offset(sealed_bytes: int) -> int:
    """Return the offset in an envelope at which the sealed report begins, after the metadata."""
    return envelope_dtype(sealed_bytes).itemsize - sealed_bytes


def client_token(client: str, campaign: bytes) -> bytes:
    """Return a client's token in one campaign: BLAKE2b of the client's name, keyed by the campaign's fingerprint.

    A token that is made from the client's name is for trials only. In production a token must be a secret between
    client and collector, because anyone who knows a client's token can use up that client's cap.
    """
    return hashlib.blake2b(client.encode(), digest_size=TOKEN_BYTES, key=campaign).digest()
