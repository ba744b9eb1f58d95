"""Ask the evaluator for the names of discovery reports, and put the finished reports in the place of their blanks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from hushcount.budget import Budget
from hushcount.clock import Clock
from hushcount.delivery.events import TellEvent
from hushcount.delivery.exchange import NoAnswer
from hushcount.delivery.making import OpenEvaluation, OpenEvaluations
from hushcount.delivery.posting import EVALUATOR, EVALUATOR_TOKEN, held_until, hold, posted, release
from hushcount.delivery.queue import Queue
from hushcount.delivery.site import Site
from hushcount.delivery.verdicts import Verdict, evaluation_verdict
from hushcount.delivery.waiting import Settled
from hushcount.delivery.waits import random_seconds
from hushcount.discovery.making import finish_all
from hushcount.discovery.oblivious import MOST_EVALUATIONS, Unanswered

EQUIVOCATION = "equivocation"
"""The reason when an answer was not made with the campaign's evaluator key: another key could mark the client."""


@dataclass(frozen=True, eq=False)
class Asker:
    """Asks for the open evaluations of this process; threads may share it.

    The content, the number and the times of requests do not depend on values: there is one evaluation for each report.
    So requests are not padded: their sizes reveal only how many reports were made, and the collector counts these
    anyway.

    Args:
        site: the evaluator.
        queue: where the blanks are.
        evaluations: of this process.
        budget: says whether the person opted out.
        delay: each finished report waits a random time of at most this many seconds, so that it reveals no more about
            the time of use than its evaluation did.
        tell: is told each step.
        clock: the device's.
    """

    site: Site
    queue: Queue
    evaluations: OpenEvaluations
    budget: Budget
    delay: float
    tell: TellEvent
    clock: Clock

    def ask(self, early: bool) -> Counter[str]:
        """Ask what is due, or all if `early`; return how many reports are sent without their value, by reason.

        An evaluation that fails is asked for again after a pause, with the same bytes, until its time is up
        (`OpenEvaluation.until`). With `early` it is not asked for again: its blank is sent.
        """
        blank: Counter[str] = Counter()
        if self.evaluations.next_due() is None:
            # Always so without an evaluator: do not open the queue's file for nothing.
            return blank
        most = MOST_EVALUATIONS
        while held_until(self.queue, self.clock.seconds(), EVALUATOR) is None and not self.budget.opted_out:
            taken = self.evaluations.take(self.clock.seconds(), most, early)
            if not taken:
                break
            try:
                taken = self._still_waiting(taken, blank)
                verdict = self._settle(taken, blank) if taken else Verdict("sent")
            except BaseException:
                # The disk is full, or the user interrupts: the evaluations wait for the next call.
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
        """Return when there may be something to ask, in seconds since 1970; None without an evaluation."""
        due = self.evaluations.next_due()
        return None if due is None else max(due, held_until(self.queue, self.clock.seconds(), EVALUATOR) or 0.0)

    def _still_waiting(self, taken: list[OpenEvaluation], blank: Counter[str]) -> list[OpenEvaluation]:
        """Return the evaluations of blanks that still wait, and extend the claims so that nobody sends these blanks."""
        there = self.queue.renew([one.claim for one in taken], self.clock.seconds() + self.queue.lease)
        self._lost(there.count(False), "too_late", blank)
        return [one for one, waits in zip(taken, there, strict=True) if waits]

    def _settle(self, taken: list[OpenEvaluation], blank: Counter[str]) -> Verdict:
        """Ask for evaluations in one exchange, and settle them by the answer."""
        body = b"".join(one.pending.evaluation for one in taken)
        reports: list[bytes] = []
        try:
            place = f"evaluations?fingerprint={taken[0].fingerprint}"
            reply = posted(self.site, self.queue, place, body, EVALUATOR_TOKEN)
            verdict = evaluation_verdict(reply, len(taken))
            if verdict.fate == "sent":
                reports = finish_all([one.pending for one in taken], reply.body)
        except NoAnswer as failure:
            verdict = Verdict("again", failure.failure)
        except Unanswered:
            # Not asked again: by wrong answers the evaluator could choose the moment of the right one.
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
        """Release the blanks, to be sent at the times at which finished reports would be sent."""
        if evaluations:
            self.queue.settle([Settled(one.claim, self._due()) for one in evaluations])
            self._lost(len(evaluations), reason, blank)

    def _lost(self, number: int, reason: str, blank: Counter[str]) -> None:
        if number and not self.budget.opted_out:
            blank[reason] += number
            self.tell("blank", reason, number, "discovery")

    def _due(self) -> float:
        return self.clock.seconds() + random_seconds(self.delay)
