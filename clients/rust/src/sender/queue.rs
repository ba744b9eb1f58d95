//! The queue of one campaign: sealed reports that wait to be sent, and plain values if the app keeps plain values.
//!
//! A report remains in the queue until the collector has the report. A process claims reports for a limited time before
//! it sends them, so that no report is sent by two processes at once. If a process is killed, its claim ends after a
//! time, and another process sends the same bytes again; within the operator's grace period, the shuffler counts equal
//! bytes only once. A process that slept sends nothing that it claimed before it slept.
//!
//! A claim freezes the window of a report's first attempt, so that the same bytes always travel under the same client
//! token, and takes a place under the cap before the report leaves. The report keeps its place in every window until it
//! is settled, because it may arrive in any of them (`arrivals`).
//!
//! A discovery report that waits for an evaluator's answer is queued as a blank, which the process that asks the
//! evaluator claims. When the answer comes, the finished report replaces the blank; if the claim ends before, the blank
//! is sent. The blank and the finished report are never both sent, because they share one row of the database.

use super::tables::{Tables, change, stream_of};
use crate::campaigns::campaign::Stream;
use crate::errors::{Error, Kind, Result};
use crate::store::Store;

/// The queue of one campaign; threads, processes and queues of other campaigns may share the same store.
pub(crate) struct Queue {
    store: Store,
    pub(crate) campaign: String,
    /// How many reports may wait.
    most: u64,
    /// How long a claim lasts; more than twice as long as any exchange.
    pub(crate) lease: i64,
}

/// Rows that wait.
pub(crate) struct Group {
    /// None for plain values of all streams.
    pub(crate) stream: Option<Stream>,
    pub(crate) is_plain: bool,
    pub(crate) is_tried: bool,
    /// Bound rows count in `window` and in no other one.
    pub(crate) is_bound: bool,
    /// None before any attempt.
    pub(crate) window: Option<i64>,
    pub(crate) number: u64,
}

#[allow(
    clippy::redundant_closure_for_method_calls,
    reason = "a method of Tables is not general enough in its lifetime"
)]
impl Queue {
    /// Return the queue of a campaign in a store.
    pub(crate) fn new(store: Store, campaign: String, most: u64, lease: i64) -> Self {
        Self { store, campaign, most, lease }
    }

    /// Read and write in one step.
    pub(crate) fn change<T>(&self, step: impl FnOnce(&Tables<'_>) -> Result<T>) -> Result<T> {
        change(&self.store, &self.campaign, step)
    }

    /// Require that the queue has a place for so many more reports.
    ///
    /// # Errors
    /// `QueueFull`.
    pub(crate) fn require_room(&self, reports: usize) -> Result<()> {
        let number = self.waiting()?;
        if number.saturating_add(reports as u64) <= self.most {
            return Ok(());
        }
        let (campaign, most) = (&self.campaign, self.most);
        Err(Error::new(
            Kind::QueueFull,
            format!(
                "{number} reports of campaign {campaign} wait to be sent, must be at most {most} with {reports} more: \
                 deliver them, or give a larger most_queued"
            ),
        ))
    }

    /// Return how many reports and plain values wait; reports that are claimed count too.
    pub(crate) fn waiting(&self) -> Result<u64> {
        self.change(|tables| tables.count())
    }

    /// Remove all rows, facts and the tokens' secret of the campaign, whose person opted out; return how many rows
    /// waited.
    pub(crate) fn clear(&self) -> Result<u64> {
        self.change(|tables| tables.clear())
    }

    /// Remove all rows, facts and secrets of every campaign in the store; return how many rows waited.
    pub(crate) fn clear_all(&self) -> Result<u64> {
        self.change(|tables| tables.clear_all())
    }

    /// Return a fact, and how many reports and plain values wait, by stream and attempts.
    pub(crate) fn waiting_of(&self, fact: &str) -> Result<(Option<String>, Vec<Group>)> {
        let query = "SELECT stream, fingerprint = '', is_tried, is_bound, first_window, count(*) FROM queue
            WHERE campaign = ? GROUP BY 1, 2, 3, 4, 5";
        self.change(|tables| {
            let groups = tables.sql(|sql, campaign| {
                let mut select = sql.prepare(query)?;
                let groups = select.query_map([campaign], |row| {
                    Ok(Group {
                        stream: stream_of(row.get_ref(0)?.as_str()?),
                        is_plain: row.get(1)?,
                        is_tried: row.get(2)?,
                        is_bound: row.get(3)?,
                        window: row.get(4)?,
                        number: row.get(5)?,
                    })
                })?;
                groups.collect()
            })?;
            Ok((tables.fact(fact)?, groups))
        })
    }

    /// Return when the next report is due and no longer claimed; none if no report waits.
    pub(crate) fn next_due(&self) -> Result<Option<i64>> {
        let query = "SELECT min(max(due, claimed_until)) FROM queue WHERE campaign = ?";
        self.change(|tables| tables.sql(|sql, campaign| sql.query_row(query, [campaign], |row| row.get(0))))
    }

    /// Return the fact that is stored under a name.
    pub(crate) fn fact(&self, name: &str) -> Result<Option<String>> {
        self.change(|tables| tables.fact(name))
    }
}
