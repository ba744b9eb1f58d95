//! The sender: brings an app's value to the collector's disk as a report, which it makes, queues, delays and sends.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::arrivals::Arrivals;
use super::background::{Background, caught};
use super::common::Common;
use super::delivering::Deliverer;
use super::evaluations::Asker;
use super::events::{Delivery, Event, EventLog, What};
use super::issuer::{Issuer, Passes};
use super::making::{Made, Making};
use super::open_evaluations::{OpenEvaluation, OpenEvaluations};
use super::options::SenderOptions;
use super::present::Present;
use super::publication::Reading;
use super::queue::Queue;
use super::reported::{Refused, Reported};
use super::waiting::{Measurement, Waiting};
use super::waits::Device;
use crate::budget::{Budget, Limits, Spent, require_opted_in};
use crate::errors::{Error, Kind, Result};
use crate::memory;
use crate::value::{Value, coordinates_of};

/// Makes the reports of one client for one campaign, and delivers them to one collector. Threads may share it.
///
/// With a store in a file, reports are on the disk when `report` returns. So a killed process loses no report, and the
/// next process that uses this file sends the reports of the killed process. Processes may share a file, because no
/// report is sent by two processes at once.
///
/// A forked process must open a sender, and a store, of its own: the parent's sender does nothing in it and returns
/// `Usage`, because both would send what the parent has in memory. Fork while no thread uses a sender, so before
/// `start`: neither `SQLite` nor a lock survives a fork in the middle of a change.
///
/// If the mixes of a campaign add noise, a report is made for the window in which it is due, and counts in no other
/// one. A report that was not sent by the end of this window is dropped, with the reason `other_window`; what it cost
/// stays spent.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use hushcount::{Policy, Sender, SenderOptions, Store};
///
/// let policy = Policy::parse(&std::fs::read("policy.json")?)?;
/// let store = Store::open("hushcount.sqlite")?;
/// let sender = Sender::open(SenderOptions::new("https://collector.example.com", policy, store))?;
/// sender.start();
/// sender.report("dark-mode");
/// # Ok(())
/// # }
/// ```
pub struct Sender {
    pub(super) deliverer: Arc<Deliverer>,
    background: Background,
    refused: Refused,
    keep_values: bool,
    /// The process that opened the sender.
    process: u32,
}

impl Sender {
    /// Return a sender, which begins to deliver by `start` or `deliver`.
    ///
    /// # Errors
    /// `Usage`: an option cannot be used.
    pub fn open(options: SenderOptions) -> Result<Self> {
        options.require_valid()?;
        if options.budget.as_ref().is_some_and(|budget| !budget.is_in(&options.store)) {
            return Err(Error::usage(
                "the budget must be in the sender's store: give Budget::new(store.clone(), limits)",
            ));
        }
        let Some(campaign) = options.policy.campaign_id().map(str::to_owned) else {
            return Err(Error::usage("policy must be a policy that names its campaign: give Policy::parse(bytes)"));
        };
        let keep_values = options.keep_values;
        let deliverer = Arc::new(deliverer_of(options, campaign)?);
        let (background, refused, process) = (Background::default(), Refused::default(), std::process::id());
        Ok(Self { deliverer, background, refused, keep_values, process })
    }

