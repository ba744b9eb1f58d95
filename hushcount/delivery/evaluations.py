"""Ask the evaluator for the names of discovery reports, and replace the blanks in the queue by the finished reports."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from hushcount.budget import Budget
from hushcount.clock import Clock
from hushcount.delivery.arrivals import Arrivals
from hushcount.delivery.events import TellEvent
from hushcount.delivery.exchange import NoAnswer
from hushcount.delivery.making import OpenEvaluation, OpenEvaluations
from hushcount.delivery.posting import EVALUATOR, held_until, hold, posted, release
from hushcount.delivery.queue import Queue
from hushcount.delivery.site import Site
from hushcount.delivery.tokens import shown
from hushcount.delivery.verdicts import Verdict, evaluation_verdict
from hushcount.delivery.waiting import Settled
from hushcount.delivery.waits import random_seconds
from hushcount.discovery.making import finish_all
from hushcount.discovery.oblivious import MOST_EVALUATIONS, Unanswered
from hushcount.passes.slots import EVALUATOR_NAME, Slot

EQUIVOCATION = "equivocation"
"""The reason when an answer was not made with the campaign's evaluator key. An answer by another key is refused,
because a key for this client alone would mark the client's reports.
"""


@dataclass(frozen=True, eq=False)
class Asker:
    """Asks for the open evaluations of this process; threads may share this object.

    The content, the number and the times of requests do not depend on values, because there is one evaluation for each
    report. Requests need no padding: the sizes of requests reveal only how many reports were made, and the collector
    counts the reports in any case.

    Args:
        site: the evaluator.
        queue: the queue that holds the blanks of the reports.
        arrivals: what is known of the collector's clock, by which the evaluator's tokens change too.
        evaluations: the open evaluations of this process.
        budget: budget that says whether the person opted out.
        delay: each finished report waits a random time of at most this many seconds, so that the report reveals no more
            about the time of use than its evaluation did.
        tell: function that is called with each step.
        clock: the device's.
    """

    site: Site
    queue: Queue
    arrivals: Arrivals
    evaluations: OpenEvaluations
    budget: Budget
    delay: float
    tell: TellEvent
    clock: Clock

    def ask(self, early: bool) -> Counter[str]:
        """Ask for due evaluations, or all if `early`; return how many reports are sent without a value, by reason.

        If no answer comes, the evaluation is asked for again after a pause, with the same bytes, until its time is up
        (`OpenEvaluation.until`). With `early` there is no second attempt, and the blank of the report is sent.
        """
        blank: Counter[str] = Counter()
        if self.evaluations.next_due() is None:
            # There is no open evaluation, as always in a campaign without an evaluator, so the queue's file need not be
            # opened.
            return blank
        most = MOST_EVALUATIONS
        while held_until(self.queue, self.clock.seconds(), EVALUATOR) is None and not self.budget.opted_out:
            taken = self.evaluations.take(self.clock.seconds(), most, early, self.arrivals.present())
            if not taken:
                break
            try:
                taken = self._still_waiting(taken, blank)
                verdict = self._settle(taken, blank) if taken else Verdict("sent")
            except BaseException:
                # If the disk is full or the user interrupts, the evaluations wait for the next call.
                self.evaluations.add(taken)
                raise
            if verdict.fate == "smaller":
                most = max(1, len(taken) // 2)
            elif verdict.fate == "again":
                hold(self.queue, self.clock.seconds(), verdict.wait, EVALUATOR)
                self.tell("not_answered", verdict.reason, len(taken), "discovery")
        if self.budget.opted_out:
            self.evaluations.clear()
        self._give_up(self.evaluations.take_late(self.clock.seconds(), early), "no_answer", blank)
        return blank

    def next_due(self) -> float | None:
        """Return when the next evaluation may be asked for, in seconds since 1970; None if no evaluation is open."""
        due = self.evaluations.next_due()
        return None if due is None else max(due, held_until(self.queue, self.clock.seconds(), EVALUATOR) or 0.0)

    def _still_waiting(self, taken: list[OpenEvaluation], blank: Counter[str]) -> list[OpenEvaluation]:
        """Return the evaluations whose blanks still wait, and extend the blanks' claims, so that no blank is sent."""
        there = self.queue.renew([one.claim for one in taken], self.clock.seconds() + self.queue.lease)
        self._lost(there.count(False), "too_late", blank)
        return [one for one, waits in zip(taken, there, strict=True) if waits]

    def _settle(self, taken: list[OpenEvaluation], blank: Counter[str]) -> Verdict:
        """Ask for evaluations in one exchange, and queue the finished reports, or end or repeat the attempt."""
        slot = Slot(self.queue.campaign, "evaluator", EVALUATOR_NAME, taken[0].window or 0)
        token = shown(self.queue, slot, taken[0].period)
        if token is None:
            # They were never asked for, because whatever was asked for has a pass. They wait for a window with one.
            self.evaluations.add([replace(one, window=None) for one in taken])
            return Verdict("again", "no_pass")
        body = b"".join(one.pending.evaluation for one in taken)
        reports: list[bytes] = []
        try:
            place = f"evaluations?fingerprint={taken[0].fingerprint}"
            reply = posted(self.site, self.queue, place, body, token)
            verdict = evaluation_verdict(reply, len(taken))
            if verdict.fate == "sent":
                reports = finish_all([one.pending for one in taken], reply.body)
        except NoAnswer as failure:
            verdict = Verdict("again", failure.failure)
        except Unanswered:
            # After a wrong answer the evaluations are not asked for again; otherwise an evaluator could give wrong
            # answers until a moment of its choice.
            verdict = Verdict("dropped", EQUIVOCATION)
        if verdict.fate in ("again", "smaller"):
            self.evaluations.add(taken)
            return verdict
        release(self.queue, EVALUATOR)
        if not reports:
            self._give_up(taken, verdict.reason, blank)
            return verdict
        settled = [Settled(one.claim, self._due(), report) for one, report in zip(taken, reports, strict=True)]
        answered = self.queue.settle(settled)
        if answered:
            self.tell("answered", "", answered, "discovery")
        self._lost(len(taken) - answered, "too_late", blank)
        return verdict

    def _give_up(self, evaluations: list[OpenEvaluation], reason: str, blank: Counter[str]) -> None:
        """End the claims of the blanks, so that they are sent at the times at which finished reports would be sent."""
        if evaluations:
            self.queue.settle([Settled(one.claim, self._due()) for one in evaluations])
            self._lost(len(evaluations), reason, blank)

    def _lost(self, number: int, reason: str, blank: Counter[str]) -> None:
        if number and not self.budget.opted_out:
            blank[reason] += number
            self.tell("blank", reason, number, "discovery")

    def _due(self) -> float:
        return self.clock.seconds() + random_seconds(self.delay)
