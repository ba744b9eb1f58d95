//! The client: makes a sealed report of a value, for an app that delivers reports itself.

use std::fmt;
use std::sync::Arc;

use crate::budget::{Budget, Limits, Request, Spent};
use crate::campaigns::campaign::{Campaign, Stream};
use crate::clock::{Clock, SystemClock};
use crate::discovery::oblivious::PendingDiscovery;
use crate::errors::{Error, Result};
use crate::formats::bytes::hex;
use crate::making::{Offer, ReportMaker};
use crate::memory;
use crate::oracles::design::Design;
use crate::randomness::Fresh;
use crate::store::Store;
use crate::trust::delegation::CampaignSignature;
use crate::trust::installation::require_asked;
use crate::trust::log::CampaignLog;
use crate::trust::policy::Policy;
use crate::value::{Value, coordinates_of};

const DAY: u64 = 86_400;
/// The name of the file in messages.
const SIGNATURE: &str = "the campaign's signature";
/// The longest window in seconds: its milliseconds are below 2**53.
const MOST_SECONDS: u64 = ((1 << 53) - 1) / 1000;

/// The options of a client; files are given as bytes.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use hushcount::{Client, ClientOptions, Policy, Store};
///
/// let policy = Policy::parse(&std::fs::read("policy.json")?)?;
/// let mut options = ClientOptions::new(std::fs::read("campaign.json")?, policy);
/// options.signature = Some(std::fs::read("campaign.json.sig")?);
/// options.dictionary = Some(std::fs::read("words.txt")?);
/// options.store = Some(Store::open("hushcount.sqlite")?);
/// let client = Client::open(options)?;
/// let report = client.report("dark-mode")?;
/// # Ok(())
/// # }
/// ```
#[non_exhaustive]
pub struct ClientOptions {
    /// The campaign file (JSON).
    pub campaign: Vec<u8>,
    /// The app's policy, which states its demands on the campaign.
    pub policy: Policy,
    /// The campaign's signature, `campaign.json.sig`.
    pub signature: Option<Vec<u8>>,
    /// The campaign's log; needed if the client missed an epoch.
    pub log: Option<Vec<u8>>,
    /// The campaign's dictionary, one item a line, text or gzip.
    pub dictionary: Option<Vec<u8>>,
    /// The store for answers, accepted epochs and the installation's id; by default they are lost with the client.
    pub store: Option<Store>,
    /// Limits the cost of all reports of this person; by default the cost is only counted, in the store.
    pub budget: Option<Budget>,
    /// Designs of the app: a campaign with mechanism `wss` needs its design.
    pub designs: Vec<Design>,
    /// Length of the operator's windows, or of the shortest that a campaign may list, in seconds; by default a day.
    pub window_seconds: u64,
    /// Decides in which window and on which day a report counts, and whether keys are valid; by default the system's.
    pub clock: Arc<dyn Clock>,
}

impl ClientOptions {
    /// Return the options of a campaign file and a policy, with all others as by default.
    #[must_use]
    pub fn new(campaign: Vec<u8>, policy: Policy) -> Self {
        Self {
            campaign,
            policy,
            signature: None,
            log: None,
            dictionary: None,
            store: None,
            budget: None,
            designs: Vec::new(),
            window_seconds: DAY,
            clock: Arc::new(SystemClock),
        }
    }
}

/// Privatises and seals values of one client for one campaign. Threads may share a client.
///
/// Privacy: a frequency report is epsilon-locally private, replace-one; with noise of the mixes it is sealed, not
/// randomised, and hides its value as long as shuffler or auxiliary server keeps to its role. A discovery report hides
/// its value, within the (epsilon, delta) of the keep rule, as long as the auxiliary server and the analyzer do not
/// collude. Reports are counted and charged before they are drawn. Whether a report may tell anything about its value
/// does not depend on the value.
pub struct Client {
    maker: ReportMaker,
    store: Store,
    budget: Budget,
    /// The length of the operator's windows in milliseconds.
    window: i64,
    clock: Arc<dyn Clock>,
}

