//! The sender.

use std::collections::HashMap;
use std::sync::Arc;

use hushcount::{Budget, Event, Reported};

use crate::errors::HushcountError;
use crate::http::Http;
use crate::options::{Issuer, SenderOptions};
use crate::spent::Spent;
use crate::told::Delivery;
use crate::values::{ValueText, coordinates};

/// Makes the reports of one client for one campaign, and delivers them to one collector. Threads may share it.
///
/// With a store in a file, reports are on the disk when `report` returns. So a killed process loses no report, and the
/// next process that uses this file sends the reports of the killed process. Processes may share a file, because no
/// report is sent by two processes at once.
///
/// All calls wait for the disk, and `deliver`, `stop` and the first `report` for the network: do not call them in the
/// thread of the user interface. Call `stop` before you close a sender: closing only ends its thread.
#[derive(uniffi::Object)]
pub struct Sender {
    sender: hushcount::Sender,
    budget: Budget,
}

#[uniffi::export]
impl Sender {
    /// Return a sender, which begins to deliver by `start` or `deliver`.
    ///
    /// `http` sends requests; none: the library sends them itself, without a proxy. `issuer` gives the client its
    /// passes, if the campaign asks for passes.
    ///
    /// # Errors
    /// `Usage`: an option cannot be used. `Format`: the policy is malformed. `Store`: the store cannot be made or read.
    #[uniffi::constructor(default(http = None, issuer = None))]
    pub fn new(
        options: SenderOptions,
        http: Option<Arc<dyn Http>>,
        issuer: Option<Arc<dyn Issuer>>,
    ) -> Result<Self, HushcountError> {
        let (options, budget) = options.opened(http, issuer)?;
        Ok(Self { sender: hushcount::Sender::open(options)?, budget })
    }

    /// Make and queue the reports of one value, one for each stream of the campaign; return what became of them.
    ///
    /// Once a campaign file is kept, this method sends no request. The delivering thread fetches the first campaign
    /// file when the thread starts. If no thread has fetched a campaign file, the first report may fetch it, and the
    /// time of this request reveals the time of use.
    ///
    /// `by` is the client's coordinate on each axis of the campaign; a missing or unlisted one is "other".
    ///
    /// With any other word than `Queued` no report of the value was queued; `dropped` counts the words, and `log` has a
    /// sentence for each.
    #[uniffi::method(default(by))]
    pub fn report(&self, value: &ValueText, by: &HashMap<ValueText, ValueText>) -> Reported {
        self.sender.report_with(value, &coordinates(by))
    }

    /// Make and queue the reports of a number as `report`: its bin, if the campaign has bins, and otherwise its text.
    #[uniffi::method(default(by))]
    pub fn report_number(&self, value: f64, by: &HashMap<ValueText, ValueText>) -> Reported {
        self.sender.report_with(value, &coordinates(by))
    }

    /// Make and queue the reports of one value as `report`, for scripts and tests: an error in place of the word.
    ///
    /// # Errors
    /// What stops a report: `NotAsked`, `OverCap`, `BudgetSpent`, `OptedOut`, `QueueFull`, `NotYet`, `NoValidKey`,
    /// `Untrusted`, `Store`, `Format`.
    #[uniffi::method(default(by))]
    pub fn try_report(&self, value: &ValueText, by: &HashMap<ValueText, ValueText>) -> Result<(), HushcountError> {
        Ok(self.sender.try_report(value, &coordinates(by))?)
    }

    /// How many values `report` did not queue, by the word that it returned; of this object.
    pub fn dropped(&self) -> HashMap<Reported, u64> {
        self.sender.dropped().into_iter().collect()
    }

    /// How many reports and plain values wait on this device; none if the store cannot be read.
    pub fn waiting(&self) -> Option<u64> {
        self.sender.waiting()
    }

    /// Send due reports in batches, and return the result; any process that uses the store may call this method.
    ///
    /// Failures of the collector or the network are no errors: the reports wait, longer after each failure. Call this
    /// method by a timer, not when a value is used, because it also asks for the campaign file when such a request is
    /// due.
    ///
    /// `early`: also ask for evaluations and send reports that are not due yet. The time of arrival then reveals when
    /// the app called this method. Discovery reports whose evaluation gets no answer are sent without their values.
    ///
    /// # Errors
    /// `Store`, `Format`: the store cannot be read or written.
    #[uniffi::method(default(early = false))]
    pub fn deliver(&self, early: bool) -> Result<Delivery, HushcountError> {
        Ok(self.sender.deliver(early)?.into())
    }

    /// Start a thread that delivers, unless it runs.
    pub fn start(&self) {
        self.sender.start();
    }

    /// End the thread, and ask for all open evaluations, because open evaluations are lost when the process ends.
    ///
    /// With a store in memory, waiting reports would also be lost when the process ends, so they are sent now, even if
    /// they are not due.
    pub fn stop(&self) {
        self.sender.stop();
    }

    /// Return what the reports cost, with sentences for the person.
    ///
    /// # Errors
    /// `Store`, `Format`: the budget cannot be read.
    pub fn spent(&self) -> Result<Spent, HushcountError> {
        Ok(self.sender.spent()?.into())
    }

    /// Opt out durably: make and send no more reports; delete waiting reports, remembered answers and tokens.
    ///
    /// The opt-out covers all campaigns in the store, because a store belongs to one person. The budget keeps its
    /// record of what was spent.
    ///
    /// # Errors
    /// `Store`, `Format`: the opt-out cannot be stored. Tell the person, and call this method again.
    pub fn forget(&self) -> Result<(), HushcountError> {
        Ok(self.sender.forget()?)
    }

    /// Permit reports again after `forget`, when the person comes back. The spent budget is not given back.
    ///
    /// # Errors
    /// `Store`, `Format`: the store cannot be written.
    pub fn opt_in(&self) -> Result<(), HushcountError> {
        Ok(self.budget.opt_in()?)
    }

    /// The newest events of this object, a thousand at most; no event contains a value.
    pub fn log(&self) -> Vec<Event> {
        self.sender.log()
    }
}
