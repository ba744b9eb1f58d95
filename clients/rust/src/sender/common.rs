//! What all parts of a sender share.

use std::sync::Arc;

use super::arrivals::Arrivals;
use super::events::EventLog;
use super::http::Http;
use super::queue::Queue;
use super::site::Site;
use super::token::collector_name;
use super::waits::Device;
use crate::budget::Budget;
use crate::campaigns::campaign::Campaign;
use crate::errors::Result;
use crate::store::Store;

/// What all parts of a sender share; threads may share it too.
pub(crate) struct Common {
    pub(crate) http: Arc<dyn Http>,
    /// The collector.
    pub(crate) site: Site,
    pub(crate) store: Store,
    /// Says whether the person opted out, which may happen at any time.
    pub(crate) budget: Budget,
    pub(crate) queue: Arc<Queue>,
    /// What is known of the collector's clock, by which the evaluator's tokens change too.
    pub(crate) arrivals: Arrivals,
    /// The longest random time that anything waits.
    pub(crate) delay: i64,
    pub(crate) log: EventLog,
    pub(crate) clock: Device,
}

impl Common {
    /// Return the collector's name in a campaign file.
    ///
    /// # Errors
    /// `Untrusted`: the campaign has several collectors and the app gives no name, or it lacks the given one.
    pub(crate) fn collector<'a>(&self, campaign: &'a Campaign) -> Result<&'a str> {
        collector_name(&campaign.id, &campaign.collectors, self.site.name.as_deref())
    }
}
