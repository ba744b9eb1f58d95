//! Ask the evaluator for the names of discovery reports, and replace the blanks in the queue by the finished reports.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::common::Common;
use super::events::What;
use super::holds::Party;
use super::open_evaluations::{OpenEvaluation, OpenEvaluations};
use super::posting::{asked, told};
use super::shown::shown;
use super::site::Site;
use super::verdict::{Answer, Fate, Verdict};
use super::waiting::Settled;
use super::waits::random_time;
use crate::campaigns::campaign::Stream;
use crate::discovery::oblivious::{ELEMENT_BYTES, PROOF_BYTES};
use crate::errors::Result;
use crate::passes::slots::{EVALUATOR, Role, Slot};

/// The reason when an answer was not made with the campaign's evaluator key. An answer by another key is refused,
/// because a key for this client alone would mark the client's reports.
const EQUIVOCATION: &str = "equivocation";
/// How many reports are sent without a value, by reason.
pub(crate) type Blank = BTreeMap<String, u64>;

/// Asks for the open evaluations of this process; threads may share it.
///
/// The content, the number and the times of requests do not depend on values, because there is one request for each
/// report.
pub(crate) struct Asker {
    pub(crate) common: Arc<Common>,
    /// The evaluator.
    pub(crate) site: Site,
    pub(crate) open: OpenEvaluations,
}

impl Asker {
    /// Ask for due evaluations, or all if `early`; return how many reports are sent without a value, by reason.
    ///
    /// If no answer comes, the evaluation is asked for again after a pause, with the same bytes, until its time is up
    /// (`OpenEvaluation::until`). With `early` there is no second attempt, and the blank of the report is sent.
    ///
    /// # Errors
    /// `Store`: the queue cannot be read or written; then the evaluations wait for the next call.
    pub(crate) fn ask(&self, early: bool) -> Result<Blank> {
        let mut blank = Blank::new();
        // Without an open evaluation, as always in a campaign without an evaluator, the queue need not be opened.
        if self.open.next_due().is_none() {
            return Ok(blank);
        }
        while self.common.queue.held_until(self.common.clock.now(), Party::Evaluator)?.is_none()
            && !self.common.budget.opted_out()?
        {
            let Some(mut one) = self.open.take(self.common.clock.now(), early) else { break };
            match self.settled(&mut one, &mut blank) {
                Ok(verdict) if verdict.fate == Fate::Again => {
                    self.open.add([one]);
                    self.common.queue.hold(self.common.clock.now(), verdict.wait, Party::Evaluator)?;
                    self.common.log.tell(What::NotAnswered, &verdict.reason, 1, Some(Stream::Discovery));
                }
                Ok(_) => {}
                Err(error) => {
                    self.open.add([one]);
                    return Err(error);
                }
            }
        }
        if self.common.budget.opted_out()? {
            self.open.clear();
        }
        for one in self.open.take_late(self.common.clock.now(), early) {
            self.give_up(&one, "no_answer", &mut blank)?;
        }
        Ok(blank)
    }

    /// Return when the next evaluation may be asked for; none if no evaluation is open.
    ///
    /// # Errors
    /// As `ask`.
    pub(crate) fn next_due(&self) -> Result<Option<i64>> {
        let Some(due) = self.open.next_due() else { return Ok(None) };
        Ok(Some(due.max(self.common.queue.held_until(self.common.clock.now(), Party::Evaluator)?.unwrap_or(i64::MIN))))
    }

    /// Ask for one evaluation, and queue the finished report, or end or repeat the attempt.
    fn settled(&self, one: &mut OpenEvaluation, blank: &mut Blank) -> Result<Verdict> {
        let window = match one.window {
            Some(window) => window,
            None => self.common.arrivals.present()?,
        };
        // The blank's claim is extended, so that no blank is sent meanwhile.
        if self.common.queue.renew(&[&one.claim], self.common.clock.now() + self.common.queue.lease)? != [true] {
            self.lost("too_late", blank)?;
            return Ok(told(Fate::Sent, ""));
        }
        let slot = Slot {
            role: Role::Evaluator,
            campaign: &self.common.queue.campaign,
            name: EVALUATOR,
            begins: window / 1000,
        };
        // Without a pass it was never asked for, because whatever was asked for has a pass. It waits for a window with
        // one.
        let Some(token) = shown(&self.common.queue, slot, one.period)? else { return Ok(told(Fate::Again, "no_pass")) };
        one.window = Some(window);
        let asked = asked(&self.common, &self.site, (&one.fingerprint, &one.pending.evaluation), token);
        let (verdict, report) = match asked {
            Err(failure) => (told(Fate::Again, failure.name()), None),
            Ok(answer) => match verdict_of(&answer) {
                verdict if verdict.fate != Fate::Sent => (verdict, None),
                verdict => match one.pending.finish(&answer.body) {
                    Ok(report) => (verdict, Some(report)),
                    // After a wrong answer the evaluation is not asked for again; otherwise an evaluator could give
                    // wrong answers until a moment of its choice.
                    Err(_) => (told(Fate::Dropped, EQUIVOCATION), None),
                },
            },
        };
        if verdict.fate == Fate::Again {
            return Ok(verdict);
        }
        self.common.queue.release(Party::Evaluator)?;
        if report.is_none() {
            self.give_up(one, &verdict.reason, blank)?;
        } else if self.end(one, report)? == 0 {
            self.lost("too_late", blank)?;
        } else {
            self.common.log.tell(What::Answered, "", 1, Some(Stream::Discovery));
        }
        Ok(verdict)
    }

    /// End the claim of the blank, so that it is sent at the time at which a finished report would be sent.
    fn give_up(&self, one: &OpenEvaluation, reason: &str, blank: &mut Blank) -> Result<()> {
        self.end(one, None)?;
        self.lost(reason, blank)
    }

    /// The report waits a random time, so that it reveals no more about the time of use than its evaluation did.
    fn end(&self, one: &OpenEvaluation, body: Option<Vec<u8>>) -> Result<usize> {
        let due = self.common.clock.now() + random_time(self.common.delay)?;
        self.common.queue.settle(&[Settled { claim: one.claim.clone(), due, body }])
    }

    fn lost(&self, reason: &str, blank: &mut Blank) -> Result<()> {
        if !self.common.budget.opted_out()? {
            *blank.entry(reason.to_owned()).or_default() += 1;
            self.common.log.tell(What::Blank, reason, 1, Some(Stream::Discovery));
        }
        Ok(())
    }
}

/// Return what an evaluator's answer to a request for one evaluation means.
///
/// "Sent" means that the answer has the right length; its proof must still be checked. An evaluator that does not know
/// the campaign file may be about to read that file, and if a proxy answered in its place, it may still be reached, so
/// it is asked again.
fn verdict_of(answer: &Answer) -> Verdict {
    if answer.status == 200 {
        return match answer.media().as_str() {
            "application/octet-stream" if answer.body.len() == ELEMENT_BYTES + PROOF_BYTES => told(Fate::Sent, ""),
            "application/octet-stream" => told(Fate::Again, "wrong_length"),
            _ => told(Fate::Again, "no_evaluator"),
        };
    }
    let verdict = answer.verdict(1, i64::MIN);
    match (verdict.fate, verdict.reason.as_str()) {
        (Fate::Sent | Fate::Refused, _) => told(Fate::Again, "no_evaluator"),
        (_, "unknown_fingerprint" | "too_many_evaluations") => Verdict { fate: Fate::Again, ..verdict },
        _ => verdict,
    }
}
