"""One report of a value, ready to be queued, and the evaluation that the report may need from the evaluator.

Open evaluations contain values, so they wait in this process's memory and are never written to a disk.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import partial

from hushcount.campaigns.campaign import Stream
from hushcount.client import Client
from hushcount.clock import MACHINE, Clock
from hushcount.delivery.tokens import collector_name
from hushcount.delivery.waiting import Waiting, new_evaluation
from hushcount.delivery.waits import LONGEST_WAIT, is_ahead, random_seconds
from hushcount.discovery.making import PendingDiscovery
from hushcount.formats.client_files import ThreadLock
from hushcount.report_making import Measurement
from hushcount.window_starts import window_of


@dataclass(frozen=True, eq=False)
class OpenEvaluation:
    """The evaluation of one discovery report, whose blank waits in the queue.

    Attributes:
        claim: claim of the blank in the queue.
        fingerprint: fingerprint of the campaign file, in hexadecimal.
        due: when the evaluation is asked for, in seconds since 1970; this time is drawn at random, by the same law for
            every value.
        until: if no answer has come by this moment, the report's blank is sent.
        window: when the window of the first attempt began, in seconds since 1970; None before it. Every attempt shows
            the token of this window, so that equal bytes never link two tokens.
        period: as in `Waiting`.
    """

    claim: str
    fingerprint: str
    due: float
    until: float
    pending: PendingDiscovery = field(repr=False)
    window: int | None = None
    period: int = 0


class OpenEvaluations:
    """The open evaluations of one process; threads may share this object.

    A process that is forked later begins without open evaluations. The parent process asks for the evaluations that
    were open at the fork, so that two processes never ask for the same evaluation.
    """

    def __init__(self) -> None:
        self._lock = ThreadLock()
        self._process = os.getpid()
        self._open: list[OpenEvaluation] = []

    def add(self, evaluations: Sequence[OpenEvaluation]) -> None:
        """Keep evaluations until they are taken."""
        with self._lock:
            self._forget_parents()
            self._open += evaluations

    def take(self, now: float, most: int, early: bool, window: int) -> list[OpenEvaluation]:
        """Remove and return evaluations of one campaign file and token: the due ones, or all if `early`.

        The earliest come first. `window`: when the present window began, for evaluations that were never asked for.
        """
        with self._lock:
            self._forget_parents()
            due = sorted(
                (one for one in self._open if early or not is_ahead(one.due, now, LONGEST_WAIT)),
                key=lambda one: one.due,
            )
            due = [one if one.window is not None else replace(one, window=window) for one in due]
            alike = [one for one in due if (one.fingerprint, one.window) == (due[0].fingerprint, due[0].window)]
            return self._removed(alike[:most])

    def take_late(self, now: float, early: bool) -> list[OpenEvaluation]:
        """Remove and return the evaluations that were not answered in time, or all evaluations if `early`."""
        with self._lock:
            self._forget_parents()
            return self._removed([one for one in self._open if early or not is_ahead(one.until, now, 2 * LONGEST_WAIT)])

    def next_due(self) -> float | None:
        """Return when the next evaluation is due, in seconds since 1970; None if no evaluation is open."""
        with self._lock:
            self._forget_parents()
            return min((one.due for one in self._open), default=None)

    def clear(self) -> None:
        """Delete all evaluations, with the values in them."""
        with self._lock:
            self._open = []

    def _removed(self, evaluations: list[OpenEvaluation]) -> list[OpenEvaluation]:
        gone = {one.claim for one in evaluations}
        self._open = [one for one in self._open if one.claim not in gone]
        return evaluations

    def _forget_parents(self) -> None:
        if self._process != os.getpid():
            self._process, self._open = os.getpid(), []


@dataclass(frozen=True)
class Made:
    """A report to queue, and the evaluation to keep once the report is queued; None if it needs no evaluation."""

    waiting: Waiting
    evaluation: OpenEvaluation | None = None


@dataclass(frozen=True)
class Maker:
    """Makes reports, each of which is due after a random delay.

    With noise of the mixes a report is made for the window in which it is due, and is given up once this window is over
    (`Queue.claim`): it would count in no other one.

    Args:
        delay: the longest delay, in seconds.
        answer_within: for how many seconds an evaluation is asked for again if no answer comes.
        clock: the device's.
        collector: name of the site, as `Site` has it.
    """

    delay: float
    answer_within: float
    clock: Clock = MACHINE
    collector: str | None = None

    def made(self, client: Client, stream: Stream, measurement: Measurement, keep_value: bool) -> Made:
        """Make a report of a value; raises the same errors as `Client.report` and `Client.discovery_report`."""
        campaign, kept = client.campaign, measurement if keep_value else None
        fingerprint, due = campaign.fingerprint.hex(), self.clock.seconds() + random_seconds(self.delay)
        waiting = partial(
            Waiting,
            fingerprint,
            stream,
            measurement=kept,
            collector=collector_name(campaign, self.collector),
            cap=campaign.shuffle.cap,
            period=(period := 0 if campaign.passes is None else campaign.passes.seconds),
        )
        if stream == "reports":
            report = client.report(measurement.value, dict(measurement.by), datetime.fromtimestamp(due, timezone.utc))
            window = None if campaign.noise is None else window_of(report)
            return Made(waiting(report, due=due, window=window))
        wanted = _discoverable(client, measurement.value)
        if not campaign.is_oblivious:
            return Made(waiting(client.discovery_report(wanted), due=due))
        # The evaluation is asked for at the random time `due`, and the blank is sent at another random time, so neither
        # reveals the time of use.
        pending, claim, until = client.pending_discovery(wanted), new_evaluation(), due + self.answer_within
        blank = waiting(pending.blank, due=until + random_seconds(self.delay), claim=claim, claimed_until=until)
        return Made(blank, OpenEvaluation(claim, fingerprint, due, until, pending, period=period))


def _discoverable(client: Client, value: str) -> str | None:
    """Return the value, or None (a blank) if it is too long, because sending no report would reveal its length."""
    return None if client.campaign.is_too_long(value) else value
