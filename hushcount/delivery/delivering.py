"""Ask the evaluator, then send the due reports of the queue in batches, and settle each batch by its answer."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timezone

from hushcount.budget import Budget, BudgetSpent
from hushcount.campaigns.campaign import Stream
from hushcount.client import Client
from hushcount.clock import Clock
from hushcount.delivery.arrivals import Arrivals
from hushcount.delivery.evaluations import Asker
from hushcount.delivery.events import Delivery, TellEvent
from hushcount.delivery.making import Made, Maker
from hushcount.delivery.passes import Passes
from hushcount.delivery.posting import held_until, hold, post, release
from hushcount.delivery.present import Present
from hushcount.delivery.queue import Queue
from hushcount.delivery.site import Site
from hushcount.delivery.verdicts import MOST_REFUSALS, Verdict
from hushcount.delivery.waiting import Claimed, Waiting
from hushcount.delivery.waits import pause
from hushcount.errors import HushcountError
from hushcount.report_making import Measurement
from hushcount.sampling import NotAsked

_MOST_REPORTS = 1000
_MOST_BYTES = 1 << 18
"""Most bytes of a request. By default a collector accepts a megabyte; a batch that the collector refuses as too long is
halved.
"""
_SECONDS_UNTIL_MADE = 3_600.0
"""How long a plain value waits before the next attempt, if no report can be made of it now."""


@dataclass
class _Done:
    """What one call of `deliver` has done so far."""

    sent: int = 0
    remade: int = 0
    added: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    blank: Counter[str] = field(default_factory=Counter)
    asked: bool = False
    """Whether the collector was asked for the campaign file because an epoch was closed."""
    makes: bool = True
    """Whether reports can be made of plain values; false once an attempt failed in this delivery."""
    most: int = _MOST_REPORTS


@dataclass(frozen=True, eq=False)
class Deliverer:
    """Sends the reports of a queue; threads may share this object, because each batch is claimed before it is sent."""

    site: Site
    queue: Queue
    arrivals: Arrivals
    present: Present
    budget: Budget
    maker: Maker
    asker: Asker
    passes: Passes
    tell: TellEvent
    clock: Clock

    def deliver(self, early: bool) -> Delivery:
        """Ask for due evaluations and send due reports, or all of them if `early`; see `Sender.deliver`."""
        done = _Done()
        client = None if self.budget.opted_out else self.present.refreshed()
        if client is not None:
            self.passes.ask(client.campaign)
        done.blank += self.asker.ask(early)
        turn_now = self.arrivals.turns()
        while held_until(self.queue, self.clock.seconds()) is None:
            if self.budget.opted_out:
                self._drop(done, "opted_out", self.queue.clear())
                break
            plain = client is not None and done.makes
            turn = turn_now()
            has_pass = client is not None and self.passes.has(client.campaign, turn.window)
            claimed = self.queue.claim(self.clock.seconds(), done.most, _MOST_BYTES, plain, early, turn, has_pass)
            if claimed is None:
                break
            reason = "other_window" if claimed.is_late else "over_cap"
            self._drop(done, reason, claimed.over, claimed.stream)
            if not claimed.rows:
                continue
            if not claimed.usable[0] <= self.clock.seconds() < claimed.usable[1]:
                # This process slept, or its clock was set back, so another process may have claimed the same reports
                # meanwhile.
                continue
            if claimed.fingerprint:
                verdict = post(self.site, self.queue, claimed, self.arrivals.starts())
                client = self._settle(claimed, verdict, client, done)
                if verdict.fate == "early":
                    turn_now = self.arrivals.turns()
            elif client is not None:
                self._make(claimed, client, done)
                done.blank += self.asker.ask(early)
        if done.sent:
            self.present.refreshed(sends=True)
        held, waiting = held_until(self.queue, self.clock.seconds()), self.queue.waiting()
        return Delivery(
            done.sent,
            done.remade,
            done.added,
            dict(done.dropped),
            waiting,
            None if held is None else datetime.fromtimestamp(held, timezone.utc),
            dict(done.blank),
            bool(waiting) and client is not None and not self.passes.has(client.campaign, turn_now().window),
        )

    def seconds_to_wait(self, began: float) -> float:
        """Return how many seconds to wait after a delivery that began at `began`, in seconds since 1970.

        Reports that were due when the delivery began and still wait cannot be sent now, so they do not shorten the
        wait.
        """
        now = self.clock.seconds()
        due, held, asked = self.queue.next_due(), held_until(self.queue, now), self.asker.next_due()
        moments = [math.inf if due is None else max(due, held or 0.0), math.inf if asked is None else asked]
        moments.append(self.present.next_due())
        return max(0.0, min((moment for moment in moments if moment > began), default=math.inf) - now)

    def _settle(self, claimed: Claimed, verdict: Verdict, client: Client | None, done: _Done) -> Client | None:
        """Remove, keep or replace the reports of a batch by the verdict on the answer; return the present client."""
        number = len(claimed.rows)
        if verdict.at is not None and verdict.fate != "sent":
            self.arrivals.heard(verdict.at)
        if verdict.fate == "sent":
            release(self.queue)
            done.sent += self.arrivals.settled(claimed, verdict.at, took=True)
            self.tell("sent", "", number, claimed.stream)
        elif verdict.fate == "dropped":
            release(self.queue)
            self._drop(done, verdict.reason, self.arrivals.settled(claimed, verdict.at, took=False), claimed.stream)
        elif verdict.fate == "early":
            self._early(claimed, verdict, done)
        elif verdict.fate == "smaller":
            done.most = max(1, number // 2)
            self.queue.give_back(claimed)
        elif verdict.fate == "closed":
            return self._closed(claimed, verdict, client, done)
        elif verdict.fate == "refused":
            until = hold(self.queue, self.clock.seconds(), verdict.wait)
            gone = self.arrivals.refused(claimed, until, MOST_REFUSALS)
            if gone < number:
                self.tell("again", verdict.reason, number - gone, claimed.stream)
            self._drop(done, verdict.reason, gone, claimed.stream)
        else:
            self._again(claimed, verdict)
        return client

    def _again(self, claimed: Claimed, verdict: Verdict) -> None:
        self.queue.give_back(claimed, hold(self.queue, self.clock.seconds(), verdict.wait))
        self.tell("again", verdict.reason, len(claimed.rows), claimed.stream)

    def _early(self, claimed: Claimed, verdict: Verdict, done: _Done) -> None:
        """Let reports wait for their window, or give them up if they would wait for longer than a window.

        Others may be sent meanwhile, so the collector is not left alone.
        """
        release(self.queue)
        if self.arrivals.is_far(claimed, verdict.at or 0.0):
            self._drop(done, verdict.reason, self.queue.remove(claimed), claimed.stream)
            return
        self.queue.put_off(claimed, self.clock.seconds() + pause(1, verdict.wait))
        self.tell("again", verdict.reason, len(claimed.rows), claimed.stream)

    def _closed(self, claimed: Claimed, verdict: Verdict, client: Client | None, done: _Done) -> Client | None:
        """Turn reports that came too late into plain values, to make new reports; drop reports without a value."""
        kept = [one.measurement is not None for one in claimed.waiting]
        if not done.asked:
            # Fetch the campaign file even if no report is made anew, because the next reports must be of the present
            # epoch.
            done.asked = True
            client = self.present.refreshed(anyway=True)
        if verdict.reason == "epoch_closed" and not any(kept):
            self._drop(done, verdict.reason, self.arrivals.settled(claimed, verdict.at, took=False), claimed.stream)
            return client
        if client is None or client.campaign.fingerprint.hex() == claimed.fingerprint:
            # The collector still serves the old campaign file: either it is about to change epochs, or it serves a file
            # for which it takes no reports.
            self._again(claimed, verdict)
            return client
        self.arrivals.given_up(claimed, verdict.at)
        for place, one in enumerate(claimed.waiting):
            plain = [Waiting("", one.stream, b"", one.measurement, one.due)] if kept[place] else []
            if self.queue.replace(claimed, place, plain) and not plain:
                self._drop(done, verdict.reason, 1, claimed.stream)
        return client

    def _make(self, claimed: Claimed, client: Client, done: _Done) -> None:
        """Make reports of the claimed plain values, and replace each value in the queue by its reports."""
        for place, one in enumerate(claimed.waiting):
            ready: list[Made] = []
            reason = "unknown_stream"
            streams = [stream for stream in client.campaign.streams if one.stream in (None, stream)]
            try:
                self.arrivals.require_room(client.campaign, streams, anew=True)
                for stream in streams:
                    ready.append(self.maker.made(client, stream, one.measurement or Measurement(""), keep_value=True))
            except NotAsked:
                reason = "not_asked"
            except BudgetSpent:
                reason = "budget_spent"
            except HushcountError as error:
                if not ready:
                    # The cap is reached, or keys have expired, so no report can be made of any other value either.
                    done.makes = False
                    self.queue.give_back(claimed, self.clock.seconds() + _SECONDS_UNTIL_MADE)
                    self.tell("again", str(error), len(claimed.rows) - place, one.stream)
                    return
            if not self.queue.replace(claimed, place, [each.waiting for each in ready]):
                continue
            self.asker.evaluations.add([each.evaluation for each in ready if each.evaluation is not None])
            if ready:
                done.remade += len(ready)
                done.added += len(ready) - 1
                self.tell("remade", "", len(ready), one.stream)
            else:
                self._drop(done, reason, 1, one.stream)

    def _drop(self, done: _Done, reason: str, number: int, stream: Stream | None = None) -> None:
        if number:
            done.dropped[reason] += number
            self.tell("dropped", reason, number, stream)
