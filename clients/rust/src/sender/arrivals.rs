//! Which reports a client sends: the collector takes at most the cap of each stream in each window, under all tokens.
//!
//! The shuffler counts a report in the window in which the report arrives, not in the window in which it was made, and
//! it counts by tokens, of which a client has several. So the client itself keeps the cap, whatever its clock shows
//! (docs/adr/0051):
//!
//! - A post states the window of its token, and the collector takes no report before its window begins.
//! - A report takes a place in the change that claims it, before it leaves, if it, the reports that came in its window
//!   or later, and all other tried reports are together at most the cap. What has no room is given up, `over_cap`.
//! - A tried report keeps its place in every window, because lost requests and answers look alike. Once it is settled,
//!   it counts in the window of the answer's `Date`: no collector goes back to an earlier window.
//!
//! A report is made only if it would have such a place beside all reports that wait. So in days without a connection, a
//! client makes reports only up to the cap, and these reports wait.
//!
//! The present window is found by the collector's clock: the `Date` of its last answer, plus the time that has passed
//! on the device since that answer. Before the first answer, or if the device's clock was set back after the last one,
//! the present window is found by the device's clock. A wrong present window makes reports wait or be given up, and
//! never lets more arrive.
//!
//! A collector that lies about the time gets no additional reports and costs no additional budget, because the budget
//! separately bounds the reports in a window of the device's clock. But a collector that lies can keep its client from
//! making reports, for two windows of the device's clock after each answer.

use std::sync::{Arc, Mutex, PoisonError};

use super::arrived::{Arrived, FACT, counts_of};
use super::claims::give_back;
use super::queue::{Group, Queue};
use super::tables::Tables;
use super::waiting::{Claimed, Turn};
use super::waits::Device;
use crate::campaigns::campaign::{Campaign, Stream};
use crate::campaigns::windows::Starts;
use crate::errors::{Error, Kind, Result};

/// Counts the reports of one campaign's queue that came; each count is stored together with the queue's change.
///
/// If two processes report at the same moment, more reports than the cap may wait; the reports over the cap are
/// charged, but given up.
pub(crate) struct Arrivals {
    queue: Arc<Queue>,
    clock: Device,
    /// The length of the operator's windows, which a campaign file may replace.
    window: i64,
    /// When windows begin, by what the client knows now.
    starts: Mutex<Starts>,
}

impl Arrivals {
    /// Return the counts of a queue, for windows of a length until a campaign file says when they begin.
    pub(crate) fn new(queue: Arc<Queue>, clock: Device, window: i64) -> Self {
        Self { queue, clock, window, starts: Mutex::new(Starts::new(window, None)) }
    }

    /// Let windows begin as a campaign file states it.
    pub(crate) fn follow(&self, campaign: &Campaign) {
        *self.starts.lock().unwrap_or_else(PoisonError::into_inner) = campaign.starts(self.window);
    }

    /// Return when windows begin.
    pub(crate) fn starts(&self) -> Starts {
        self.starts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Require that one more report of each stream would count; `anew`: it is made from a waiting value.
    ///
    /// # Errors
    /// `OverCap`.
    pub(crate) fn require_room(&self, campaign: &Campaign, streams: &[Stream], anew: bool) -> Result<()> {
        let (fact, groups) = self.queue.waiting_of(FACT)?;
        let (arrived, starts) = (Arrived::read(fact.as_deref())?, self.starts());
        let start = arrived.present(self.clock.now(), &starts);
        for &stream in streams {
            let counts = |group: &&Group| {
                group.stream.is_none_or(|other| other == stream) && may_count(group, start) && !(anew && group.is_plain)
            };
            let wait: u64 = groups.iter().filter(counts).map(|group| group.number).sum();
            let (came, cap) = (arrived.came(stream, start, starts.least()), campaign.shuffle.cap);
            if wait.saturating_add(came) >= cap {
                let (name, id) = (stream.name(), &campaign.id);
                return Err(Error::new(
                    Kind::OverCap,
                    format!(
                        "1 more {name} of campaign {id} would not count: {wait} wait to be sent, and {came} arrived in \
                         the collector's present window, in which at most {cap} count; deliver what waits, or wait for \
                         the next window"
                    ),
                ));
            }
        }
        Ok(())
    }

    /// Return when the collector's present window began.
    pub(crate) fn present(&self) -> Result<i64> {
        Ok(self.known()?.turn().window)
    }

    /// Return what is known of the collector's clock now.
    ///
    /// The claims of one delivery use the same knowledge until an answer says that a window has not begun. Otherwise an
    /// answer to the reports of one stream could change the window between the two streams of a value.
    pub(crate) fn known(&self) -> Result<Known<'_>> {
        Ok(Known { arrivals: self, arrived: Arrived::read(self.queue.fact(FACT)?.as_deref())? })
    }

