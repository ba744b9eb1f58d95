//! What a sender tells an app.

use std::collections::HashMap;

use hushcount::{Event, Reported, Stream, What};

/// What became of a value that an app reported.
#[uniffi::remote(Enum)]
pub enum Reported {
    /// The reports wait on this device, and a delivery sends them.
    Queued,
    /// The campaign asks a part of its clients, and not this one.
    NotAsked,
    /// This person has made as many reports as count in this window.
    OverCap,
    /// The person's budget is spent, and `when_spent` of its limits is `Nothing`.
    BudgetSpent,
    /// The person opted out.
    OptedOut,
    /// As many reports wait as may wait.
    QueueFull,
    /// No campaign file can be used yet: none was fetched, or its keys are not valid now.
    NotYet,
    /// The policy refuses the collector's campaign file.
    Untrusted,
    /// The store cannot be read or written.
    Storage,
}

/// The two streams of a campaign.
#[uniffi::remote(Enum)]
pub enum Stream {
    /// Frequency reports.
    Reports,
    /// Discovery reports.
    Discovery,
}

/// What a step of a sender was about.
#[uniffi::remote(Enum)]
pub enum What {
    /// A new campaign file was fetched and accepted.
    Fetched,
    /// The campaign file was fetched, and is the one that the client has.
    Unchanged,
    /// The campaign file could not be fetched.
    NotFetched,
    /// The policy refuses the campaign file.
    Refused,
    /// A plain value waits until there is a campaign file.
    Waits,
    /// Reports wait to be sent.
    Queued,
    /// The reports of a value were not made, so none was queued.
    NotQueued,
    /// The collector has the reports.
    Sent,
    /// The reports will be tried again later.
    Again,
    /// Reports were made from plain values under the present campaign file.
    Remade,
    /// Reports were given up.
    Dropped,
    /// The evaluations of discovery reports came.
    Answered,
    /// Evaluations will be asked for again later.
    NotAnswered,
    /// No evaluation came, so the reports are sent without their values; the reason is `equivocation` if an answer was
    /// not made with the campaign's evaluator key.
    Blank,
    /// Waiting reports were deleted because the person opted out.
    Forgotten,
    /// The issuer gave no passes, so reports that need one wait.
    NoPass,
}

/// One step of a sender. It contains no value.
#[uniffi::remote(Record)]
pub struct Event {
    /// The time of the step by this device's clock, in milliseconds since 1970.
    pub at: i64,
    /// What the step was about.
    pub what: What,
    /// How many reports the step is about.
    pub reports: u64,
    /// The stream of the reports, if all reports have the same stream.
    pub stream: Option<Stream>,
    /// Why the step was taken: the collector's name of a problem, or a sentence of this library; never a value.
    pub reason: String,
}

/// What one call of `deliver` did.
///
/// If only one process delivers, each report that waited before or was made meanwhile is now sent, dropped or waiting:
/// `before + reported + added = sent + dropped + waiting`.
#[derive(uniffi::Record)]
pub struct Delivery {
    /// Reports that the collector has on its disk.
    pub sent: u64,
    /// Reports that were made from waiting plain values.
    pub remade: u64,
    /// By how many the reports that were made exceed their plain values: one value may become a report of each stream.
    pub added: u64,
    /// Reports that were given up, by reason.
    pub dropped: HashMap<String, u64>,
    /// Reports and plain values that wait after the call.
    pub waiting: u64,
    /// After failures nothing is sent before this moment, in milliseconds since 1970; none: reports may be sent now.
    pub held_until: Option<i64>,
    /// Discovery reports without their values, because their evaluations did not come, by reason. They are also counted
    /// in `sent` or `waiting`.
    pub blank: HashMap<String, u64>,
    /// Whether reports wait because the client has no pass for the present window; `log` says why.
    pub no_pass: bool,
}

impl From<hushcount::Delivery> for Delivery {
    fn from(done: hushcount::Delivery) -> Self {
        let hushcount::Delivery { sent, remade, added, dropped, waiting, held_until, blank, no_pass } = done;
        let (dropped, blank) = (dropped.into_iter().collect(), blank.into_iter().collect());
        Self { sent, remade, added, dropped, waiting, held_until, blank, no_pass }
    }
}
