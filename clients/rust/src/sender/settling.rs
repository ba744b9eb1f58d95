//! What becomes of a batch after its answer, and of plain values that wait.

use super::delivering::{Deliverer, Done};
use super::events::What;
use super::holds::Party;
use super::making::Made;
use super::present::When;
use super::verdict::{Fate, Verdict};
use super::waiting::{Claimed, Waiting};
use super::waits::pause;
use crate::campaigns::campaign::Stream;
use crate::errors::{Error, Kind, Result};
use crate::formats::bytes::hex;
use crate::making::ReportMaker;

/// Most refusals of one report by machines other than the collector. With the pauses between them, this many refusals
/// take about six days.
const MOST_REFUSALS: u64 = 200;
/// How long a plain value waits before the next attempt, if no report can be made of it now.
const UNTIL_MADE: i64 = 3_600_000;

impl Deliverer {
    /// Remove, keep or replace the reports of a batch by the verdict on the answer.
    pub(crate) fn settle(&self, claimed: &Claimed, verdict: &Verdict, done: &mut Done) -> Result<()> {
        let (number, stream, reason) = (claimed.rows.len(), claimed.of.stream, verdict.reason.as_str());
        if let Some(at) = verdict.at.filter(|_| verdict.fate != Fate::Sent) {
            self.common.arrivals.heard(at)?;
        }
        match verdict.fate {
            Fate::Sent => {
                self.common.queue.release(Party::Collector)?;
                done.delivery.sent += self.common.arrivals.settled(claimed, verdict.at, true)? as u64;
                self.common.log.tell(What::Sent, "", number, stream);
            }
            Fate::Dropped => {
                self.common.queue.release(Party::Collector)?;
                let gone = self.common.arrivals.settled(claimed, verdict.at, false)?;
                self.drop(done, reason, gone, stream);
            }
            Fate::Early => self.early(claimed, verdict, done)?,
            Fate::Smaller => {
                done.most = (number / 2).max(1);
                self.common.queue.give_back(claimed, None)?;
            }
            Fate::Closed => self.closed(claimed, verdict, done)?,
            Fate::Refused => {
                let until = self.common.queue.hold(self.common.clock.now(), verdict.wait, Party::Collector)?;
                let gone = self.common.arrivals.refused(claimed, until, MOST_REFUSALS)?;
                if gone < number {
                    self.common.log.tell(What::Again, reason, number - gone, stream);
                }
                self.drop(done, reason, gone, stream);
            }
            Fate::Again => self.again(claimed, verdict)?,
        }
        Ok(())
    }

    fn again(&self, claimed: &Claimed, verdict: &Verdict) -> Result<()> {
        let until = self.common.queue.hold(self.common.clock.now(), verdict.wait, Party::Collector)?;
        self.common.queue.give_back(claimed, Some(until))?;
        self.common.log.tell(What::Again, &verdict.reason, claimed.rows.len(), claimed.of.stream);
        Ok(())
    }

    /// Let reports wait for their window, or give them up if they would wait for longer than a window.
    ///
    /// Others may be sent meanwhile, so the collector is not left alone.
    fn early(&self, claimed: &Claimed, verdict: &Verdict, done: &mut Done) -> Result<()> {
        self.common.queue.release(Party::Collector)?;
        if self.common.arrivals.is_far(claimed, verdict.at.unwrap_or_default()) {
            let gone = self.common.queue.change(|tables| tables.remove(claimed.rows.iter().map(|row| row.id)))?;
            self.drop(done, &verdict.reason, gone, claimed.of.stream);
            return Ok(());
        }
        self.common.queue.put_off(claimed, self.common.clock.now() + pause(1, verdict.wait)?)?;
        self.common.log.tell(What::Again, &verdict.reason, claimed.rows.len(), claimed.of.stream);
        Ok(())
    }