    /// Store when the collector answered, by its own clock.
    pub(crate) fn heard(&self, at: i64) -> Result<()> {
        let (now, starts) = (self.clock.now(), self.starts());
        self.queue.change(|tables| {
            let mut arrived = Arrived::read(tables.fact(FACT)?.as_deref())?;
            arrived.hear(now, at, &starts);
            tables.note(FACT, &arrived.text())
        })
    }

    /// Remove claimed reports, and count them; return how many were still queued.
    ///
    /// `at` is when the collector answered, by its own clock, if that is known. `took`: the collector took the reports,
    /// so that without `at` they count in the present window.
    pub(crate) fn settled(&self, claimed: &Claimed, at: Option<i64>, took: bool) -> Result<usize> {
        let end = self.end(at, took);
        self.queue.change(|tables| {
            let number = tables.remove(claimed.rows.iter().map(|row| row.id))?;
            end.count(tables, claimed, number)?;
            Ok(number)
        })
    }

    /// Give claimed reports back that others than the collector refused, and remove those that were refused `most`
    /// times; return how many these are.
    pub(crate) fn refused(&self, claimed: &Claimed, due: i64, most: u64) -> Result<usize> {
        let end = self.end(None, false);
        let often = "DELETE FROM queue WHERE campaign = ? AND refusals >= ?";
        self.queue.change(|tables| {
            give_back(tables, claimed, Some(due), 1)?;
            let number = tables.sql(|sql, campaign| sql.execute(often, rusqlite::params![campaign, most]))?;
            if number > 0 {
                end.count(tables, claimed, number)?;
            }
            Ok(number)
        })
    }

    /// Count claimed reports that are given up, before they are removed.
    pub(crate) fn given_up(&self, claimed: &Claimed, at: Option<i64>) -> Result<()> {
        let end = self.end(at, false);
        self.queue.change(|tables| end.count(tables, claimed, claimed.rows.len()))
    }

    /// Return whether the window of claimed reports begins more than a window after a moment.
    pub(crate) fn is_far(&self, claimed: &Claimed, at: i64) -> bool {
        claimed.window > self.starts().after(at)
    }

    fn end(&self, at: Option<i64>, took: bool) -> End {
        End { at, took, now: self.clock.now(), starts: self.starts() }
    }
}

/// The end of an attempt: when the collector answered, by its own clock, and whether it took the reports; and the
/// device's time.
struct End {
    at: Option<i64>,
    took: bool,
    now: i64,
    starts: Starts,
}

impl End {
    /// Count so many of the claimed reports.
    fn count(&self, tables: &Tables<'_>, claimed: &Claimed, number: usize) -> Result<()> {
        let mut arrived = Arrived::read(tables.fact(FACT)?.as_deref())?;
        let mut start = self.took.then(|| arrived.present(self.now, &self.starts));
        if let Some(at) = self.at {
            arrived.hear(self.now, at, &self.starts);
            start = Some(self.starts.at(at));
        }
        arrived.add(start, counts_of(claimed.of.stream, number));
        tables.note(FACT, &arrived.text())
    }
}

/// What was known of the collector's clock at one moment.
pub(crate) struct Known<'a> {
    arrivals: &'a Arrivals,
    arrived: Arrived,
}

impl Known<'_> {
    /// Return the present window.
    pub(crate) fn turn(&self) -> Turn {
        let starts = self.arrivals.starts();
        Turn { window: self.arrived.present(self.arrivals.clock.now(), &starts), least: starts.least() }
    }
}

/// Return whether waiting rows may count in a window.
fn may_count(group: &Group, window: i64) -> bool {
    if group.is_bound {
        return group.window == Some(window);
    }
    group.is_tried || group.window.is_none_or(|first| first <= window)
}