    /// Make and queue the reports of one value, one for each stream of the campaign; return what became of them.
    ///
    /// If a value is too long for discovery, its discovery report is a blank. Once a campaign file is kept, this method
    /// sends no request. The delivering thread fetches the first campaign file when the thread starts. If no thread has
    /// fetched a campaign file, the first report may fetch it, and the time of this request reveals the time of use.
    ///
    /// With any other word than `Queued` no report of the value was queued; `dropped` counts the words, and `log` has a
    /// sentence for each.
    pub fn report<'a>(&self, value: impl Into<Value<'a>>) -> Reported {
        self.report_with(value, &[])
    }

    /// Make and queue the reports of one value as `report`, of a client with a coordinate on each axis of the campaign;
    /// a missing or unlisted one is "other".
    pub fn report_with<'a>(&self, value: impl Into<Value<'a>>, by: &[(&str, Value<'_>)]) -> Reported {
        match self.try_report(value, by) {
            Ok(()) => Reported::Queued,
            Err(error) => {
                self.deliverer.common.log.tell(What::NotQueued, &error.to_string(), 0, None);
                self.refused.count(&error)
            }
        }
    }

    /// Make and queue the reports of one value as `report_with`, for scripts and tests.
    ///
    /// # Errors
    /// What stops a report: `NotAsked`, `OverCap`, `BudgetSpent`, `OptedOut`, `QueueFull`, `NotYet`, `NoValidKey`,
    /// `Untrusted`, `Store`, `Format`.
    pub fn try_report<'a>(&self, value: impl Into<Value<'a>>, by: &[(&str, Value<'_>)]) -> Result<()> {
        let measurement = Measurement { value: value.into().text().into_owned(), by: coordinates_of(by) };
        self.here(|| self.reported(&measurement))
    }

    /// How many values `report` did not queue, by the word that it returned; of this object.
    pub fn dropped(&self) -> BTreeMap<Reported, u64> {
        self.refused.counts()
    }

    /// How many reports and plain values wait on this device; none if the store cannot be read.
    pub fn waiting(&self) -> Option<u64> {
        self.deliverer.common.queue.waiting().ok()
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
    pub fn deliver(&self, early: bool) -> Result<Delivery> {
        self.here(|| self.deliverer.deliver(early))
    }

    /// Start a thread that delivers, unless it runs.
    pub fn start(&self) {
        if let Err(error) = self.here(|| self.background.start(&self.deliverer)) {
            self.deliverer.common.log.tell(What::Again, &error.to_string(), 0, None);
        }
    }

    /// End the thread, and ask for all open evaluations, because open evaluations are lost when the process ends.
    ///
    /// With a store in memory, waiting reports would also be lost when the process ends, so they are sent now, even if
    /// they are not due. A sender that is only dropped ends its thread too, but sends nothing more.
    pub fn stop(&self) {
        let last = self.here(|| {
            self.background.end();
            if self.deliverer.common.store.is_durable() {
                self.deliverer.asker.ask(true).map(drop)
            } else {
                self.deliverer.deliver(true).map(drop)
            }
        });
        if let Err(error) = last {
            self.deliverer.common.log.tell(What::Again, &error.to_string(), 0, None);
        }
    }

    /// Return what the reports cost, with sentences for the person.
    ///
    /// # Errors
    /// `Store`, `Format`: the budget cannot be read.
    pub fn spent(&self) -> Result<Spent> {
        self.deliverer.common.budget.spent_at(self.deliverer.common.clock.now())
    }

    /// Opt out durably: make and send no more reports; delete waiting reports, remembered answers and tokens.
    ///
    /// The opt-out covers all campaigns in the store, because a store belongs to one person. The budget keeps its
    /// record of what was spent. `Budget::opt_in` of a budget in the same store permits reports again.
    ///
    /// # Errors
    /// `Store`, `Format`: the opt-out cannot be stored. Tell the person, and call this method again.
    pub fn forget(&self) -> Result<()> {
        self.here(|| {
            let deliverer = &self.deliverer;
            deliverer.common.budget.opt_out()?;
            deliverer.asker.open.clear();
            memory::clear(&deliverer.common.store)?;
            let number = deliverer.common.queue.clear_all()?;
            deliverer.common.log.tell(What::Forgotten, "", number as usize, None);
            Ok(())
        })
    }

    /// The newest events of this object; no event contains a value.
    pub fn log(&self) -> Vec<Event> {
        self.deliverer.common.log.events()
    }

    /// Do some work, unless this is a fork of the process that opened the sender.
    fn here<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        if self.process != std::process::id() {
            return Err(Error::usage(
                "another process opened this sender before a fork: open a sender of this process",
            ));
        }
        caught(work)
    }

    fn reported(&self, measurement: &Measurement) -> Result<()> {
        let deliverer = &self.deliverer;
        // The opt-out is checked first, because a request for the campaign file would tell the collector that the
        // person uses the app.
        self.deliverer.common.store.change(require_opted_in)?;
        let is_running = self.background.is_running();
        let maker = match deliverer.present.maker()? {
            None if !(is_running && self.keep_values) => deliverer.present.first(is_running)?,
            maker => maker,
        };
        let Some(maker) = maker else {
            self.require_kept_value()?;
            deliverer.common.queue.require_room(1)?;
            let plain = Waiting::plain(None, measurement.clone(), deliverer.common.clock.now());
            return self.put(vec![Made { waiting: plain, evaluation: None }], What::Waits);
        };
        let streams = maker.campaign.streams();
        deliverer.common.queue.require_room(streams.len())?;
        self.put(deliverer.making.made(&maker, &streams, measurement, self.keep_values, false)?, What::Queued)
    }

    fn put(&self, made: Vec<Made>, what: What) -> Result<()> {
        let deliverer = &self.deliverer;
        let (waiting, evaluations): (Vec<_>, Vec<_>) =
            made.into_iter().map(|one| (one.waiting, one.evaluation)).unzip();
        deliverer.common.queue.change(|tables| {
            // Another thread or process may have opted out, and emptied the queue, while these reports were made.
            require_opted_in(tables.records)?;
            tables.insert(&waiting)
        })?;
        let due = |(one, evaluation): (&Waiting, &Option<OpenEvaluation>)| {
            evaluation.as_ref().map_or(one.due, |open| open.due)
        };
        let first = waiting.iter().zip(&evaluations).map(due).min();
        deliverer.asker.open.add(evaluations.into_iter().flatten());
        deliverer.common.log.tell(what, "", waiting.len(), None);
        if let Some(first) = first {
            self.background.wake_before(first);
        }
        Ok(())
    }

    fn require_kept_value(&self) -> Result<()> {
        let failure = self.deliverer.present.failure();
        if let Some(error) = failure.as_ref().filter(|error| error.kind() == Kind::Untrusted) {
            return Err(error.clone());
        }
        if self.keep_values {
            return Ok(());
        }
        let said = failure.map_or_else(|| "no attempt was made".to_owned(), |error| error.to_string());
        let campaign = &self.deliverer.common.queue.campaign;
        Err(Error::new(
            Kind::NotYet,
            format!(
                "campaign {campaign} is not fetched yet ({said}): report again later, or give keep_values: true to let \
                 values wait on this device"
            ),
        ))
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        // A fork has no thread, and perhaps a lock that nobody opens.
        if self.process == std::process::id() {
            self.background.let_end();
        }
    }
}

/// Return the parts of a sender.
fn deliverer_of(options: SenderOptions, campaign: String) -> Result<Deliverer> {
    let millis = |seconds: u64| i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1000);
    let (window, answer_within) = (millis(options.window_seconds), millis(options.answer_within_seconds));
    let site = options.site.checked("site")?;
    let evaluator = options.evaluator.map_or_else(|| Ok(site.clone()), |evaluator| evaluator.checked("evaluator"))?;
    let check = |issuer: Issuer| Ok::<_, Error>(Issuer { site: issuer.site.checked("issuer")?, ..issuer });
    let issuer = options.issuer.map(check).transpose()?;
    let (store, clock) = (options.store, Device(options.clock));
    let lease = 60_000 + 10 * site.millis().max(evaluator.millis());
    let queue = Arc::new(Queue::new(store.clone(), campaign, options.most_queued, lease));
    let reading = Reading { policy: options.policy, designs: options.designs, has_issuer: issuer.is_some(), window };
    let common = Arc::new(Common {
        http: options.http,
        site,
        budget: options.budget.map_or_else(|| Budget::new(store.clone(), Limits::default()), Ok)?,
        store,
        arrivals: Arrivals::new(queue.clone(), clock.clone(), window),
        queue,
        delay: millis(options.delay_seconds),
        log: EventLog::new(clock.clone()),
        clock,
    });
    Ok(Deliverer {
        present: Present { common: common.clone(), reading, state: Mutex::default(), asking: Mutex::default() },
        making: Making { common: common.clone(), window, answer_within },
        asker: Asker { common: common.clone(), site: evaluator, open: OpenEvaluations::default() },
        passes: Passes { common: common.clone(), issuer },
        common,
    })
}
