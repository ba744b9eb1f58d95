//! What an app passes to its sender.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hushcount::{Budget, Design, Policy, Store, WhenSpent};

use crate::http::{Http, HttpError, OfApp};

/// What a client does once its budget is spent.
#[uniffi::remote(Enum)]
pub enum WhenSpent {
    /// Reports that reveal nothing are made.
    Other,
    /// Making a report fails with `BudgetSpent`; missing reports then reveal that the budget is spent.
    Nothing,
}

/// The limits of the budget of one person, over all campaigns in a store; by default there are none.
#[derive(Default, uniffi::Record)]
pub struct Limits {
    /// The largest epsilon that may be charged on a UTC day, rounded down to billionths; none: no limit.
    #[uniffi(default = None)]
    pub per_day: Option<f64>,
    /// Most epsilon ever, rounded down to billionths; none: no limit.
    #[uniffi(default = None)]
    pub lifetime: Option<f64>,
    /// What happens once the budget is spent; none: `Other`.
    #[uniffi(default = None)]
    pub when_spent: Option<WhenSpent>,
}

/// One collector, one evaluator or one issuer. Its text has only the address, because the app's token is a secret.
#[derive(uniffi::Record)]
#[uniffi::export(Debug)]
pub struct Site {
    /// The address, as in `https://collector.example.com`, perhaps with a port and a path. Plain http is permitted only
    /// if the address is this machine.
    pub address: String,
    /// The collector's name in the campaign file, if the campaign has several collectors. Tokens are derived by this
    /// name and not by the address, so a new address does not change the client's token.
    #[uniffi(default = None)]
    pub name: Option<String>,
    /// Whether to permit plain http to other machines too. Anyone on the network path then sees the client token and
    /// can alter answers, but reports are sealed and cannot be read.
    #[uniffi(default = false)]
    pub plain: bool,
    /// The token of the app, for collectors that demand such a token (`authentication = "bearer"`). Do not log it.
    #[uniffi(default = None)]
    pub app_token: Option<String>,
    /// How long one exchange may take, from the connection to the last byte received; at most 600.
    #[uniffi(default = 30)]
    pub timeout_seconds: u64,
}

impl fmt::Debug for Site {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "Site({})", self.address)
    }
}

impl From<Site> for hushcount::Site {
    fn from(site: Site) -> Self {
        let Site { address, name, plain, app_token, timeout_seconds } = site;
        Self { address, name, plain, app_token, timeout: Duration::from_secs(timeout_seconds) }
    }
}

/// The issuer of a campaign's passes, and what shows that this installation may ask.
#[uniffi::export(with_foreign)]
pub trait Issuer: Send + Sync {
    /// Return where the issuer is. It is called once, when the sender is made.
    ///
    /// # Errors
    /// The app does not know it; the sender is not made then.
    fn site(&self) -> Result<Site, HttpError>;

    /// Return the value of the header Authorization for the issuer's rule, such as a token of the account. It is called
    /// in the thread that delivers, once for each request. An error or an empty text: no pass is asked for now.
    ///
    /// # Errors
    /// The app has no authorization now.
    fn authorization(&self) -> Result<String, HttpError>;
}

