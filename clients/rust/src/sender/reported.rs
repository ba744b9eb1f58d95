//! What became of a value that an app reported: one word of a closed list, the same in clients of all languages.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use crate::errors::{Error, Kind};

/// What `Sender::report` returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reported {
    /// The reports wait on this device, and a delivery sends them.
    Queued,
    /// The campaign asks a part of its clients, and not this one.
    NotAsked,
    /// This person has made as many reports as count in this window.
    OverCap,
    /// The person's budget is spent, and its `when_spent` is `Nothing`.
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

impl Reported {
    /// The word, as in `queued`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::NotAsked => "not_asked",
            Self::OverCap => "over_cap",
            Self::BudgetSpent => "budget_spent",
            Self::OptedOut => "opted_out",
            Self::QueueFull => "queue_full",
            Self::NotYet => "not_yet",
            Self::Untrusted => "untrusted",
            Self::Storage => "storage",
        }
    }

    /// Return the word for the error that stopped a report. A sender gives a report all that it needs, so all other
    /// errors are of its store.
    fn of(error: &Error) -> Self {
        match error.kind() {
            Kind::NotAsked => Self::NotAsked,
            Kind::OverCap => Self::OverCap,
            Kind::BudgetSpent => Self::BudgetSpent,
            Kind::OptedOut => Self::OptedOut,
            Kind::QueueFull => Self::QueueFull,
            Kind::NotYet | Kind::NoValidKey => Self::NotYet,
            Kind::Untrusted => Self::Untrusted,
            _ => Self::Storage,
        }
    }
}

impl fmt::Display for Reported {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.word())
    }
}

/// Counts the values that were not queued, by word; threads may share it.
#[derive(Default)]
pub(crate) struct Refused(Mutex<BTreeMap<Reported, u64>>);

impl Refused {
    /// Count one value, and return the word for the error that stopped its report.
    pub(crate) fn count(&self, error: &Error) -> Reported {
        let word = Reported::of(error);
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry(word).or_default() += 1;
        word
    }

    /// Return the counts.
    pub(crate) fn counts(&self) -> BTreeMap<Reported, u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
