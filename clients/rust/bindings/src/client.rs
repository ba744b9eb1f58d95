//! The client, for apps that deliver reports themselves.

use std::collections::HashMap;

use hushcount::{Budget, Policy, Store, Stream};

use crate::errors::HushcountError;
use crate::options::{Limits, budget_of, designs_of};
use crate::spent::Spent;
use crate::values::{ValueText, coordinates};

/// The options of a client; files are given as bytes.
#[derive(uniffi::Record)]
pub struct ClientOptions {
    /// The campaign file (JSON).
    pub campaign: Vec<u8>,
    /// The bytes of the app's policy, which states its demands on the campaign.
    pub policy: Vec<u8>,
    /// The campaign's signature, `campaign.json.sig`.
    #[uniffi(default = None)]
    pub signature: Option<Vec<u8>>,
    /// The campaign's log; needed if the client missed an epoch.
    #[uniffi(default = None)]
    pub log: Option<Vec<u8>>,
    /// The campaign's dictionary, one item a line, text or gzip.
    #[uniffi(default = None)]
    pub dictionary: Option<Vec<u8>>,
    /// The path of the file with answers, accepted epochs, budget and the installation's id: for one person only. None:
    /// they are lost with the client.
    #[uniffi(default = None)]
    pub store: Option<String>,
    /// Limits the cost of all reports of this person; none: the cost is only counted.
    #[uniffi(default = None)]
    pub limits: Option<Limits>,
    /// The bytes of the file of designs that the operator names: a campaign with mechanism `wss` needs its design.
    #[uniffi(default = None)]
    pub designs: Option<Vec<u8>>,
    /// Length of the operator's windows, or of the shortest that a campaign may list.
    #[uniffi(default = 86_400)]
    pub window_seconds: u64,
}

/// Privatises and seals values of one client for one campaign, for an app that delivers reports itself. Threads may
/// share it.
///
/// Privacy: a frequency report is epsilon-locally private, replace-one; with noise of the mixes it is sealed, not
/// randomised, and hides its value as long as shuffler or auxiliary server keeps to its role. A discovery report hides
/// its value, within the (epsilon, delta) of the keep rule, as long as the auxiliary server and the analyzer do not
/// collude. Whether a report may tell anything about its value does not depend on the value.
#[derive(uniffi::Object)]
pub struct Client {
    client: hushcount::Client,
    budget: Budget,
}

#[uniffi::export]
impl Client {
    /// Check a campaign and return its client.
    ///
    /// # Errors
    /// `Untrusted`: the policy refuses the campaign. `Format`: a file is invalid, or does not belong to the campaign.
    /// `Usage`: clients of the campaign remember their answers, and there is no store; or an option is out of range.
    /// `Store`: the store cannot be written, or the system has no randomness.
    #[uniffi::constructor]
    pub fn new(options: ClientOptions) -> Result<Self, HushcountError> {
        let mut opened = hushcount::ClientOptions::new(options.campaign, Policy::parse(&options.policy)?);
        // A client whose campaign needs a file must not take a store in memory for one.
        opened.store = options.store.map(Store::open).transpose()?;
        let budget = budget_of(options.limits, &opened.store.clone().map_or_else(Store::in_memory, Ok)?)?;
        opened.budget = Some(budget.clone());
        opened.signature = options.signature;
        opened.log = options.log;
        opened.dictionary = options.dictionary;
        opened.designs = designs_of(options.designs)?;
        opened.window_seconds = options.window_seconds;
        Ok(Self { client: hushcount::Client::open(opened)?, budget })
    }

    /// The length of every sealed report of a stream.
    pub fn sealed_bytes(&self, stream: Stream) -> u64 {
        self.client.sealed_bytes(stream) as u64
    }

    /// The fingerprint of the campaign file in hexadecimal digits; a post to the collector must contain it.
    pub fn fingerprint(&self) -> String {
        self.client.fingerprint()
    }

    /// Return one sealed frequency report; the report is of "other" if the value is outside the dictionary, or cannot
    /// be an item, or once the budget is spent.
    ///
    /// `by` is the client's coordinate on each axis of the campaign; a missing or unlisted one is "other". `due` is
    /// when the app will send the report, in milliseconds since 1970; none: at once. If the campaign has noise, a
    /// report names and counts in the window of this moment, and counts nowhere if it arrives in another window.
    ///
    /// # Errors
    /// `NotAsked`, `OverCap`, `BudgetSpent`, `OptedOut`, `NoValidKey`, `Untrusted`: no report may be made. `Usage`: the
    /// campaign carries no frequency reports. `Store`, `Format`: the store failed, so no report was made. None of these
    /// depends on the value.
    #[uniffi::method(default(due = None, by))]
    pub fn report(
        &self,
        value: &ValueText,
        by: &HashMap<ValueText, ValueText>,
        due: Option<i64>,
    ) -> Result<Vec<u8>, HushcountError> {
        Ok(self.client.report_with(value, &coordinates(by), due)?)
    }

    /// Return one sealed frequency report of a number as `report`: its bin, if the campaign has bins, and otherwise its
    /// text.
    ///
    /// # Errors
    /// As `report`.
    #[uniffi::method(default(due = None, by))]
    pub fn report_number(
        &self,
        value: f64,
        by: &HashMap<ValueText, ValueText>,
        due: Option<i64>,
    ) -> Result<Vec<u8>, HushcountError> {
        Ok(self.client.report_with(value, &coordinates(by), due)?)
    }

    /// Return one sealed discovery report. Without a value, and for one in the dictionary or one that cannot be an
    /// item, the report has nothing to discover; so has a report once the budget is spent.
    ///
    /// # Errors
    /// Those of `report`. `Usage`: the value is longer than the campaign allows, or the campaign has no discovery, or
    /// an evaluator: then use a `Sender`. If the app then sends no report, the missing report reveals that the value is
    /// longer: send a report without a value instead.
    pub fn discovery_report(&self, value: Option<ValueText>) -> Result<Vec<u8>, HushcountError> {
        Ok(self.client.discovery_report(value.as_ref().map(Into::into))?)
    }

    /// Return what the reports cost, with sentences for the person.
    ///
    /// # Errors
    /// `Store`, `Format`: the store cannot be read.
    pub fn spent(&self) -> Result<Spent, HushcountError> {
        Ok(self.client.spent()?.into())
    }

    /// Opt out durably: from now on no report can be made, and the memory's answers are deleted. The budget's numbers
    /// are kept.
    ///
    /// # Errors
    /// `Store`, `Format`: the store cannot be written.
    pub fn forget(&self) -> Result<(), HushcountError> {
        Ok(self.client.forget()?)
    }

    /// Permit reports again after `forget`, when the person comes back. The spent budget is not given back.
    ///
    /// # Errors
    /// `Store`, `Format`: the store cannot be written.
    pub fn opt_in(&self) -> Result<(), HushcountError> {
        Ok(self.budget.opt_in()?)
    }
}