impl Client {
    /// Check a campaign and return its client.
    ///
    /// # Errors
    /// `Untrusted`: the policy refuses the campaign. `Format`: a file is invalid, or does not belong to the campaign.
    /// `Usage`: clients of the campaign remember their answers, and there is no store; or an option is out of range.
    /// `Store`: the store cannot be written, or the system has no randomness.
    pub fn open(options: ClientOptions) -> Result<Self> {
        let seconds = options.window_seconds;
        if !(1..=MOST_SECONDS).contains(&seconds) {
            let allowed = format!("must be from 1 to {MOST_SECONDS}");
            return Err(Error::usage(format!("window_seconds is {seconds}, {allowed}")));
        }
        let window = seconds.cast_signed() * 1000;
        let campaign = Campaign::parse(&options.campaign, &options.designs)?;
        campaign.require_windows(window)?;
        if campaign.memory && options.store.is_none() {
            let id = &campaign.id;
            return Err(Error::usage(format!("clients of campaign {id} remember their answers: give a store")));
        }
        let store = options.store.map_or_else(Store::in_memory, Ok)?;
        let signature = options.signature.map(|bytes| CampaignSignature::parse(&bytes, SIGNATURE)).transpose()?;
        let log = options.log.map(|bytes| CampaignLog::parse(&bytes)).transpose()?;
        let offer = Offer { campaign, signature, log, dictionary: options.dictionary };
        let maker = ReportMaker::open(offer, &options.policy, &store, options.clock.now())?;
        let budget = options.budget.map_or_else(|| Budget::new(store.clone(), Limits::default()), Ok)?;
        Ok(Self { maker, store, budget, window, clock: options.clock })
    }

    /// The length of every sealed report of a stream.
    #[must_use]
    pub fn sealed_bytes(&self, stream: Stream) -> usize {
        self.maker.campaign.sealed_bytes(stream)
    }

