//! Ask the evaluator, then send the due reports of the queue in batches.

use std::sync::Arc;

use super::claims::Wanted;
use super::common::Common;
use super::evaluations::{Asker, Blank};
use super::events::{Delivery, What};
use super::holds::Party;
use super::issuer::Passes;
use super::making::Making;
use super::posting::posted;
use super::present::{Present, When};
use super::verdict::Fate;
use crate::campaigns::campaign::Stream;
use crate::errors::Result;
use crate::making::ReportMaker;

const MOST_REPORTS: usize = 1000;
/// Most bytes of a request. By default a collector accepts a megabyte; a batch that the collector refuses as too long
/// is halved.
const MOST_BYTES: usize = 1 << 18;

/// Sends the reports of a queue; threads may share it, because each batch is claimed before it is sent.
pub(crate) struct Deliverer {
    pub(crate) common: Arc<Common>,
    pub(crate) present: Present,
    pub(crate) making: Making,
    pub(crate) asker: Asker,
    pub(crate) passes: Passes,
}

/// What one call of `deliver` has done so far.
pub(crate) struct Done {
    pub(crate) delivery: Delivery,
    pub(crate) maker: Option<Arc<ReportMaker>>,
    /// Whether the collector was asked for the campaign file because an epoch was closed.
    pub(crate) asked: bool,
    /// Whether reports can be made of plain values; false once an attempt failed in this delivery.
    pub(crate) makes: bool,
    /// Most reports of a batch.
    pub(crate) most: usize,
}

impl Done {
    /// Count reports that are sent without a value.
    pub(crate) fn count_blank(&mut self, blank: Blank) {
        for (reason, number) in blank {
            *self.delivery.blank.entry(reason).or_default() += number;
        }
    }
}

impl Deliverer {
    /// Ask for due evaluations and send due reports, or all of them if `early`; see `Sender::deliver`.
    ///
    /// # Errors
    /// `Store`, `Format`: the store cannot be read or written.
    pub(crate) fn deliver(&self, early: bool) -> Result<Delivery> {
        let maker = if self.common.budget.opted_out()? { None } else { self.present.refreshed(When::Due)? };
        if let Some(maker) = &maker {
            self.passes.ask(&maker.campaign)?;
        }
        let mut done = Done { delivery: Delivery::default(), maker, asked: false, makes: true, most: MOST_REPORTS };
        done.count_blank(self.asker.ask(early)?);
        let mut known = self.common.arrivals.known()?;
        while self.common.queue.held_until(self.common.clock.now(), Party::Collector)?.is_none() {
            if self.common.budget.opted_out()? {
                let number = self.common.queue.clear()?;
                self.drop(&mut done, "opted_out", number as usize, None);
                break;
            }
            let turn = known.turn();
            let wanted = Wanted {
                now: self.common.clock.now(),
                most_rows: done.most,
                most_bytes: MOST_BYTES,
                plain: done.maker.is_some() && done.makes,
                early,
                passes: self.has_pass(&done, turn.window)?,
            };
            let Some(claimed) = self.common.queue.claim(wanted, turn)? else { break };
            let reason = if claimed.is_late { "other_window" } else { "over_cap" };
            self.drop(&mut done, reason, claimed.over, claimed.of.stream);
            // If this process slept, or its clock was set back, another process may have claimed the same reports
            // meanwhile.
            if claimed.rows.is_empty() || !(claimed.usable.0..claimed.usable.1).contains(&self.common.clock.now()) {
                continue;
            }
            if claimed.of.is_plain() {
                self.make(&claimed, &mut done)?;
                done.count_blank(self.asker.ask(early)?);
                continue;
            }
            let verdict = posted(&self.common, &claimed)?;
            self.settle(&claimed, &verdict, &mut done)?;
            if verdict.fate == Fate::Early {
                known = self.common.arrivals.known()?;
            }
        }
        if done.delivery.sent > 0 {
            self.present.refreshed(When::Sends)?;
        }
        let mut delivery = std::mem::take(&mut done.delivery);
        delivery.held_until = self.common.queue.held_until(self.common.clock.now(), Party::Collector)?;
        delivery.waiting = self.common.queue.waiting()?;
        delivery.no_pass =
            delivery.waiting > 0 && done.maker.is_some() && !self.has_pass(&done, known.turn().window)?;
        Ok(delivery)
    }

    /// Return how long to wait after a delivery that began at `began`.
    ///
    /// Reports that were due when the delivery began and still wait cannot be sent now, so they do not shorten the
    /// wait.
    ///
    /// # Errors
    /// As `deliver`.
    pub(crate) fn time_to_wait(&self, began: i64) -> Result<i64> {
        let now = self.common.clock.now();
        let held = self.common.queue.held_until(now, Party::Collector)?;
        let due = self.common.queue.next_due()?.map(|due| held.map_or(due, |held| held.max(due)));
        let moments = [due, self.asker.next_due()?, Some(self.present.next_due()?)];
        let next = moments.into_iter().flatten().filter(|moment| *moment > began).min();
        Ok(next.map_or(i64::MAX, |next| next.saturating_sub(now).max(0)))
    }

    /// Count reports that are given up.
    pub(crate) fn drop(&self, done: &mut Done, reason: &str, number: usize, stream: Option<Stream>) {
        if number > 0 {
            *done.delivery.dropped.entry(reason.to_owned()).or_default() += number as u64;
            self.common.log.tell(What::Dropped, reason, number, stream);
        }
    }

    /// Return whether untried reports may be sent in a window: there is a pass, or none is needed.
    fn has_pass(&self, done: &Done, window: i64) -> Result<bool> {
        done.maker.as_ref().map_or(Ok(false), |maker| self.passes.has(&maker.campaign, window))
    }
}
