"""The rows of a queue: a sealed report or a plain value, its claim, and its settlement after an answer."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field

from hushcount.campaigns.campaign import Stream
from hushcount.report_making import Measurement

EVALUATION = "evaluation-"
"""Names of claims for an evaluation begin with this text; such claims last longer than claims for sending."""


@dataclass(frozen=True)
class Waiting:
    """A report that waits to be sent, with the plain `measurement` if the app keeps plain values.

    A plain value without a report waits for a campaign file; its fingerprint is empty, and its stream is the stream of
    the report to make, or None for all streams of the campaign.

    Attributes:
        due: when the report may be sent, in seconds since 1970.
        collector: the collector's name in the campaign file.
        cap: most reports of the stream that the campaign file lets a client send in a window.
        period: seconds in which a pass of the campaign is good; 0: the campaign asks for no passes.
        window: when the window begins that the report itself names, in seconds since 1970: with noise of the mixes it
            counts in no other one. None: it counts in the window in which it arrives.
        claim: claim of the process that asks for the report's name (`new_evaluation`); empty if no evaluation is asked
            for. Until `claimed_until`, in seconds since 1970, no other process sends the report.
    """

    fingerprint: str
    stream: Stream | None
    body: bytes
    measurement: Measurement | None = None
    due: float = 0.0
    claim: str = ""
    claimed_until: float = 0.0
    collector: str = ""
    cap: int = 0
    period: int = 0
    window: int | None = None


@dataclass(frozen=True)
class Turn:
    """The window in which a claim sends, and how to read the fact that counts reports.

    Attributes:
        window: when the collector's present window began, in seconds since 1970.
        fact: name of the fact.
        came: takes the fact, a stream and a window; returns how many of its reports came in that window or later.
    """

    window: int
    fact: str
    came: Callable[[str | None, Stream, int], int]


@dataclass(frozen=True)
class Claimed:
    """Reports of one campaign file, stream and token, or plain values.

    No other process sends them until the claim ends.

    Attributes:
        new: the reports that have their places since this claim: no earlier attempt may have arrived.
        window: when the window of the reports' first attempt began, in seconds since 1970; their token is of it.
        over: how many reports were removed, because there is no room for them, or because they name a window that is
            over. There may be no others.
        is_late: whether they name a window that is over.
    """

    claim: str
    of: Waiting
    """The first report that was due, also if it was removed."""
    rows: tuple[int, ...]
    waiting: tuple[Waiting, ...]
    new: tuple[int, ...]
    window: int
    over: int
    usable: tuple[float, float]
    """First and last moment at which sending may begin, in seconds since 1970: the first half of the claim's time. The
    second half of the claim's time is for the exchange with the collector.
    """
    is_late: bool = False

    @property
    def fingerprint(self) -> str:
        return self.of.fingerprint

    @property
    def stream(self) -> Stream | None:
        return self.of.stream

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