    /// The fingerprint of the campaign file in hexadecimal digits; a post to the collector must contain it.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        hex(&self.maker.campaign.fingerprint)
    }

    /// Return one sealed frequency report; the report is of "other" if the value is outside the dictionary, or cannot
    /// be an item, or once the budget is spent.
    ///
    /// A number counts as its bin if the campaign has bins, and otherwise as its text, like `2.5`. An address counts as
    /// the part of it that the campaign takes, and as "other" if it is no public address, or of a host of which the
    /// policy allows no paths.
    ///
    /// # Errors
    /// `NotAsked`, `OverCap`, `BudgetSpent`, `OptedOut`, `NoValidKey`, `Untrusted`: no report may be made. `Usage`: the
    /// campaign carries no frequency reports. `Store`, `Format`: the store failed, so no report was made. None of these
    /// depends on the value.
    pub fn report<'a>(&self, value: impl Into<Value<'a>>) -> Result<Vec<u8>> {
        self.report_with(value, &[], None)
    }

    /// Return one sealed frequency report as `report`, of a client with coordinates, or for a later time.
    ///
    /// `by` is the client's coordinate on each axis of the campaign; a missing or unlisted one is "other". `due` is
    /// when the app will send the report, in milliseconds since 1970; none: at once. If the campaign has noise, a
    /// report names and counts in the window of this moment, and counts nowhere if it arrives in another window.
    ///
    /// # Errors
    /// As `report`.
    pub fn report_with<'a>(
        &self,
        value: impl Into<Value<'a>>,
        by: &[(&str, Value<'_>)],
        due: Option<i64>,
    ) -> Result<Vec<u8>> {
        let (value, by, now) = (value.into().text(), coordinates_of(by), self.clock.now());
        let due = due.unwrap_or(now);
        let mut random = self.ready(Stream::Reports, now)?;
        let bound = self.maker.campaign.noise.as_ref().map(|_| due);
        let tells = self.charged(Stream::Reports, self.maker.repeats()?, bound, now)?;
        self.maker.report(tells.then_some(&*value), &by, due, &mut random)
    }

    /// Return one sealed discovery report. Without a value, and for one in the dictionary or one that cannot be an
    /// item, the report has nothing to discover; so has a report once the budget is spent.
    ///
    /// # Errors
    /// Those of `report`. `Usage`: the value is longer than the campaign allows, or the campaign has no discovery, or
    /// an evaluator. If the app then sends no report, the missing report reveals that the value is longer: send a
    /// report without a value instead.
    pub fn discovery_report(&self, value: Option<Value<'_>>) -> Result<Vec<u8>> {
        self.require_evaluator(false)?;
        let now = self.clock.now();
        let (mut random, text) = (self.ready(Stream::Discovery, now)?, self.short(value)?);
        let tells = self.charged(Stream::Discovery, false, None, now)?;
        self.maker.discovery_report(text.as_deref().filter(|_| tells), &mut random)
    }

    /// Count and charge a discovery report of an oblivious campaign, and return it unfinished: it needs an evaluation
    /// that the app asks for later.
    ///
    /// # Errors
    /// Those of `discovery_report`; `Usage`: the campaign has no evaluator.
    pub fn pending_discovery(&self, value: Option<Value<'_>>) -> Result<PendingDiscovery> {
        self.require_evaluator(true)?;
        let now = self.clock.now();
        let (mut random, text) = (self.ready(Stream::Discovery, now)?, self.short(value)?);
        let tells = self.charged(Stream::Discovery, false, None, now)?;
        self.maker.pending_discovery(text.as_deref().filter(|_| tells), &mut random)
    }

    /// Return the cost of all reports under this client's budget, for the app to show.
    ///
    /// # Errors
    /// `Store`, `Format`: the store cannot be read.
    pub fn spent(&self) -> Result<Spent> {
        self.budget.spent_at(self.clock.now())
    }

    /// Opt out for good: from now on no report can be made, and the memory's answers are deleted.
    ///
    /// The opt-out is stored first; if this fails later, a second call deletes what is left. The budget's numbers are
    /// kept, so that opting in does not renew the budget.
    ///
    /// # Errors
    /// `Store`, `Format`: the store cannot be written.
    pub fn forget(&self) -> Result<()> {
        self.budget.opt_out()?;
        memory::clear(&self.store)
    }

    /// Check all that may forbid a report and does not depend on its value, and return the report's randomness.
    fn ready(&self, stream: Stream, now: i64) -> Result<Fresh> {
        self.maker.require_stream(stream)?;
        require_asked(&self.store, &self.maker.campaign, now)?;
        self.maker.require_valid(&[stream], now)?;
        Fresh::new()
    }

    /// Count and charge a report for good, before it is drawn; return whether it may depend on its value.
    fn charged(&self, stream: Stream, repeats: bool, due: Option<i64>, now: i64) -> Result<bool> {
        let request = Request { campaign: &self.maker.campaign, stream, number: 1, due, repeats };
        let telling = self.budget.charge(&[request], Some(self.window), now)?;
        Ok(telling.first().is_some_and(|&number| number > 0))
    }

    /// Return a value as text; an error if it could be discovered, but is longer than the campaign allows.
    fn short(&self, value: Option<Value<'_>>) -> Result<Option<String>> {
        let text = value.map(|value| value.text().into_owned());
        if let Some(new) = text.as_deref().and_then(|text| self.maker.new_of(text)) {
            self.maker.require_discovery()?.require_short(&new)?;
        }
        Ok(text)
    }

    fn require_evaluator(&self, wanted: bool) -> Result<()> {
        let Campaign { id, discovery, .. } = &self.maker.campaign;
        if discovery.as_ref().is_none_or(|terms| terms.is_oblivious == wanted) {
            return self.maker.require_stream(Stream::Discovery);
        }
        let (has, cure) = if wanted { ("no", "discovery_report") } else { ("an", "pending_discovery") };
        Err(Error::usage(format!("campaign {id} has {has} evaluator: use {cure}")))
    }
}

impl fmt::Debug for Client {
    /// Write the campaign, and no value and no key.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = &self.maker.campaign.id;
        to.debug_struct("Client")
            .field("campaign", id)
            .field("fingerprint", &self.fingerprint())
            .finish_non_exhaustive()
    }
}

/// Threads may share a client and its options.
const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<Client>();
    shared::<ClientOptions>();
    shared::<PendingDiscovery>();
};
