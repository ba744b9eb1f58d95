//! What a sender did, as typed events that an app may show; no event contains a value.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use super::waits::Device;
use crate::campaigns::campaign::Stream;

const MOST_EVENTS: usize = 1000;

/// What a step of a sender was about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

impl What {
    /// The word, as in `not_queued`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Fetched => "fetched",
            Self::Unchanged => "unchanged",
            Self::NotFetched => "not_fetched",
            Self::Refused => "refused",
            Self::Waits => "waits",
            Self::Queued => "queued",
            Self::NotQueued => "not_queued",
            Self::Sent => "sent",
            Self::Again => "again",
            Self::Remade => "remade",
            Self::Dropped => "dropped",
            Self::Answered => "answered",
            Self::NotAnswered => "not_answered",
            Self::Blank => "blank",
            Self::Forgotten => "forgotten",
            Self::NoPass => "no_pass",
        }
    }
}

/// One step of a sender.
#[derive(Clone, Debug, PartialEq, Eq)]
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

/// The newest events of a sender, a thousand at most; threads may share it.
pub(crate) struct EventLog {
    clock: Device,
    events: Mutex<VecDeque<Event>>,
}

impl EventLog {
    /// Return a log without events.
    pub(crate) fn new(clock: Device) -> Self {
        Self { clock, events: Mutex::default() }
    }

    /// Store a step about a number of reports.
    pub(crate) fn tell(&self, what: What, reason: &str, reports: usize, stream: Option<Stream>) {
        let event = Event { at: self.clock.now(), what, reports: reports as u64, stream, reason: reason.to_owned() };
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        if events.len() >= MOST_EVENTS {
            events.pop_front();
        }
        events.push_back(event);
    }

    /// Return the events, the oldest first.
    pub(crate) fn events(&self) -> Vec<Event> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

/// What one call of `deliver` did.
///
/// If only one process delivers, each report that waited before or was made meanwhile is now sent, dropped or waiting:
/// `before + reported + added = sent + dropped + waiting`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delivery {
    /// Reports that the collector has on its disk.
    pub sent: u64,
    /// Reports that were made from waiting plain values.
    pub remade: u64,
    /// By how many the reports that were made exceed their plain values: one value may become a report of each stream.
    pub added: u64,
    /// Reports that were given up, by reason.
    pub dropped: BTreeMap<String, u64>,
    /// Reports and plain values that wait after the call.
    pub waiting: u64,
    /// After failures nothing is sent before this moment, in milliseconds since 1970; none: reports may be sent now.
    pub held_until: Option<i64>,
    /// Discovery reports without their values, because their evaluations did not come, by reason. They are also counted
    /// in `sent` or `waiting`.
    pub blank: BTreeMap<String, u64>,
    /// Whether reports wait because the client has no pass for the present window; `log` says why.
    pub no_pass: bool,
}