    /// Turn reports that came too late into plain values, to make new reports; drop reports without a value.
    fn closed(&self, claimed: &Claimed, verdict: &Verdict, done: &mut Done) -> Result<()> {
        if !done.asked {
            // The campaign file is fetched even if no report is made anew, because the next reports must be of the
            // present epoch.
            done.asked = true;
            done.maker = self.present.refreshed(When::Anyway)?;
        }
        let is_kept = claimed.rows.iter().any(|row| row.waiting.measurement.is_some());
        if verdict.reason == "epoch_closed" && !is_kept {
            let gone = self.common.arrivals.settled(claimed, verdict.at, false)?;
            self.drop(done, &verdict.reason, gone, claimed.of.stream);
            return Ok(());
        }
        let present = done.maker.as_ref().map(|maker| hex(&maker.campaign.fingerprint));
        if present.is_none_or(|present| present == claimed.of.fingerprint) {
            // The collector still serves the old campaign file: either it is about to change epochs, or it serves a
            // file for which it takes no reports.
            return self.again(claimed, verdict);
        }
        self.common.arrivals.given_up(claimed, verdict.at)?;
        for row in &claimed.rows {
            let (one, measurement) = (&row.waiting, row.waiting.measurement.clone());
            let plain: Vec<_> = measurement.map(|kept| Waiting::plain(one.stream, kept, one.due)).into_iter().collect();
            if self.common.queue.replace(&claimed.claim, row.id, &plain)? && plain.is_empty() {
                self.drop(done, &verdict.reason, 1, claimed.of.stream);
            }
        }
        Ok(())
    }

    /// Make reports of the claimed plain values, and replace each value in the queue by its reports.
    pub(crate) fn make(&self, claimed: &Claimed, done: &mut Done) -> Result<()> {
        let Some(maker) = done.maker.clone() else { return Ok(()) };
        for (place, row) in claimed.rows.iter().enumerate() {
            let (made, reason) = match self.made_of(&maker, &row.waiting) {
                Ok(made) => (made, "unknown_stream"),
                Err(error) if error.kind() == Kind::NotAsked => (Vec::new(), "not_asked"),
                Err(error) if error.kind() == Kind::BudgetSpent => (Vec::new(), "budget_spent"),
                Err(error) => return self.make_later(claimed, place, &error, done),
            };
            let (waiting, evaluations): (Vec<_>, Vec<_>) =
                made.into_iter().map(|one| (one.waiting, one.evaluation)).unzip();
            if !self.common.queue.replace(&claimed.claim, row.id, &waiting)? {
                continue;
            }
            self.asker.open.add(evaluations.into_iter().flatten());
            if waiting.is_empty() {
                self.drop(done, reason, 1, row.waiting.stream);
                continue;
            }
            done.delivery.remade += waiting.len() as u64;
            done.delivery.added += waiting.len() as u64 - 1;
            self.common.log.tell(What::Remade, "", waiting.len(), row.waiting.stream);
        }
        Ok(())
    }

    fn made_of(&self, maker: &ReportMaker, one: &Waiting) -> Result<Vec<Made>> {
        let of = |stream: &Stream| one.stream.is_none_or(|asked| asked == *stream);
        let streams: Vec<_> = maker.campaign.streams().into_iter().filter(of).collect();
        let measurement = one.measurement.clone().unwrap_or_default();
        if streams.is_empty() {
            return Ok(Vec::new());
        }
        self.making.made(maker, &streams, &measurement, true, true)
    }

    /// The cap is reached, or keys have expired, so no report can be made of any other value either.
    fn make_later(&self, claimed: &Claimed, place: usize, error: &Error, done: &mut Done) -> Result<()> {
        done.makes = false;
        self.common.queue.give_back(claimed, Some(self.common.clock.now() + UNTIL_MADE))?;
        self.common.log.tell(What::Again, &error.to_string(), claimed.rows.len() - place, claimed.of.stream);
        Ok(())
    }
}
