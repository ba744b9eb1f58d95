"""The tally: integer support counts of a campaign, additive, and kept so that it can be asked again later."""

from __future__ import annotations

import zipfile
import zlib
from dataclasses import dataclass
from typing import IO

import numpy as np

from hushcount.errors import FormatError
from hushcount.randomness import UInt64Array
from hushcount.responders.base import Counts

_VERSION = 1
_DAMAGE = (ValueError, KeyError, OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error)
"""What numpy and zipfile raise on a damaged archive; NotImplementedError is a RuntimeError."""


@dataclass(frozen=True, eq=False)
class Tally:
    """What n reports add up to.

    Attributes:
        counts: int64[rows, width]; by cell for identity and pool encoders, by item for affine ones.
        reports: n, how many reports were added; state of its own, not derived from the counts.
        items: uint64[c], the items that the columns of an affine tally stand for; ignored by the others.
    """

    counts: Counts
    reports: int
    items: UInt64Array


def save(tally: Tally, fingerprint: bytes, stream: IO[bytes]) -> None:
    """Write a tally as .npz, bound to its campaign by the campaign's fingerprint."""
    np.savez_compressed(
        stream,
        version=np.int64(_VERSION),
        counts=tally.counts,
        reports=np.int64(tally.reports),
        items=tally.items,
        campaign=np.frombuffer(fingerprint, dtype=np.uint8),
    )


def load(stream: IO[bytes], fingerprint: bytes) -> Tally:
    """Read a tally of this campaign.

    Raises:
        FormatError: not a tally, of another version, or of another campaign.
    """
    try:
        with np.load(stream, allow_pickle=False) as stored:
            version, campaign = int(stored["version"]), stored["campaign"].tobytes()
            tally = Tally(stored["counts"], int(stored["reports"]), stored["items"])
    except _DAMAGE as error:
        raise FormatError("the tally file is damaged or is not a tally that hushcount analyze wrote") from error
    if version != _VERSION:
        raise FormatError(f"the tally file has version {version}, this program reads version {_VERSION}")
    if campaign != fingerprint:
        raise FormatError(
            f"the tally was made for campaign fingerprint {campaign.hex()}, not {fingerprint.hex()}: "
            "give the campaign file that the reports were made with"
        )
    return tally