/// The options that an app passes to its sender.
#[derive(uniffi::Record)]
pub struct SenderOptions {
    /// The collector.
    pub site: Site,
    /// The bytes of the app's policy, which names the campaign and states the app's demands on it.
    pub policy: Vec<u8>,
    /// The path of the file with queue, answers, budget and tokens: for one person only, in a folder that exists, and
    /// that other users cannot write to. Processes may share it. None: in memory, so that all reports and counts end
    /// with the process.
    #[uniffi(default = None)]
    pub store: Option<String>,
    /// Limits the cost of all reports of this person; none: the cost is only counted.
    #[uniffi(default = None)]
    pub limits: Option<Limits>,
    /// Keep the plain value with a report on this device until the report is sent. If a report arrives after its epoch
    /// was closed, a new report is made from the kept value, which spends budget again. Kept values can also wait for a
    /// campaign file that cannot be fetched yet. By default no value is kept: reports that arrive too late are dropped
    /// and counted, and `report` returns `NotYet` if there is no campaign file.
    #[uniffi(default = false)]
    pub keep_values: bool,
    /// Each report waits a random time of at most this length, and at most a day, so that its arrival does not reveal
    /// when the value was used. In a campaign with an evaluator, the evaluation of a discovery report waits such a
    /// random time in memory, and after the answer the finished report waits another random time.
    #[uniffi(default = 600)]
    pub delay_seconds: u64,
    /// Length of the operator's windows, or of the shortest that a campaign may list.
    #[uniffi(default = 86_400)]
    pub window_seconds: u64,
    /// How many reports may wait, at most 100,000; for one more, `report` makes nothing and returns `QueueFull`.
    #[uniffi(default = 1000)]
    pub most_queued: u64,
    /// The evaluator, if it does not answer at the collector's site.
    #[uniffi(default = None)]
    pub evaluator: Option<Site>,
    /// How long an evaluation without an answer is asked for again, at most a day. If no answer comes in this time, or
    /// if the process ends earlier, the report is sent without its value.
    #[uniffi(default = 3600)]
    pub answer_within_seconds: u64,
    /// The bytes of the file of designs that the operator names: a campaign with mechanism `wss` needs its design.
    #[uniffi(default = None)]
    pub designs: Option<Vec<u8>>,
}

impl SenderOptions {
    /// Return the crate's options, and the budget.
    pub(crate) fn opened(
        self,
        http: Option<Arc<dyn Http>>,
        issuer: Option<Arc<dyn Issuer>>,
    ) -> hushcount::Result<(hushcount::SenderOptions, Budget)> {
        let (policy, store) = (Policy::parse(&self.policy)?, store_of(self.store)?);
        let budget = budget_of(self.limits, &store)?;
        let mut options = match http {
            Some(http) => hushcount::SenderOptions::with_http(self.site, policy, store, Arc::new(OfApp(http))),
            None => hushcount::SenderOptions::new(self.site, policy, store),
        };
        options.budget = Some(budget.clone());
        options.keep_values = self.keep_values;
        options.delay_seconds = self.delay_seconds;
        options.window_seconds = self.window_seconds;
        options.most_queued = self.most_queued;
        options.evaluator = self.evaluator.map(Into::into);
        options.answer_within_seconds = self.answer_within_seconds;
        options.designs = designs_of(self.designs)?;
        if let Some(issuer) = issuer {
            // The crate refuses an empty address, and an empty authorization.
            let site = issuer.site().map_or_else(|_| "".into(), Into::into);
            let authorization = Arc::new(move || issuer.authorization().unwrap_or_default());
            options.issuer = Some(hushcount::Issuer { site, authorization });
        }
        Ok((options, budget))
    }
}

/// Return the store at a path, or one in memory.
pub(crate) fn store_of(path: Option<String>) -> hushcount::Result<Store> {
    path.map_or_else(Store::in_memory, Store::open)
}

/// Return the budget of these limits, in a store.
pub(crate) fn budget_of(limits: Option<Limits>, store: &Store) -> hushcount::Result<Budget> {
    let limits = limits.unwrap_or_default();
    let limits = hushcount::Limits {
        per_day: limits.per_day.unwrap_or(f64::INFINITY),
        lifetime: limits.lifetime.unwrap_or(f64::INFINITY),
        when_spent: limits.when_spent.unwrap_or_default(),
    };
    Budget::new(store.clone(), limits)
}

/// Return the designs in a file.
pub(crate) fn designs_of(file: Option<Vec<u8>>) -> hushcount::Result<Vec<Design>> {
    file.map_or_else(|| Ok(Vec::new()), |bytes| Design::parse(&bytes))
}
