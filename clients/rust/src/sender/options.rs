//! The options of a sender.

use std::sync::Arc;

use super::http::Http;
use super::issuer::Issuer;
use super::site::Site;
use crate::budget::Budget;
use crate::clock::{Clock, SystemClock};
use crate::errors::{Error, Result};
use crate::oracles::design::Design;
use crate::store::Store;
use crate::trust::policy::Policy;

const DAY: u64 = 86_400;
const LARGEST_QUEUE: u64 = 100_000;
/// The longest window in seconds: its milliseconds are below 2**53.
const MOST_SECONDS: u64 = ((1 << 53) - 1) / 1000;

/// The options that an app passes to its sender.
#[non_exhaustive]
pub struct SenderOptions {
    /// The collector.
    pub site: Site,
    /// The app's policy, which names the campaign and states the app's demands on it.
    pub policy: Policy,
    /// The store for queue, answers, budget and tokens: for one person only. With a store in memory, all reports and
    /// counts end with the process.
    pub store: Store,
    /// Limits the cost of all reports of this person; by default the cost is only counted. The budget must use the same
    /// store as the sender.
    pub budget: Option<Budget>,
    /// Length of the operator's windows, or of the shortest that a campaign may list; by default a day.
    pub window_seconds: u64,
    /// Keep the plain value with a report on this device until the report is sent. If a report arrives after its epoch
    /// was closed, a new report is made from the kept value, which spends budget again. Kept values can also wait for a
    /// campaign file that cannot be fetched yet. By default no value is kept: reports that arrive too late are dropped
    /// and counted, and `report` returns `NotYet` if there is no campaign file.
    pub keep_values: bool,
    /// Each report waits a random time of at most this length, and at most a day, so that its arrival does not reveal
    /// when the value was used; by default 600. In a campaign with an evaluator, the evaluation of a discovery report
    /// waits such a random time in memory, and after the answer the finished report waits another random time.
    pub delay_seconds: u64,
    /// The evaluator, if it does not answer at the collector's site.
    pub evaluator: Option<Site>,
    /// Who gives the client its passes, if the campaign asks for passes.
    pub issuer: Option<Issuer>,
    /// How long an evaluation without an answer is asked for again, at most a day; by default 3600. If no answer comes
    /// in this time, or if the process ends earlier, the report is sent without its value.
    pub answer_within_seconds: u64,
    /// How many reports may wait, at most 100,000; for one more, `report` makes nothing and returns `QueueFull`. By
    /// default 1000.
    pub most_queued: u64,
    /// Designs of the app: a campaign with mechanism `wss` needs its design.
    pub designs: Vec<Design>,
    /// Sends requests.
    pub http: Arc<dyn Http>,
    /// The device's clock.
    pub clock: Arc<dyn Clock>,
}

impl SenderOptions {
    /// Return the options with an app's own way to send requests, and all others as by default.
    #[must_use]
    pub fn with_http(site: impl Into<Site>, policy: Policy, store: Store, http: Arc<dyn Http>) -> Self {
        Self {
            site: site.into(),
            policy,
            store,
            budget: None,
            window_seconds: DAY,
            keep_values: false,
            delay_seconds: 600,
            evaluator: None,
            issuer: None,
            answer_within_seconds: 3600,
            most_queued: 1000,
            designs: Vec::new(),
            http,
            clock: Arc::new(SystemClock),
        }
    }

    /// Return the options with all others as by default.
    #[cfg(feature = "http")]
    #[must_use]
    pub fn new(site: impl Into<Site>, policy: Policy, store: Store) -> Self {
        Self::with_http(site, policy, store, Arc::new(super::ureq_http::UreqHttp))
    }

    /// Check the options that are numbers.
    ///
    /// # Errors
    /// `Usage`: an option is out of range.
    pub(crate) fn require_valid(&self) -> Result<()> {
        let ranges = [
            ("window_seconds", self.window_seconds, 1, MOST_SECONDS),
            ("delay_seconds", self.delay_seconds, 0, DAY),
            ("answer_within_seconds", self.answer_within_seconds, 0, DAY),
            ("most_queued", self.most_queued, 1, LARGEST_QUEUE),
        ];
        match ranges.into_iter().find(|(_, given, least, most)| !(least..=most).contains(&given)) {
            Some((name, given, least, most)) => {
                Err(Error::usage(format!("{name} is {given}, must be from {least} to {most}")))
            }
            None => Ok(()),
        }
    }
}
