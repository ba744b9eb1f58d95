"""The rows of a queue: a sealed report or a plain value, its claim, and its settlement after an answer."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

from hushcount.campaigns.campaign import Stream

EVALUATION = "evaluation-"
"""Names of claims for an evaluation begin with this text; such claims last longer than claims for sending."""


@dataclass(frozen=True)
class Waiting:
    """A report that waits to be sent, with its plain `value` if the app keeps plain values.

    A plain value without a report waits for a campaign file; its fingerprint is empty, and its stream is the stream of
    the report to make, or None for all streams of the campaign.

    Attributes:
        due: when the report may be sent, in seconds since 1970.
        claim: claim of the process that asks for the report's name (`new_evaluation`); empty if no evaluation is asked
            for. Until `claimed_until`, in seconds since 1970, no other process sends the report.
    """

    fingerprint: str
    stream: Stream | None
    body: bytes
    value: str | None = None
    due: float = 0.0
    claim: str = ""
    claimed_until: float = 0.0


@dataclass(frozen=True)
class Claimed:
    """Reports of one campaign file and stream, or plain values; no other process sends them until the claim ends."""

    claim: str
    rows: tuple[int, ...]
    waiting: tuple[Waiting, ...]
    usable: tuple[float, float]
    """First and last moment at which sending may begin, in seconds since 1970: the first half of the claim's time. The
    second half of the claim's time is for the exchange with the collector.
    """

    @property
    def fingerprint(self) -> str:
        return self.waiting[0].fingerprint

    @property
    def stream(self) -> Stream | None:
        return self.waiting[0].stream

    @property
    def body(self) -> bytes:
        """The bytes of all claimed reports, one report after the other."""
        return b"".join(waiting.body for waiting in self.waiting)


@dataclass(frozen=True)
class Settled:
    """A report that no longer waits for an answer and is due at `due`; `body`, if given, replaces its bytes."""

    claim: str
    due: float
    body: bytes | None = field(default=None, repr=False)


def new_evaluation() -> str:
    """Return a new name for a claim that waits for an evaluation; no other claim has this name."""
    return EVALUATION + secrets.token_hex(16)
