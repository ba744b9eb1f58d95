//! The error of all calls.

use std::fmt;

use hushcount::{Error, Kind};

/// Why a call failed. The type says what kind of error it is; the message is one sentence that can be shown to people.
#[derive(Debug, uniffi::Error)]
#[uniffi(flat_error)]
pub enum HushcountError {
    /// An argument cannot be used.
    Usage(String),
    /// A file of another party is malformed, or of another version.
    Format(String),
    /// No key of the campaign file is valid now.
    NoValidKey(String),
    /// The bytes differ from the signed bytes, or no trusted key signed these bytes.
    Signature(String),
    /// The policy does not allow the campaign: no report may be made for it.
    Untrusted(String),
    /// The device's store or its random generator failed, and nothing was written.
    Store(String),
    /// The collector cannot be reached, or its answer cannot be used; a later try may succeed.
    Delivery(String),
    /// The campaign's sample does not contain this installation, so it makes no report.
    NotAsked(String),
    /// The budget is too small for a report, and the app chose that no report is made in this case.
    BudgetSpent(String),
    /// The person opted out, so no more reports are made.
    OptedOut(String),
    /// The client has made as many reports of a stream in this window as the campaign's cap allows.
    OverCap(String),
    /// The client has no campaign file yet. This is not a fault; report the value again later.
    NotYet(String),
    /// The queue is full, so no report was made, and no budget was spent.
    QueueFull(String),
    /// The evaluator gave no usable answer, so a blank is sent instead of the value's report.
    Unanswered(String),
}

impl From<Error> for HushcountError {
    fn from(error: Error) -> Self {
        let kind = match error.kind() {
            Kind::Format => Self::Format,
            Kind::NoValidKey => Self::NoValidKey,
            Kind::Signature => Self::Signature,
            Kind::Untrusted => Self::Untrusted,
            Kind::Store => Self::Store,
            Kind::Delivery => Self::Delivery,
            Kind::NotAsked => Self::NotAsked,
            Kind::BudgetSpent => Self::BudgetSpent,
            Kind::OptedOut => Self::OptedOut,
            Kind::OverCap => Self::OverCap,
            Kind::NotYet => Self::NotYet,
            Kind::QueueFull => Self::QueueFull,
            Kind::Unanswered => Self::Unanswered,
            // `Usage`, and a kind that the crate may get later.
            _ => Self::Usage,
        };
        kind(error.to_string())
    }
}

impl fmt::Display for HushcountError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Usage(message)
        | Self::Format(message)
        | Self::NoValidKey(message)
        | Self::Signature(message)
        | Self::Untrusted(message)
        | Self::Store(message)
        | Self::Delivery(message)
        | Self::NotAsked(message)
        | Self::BudgetSpent(message)
        | Self::OptedOut(message)
        | Self::OverCap(message)
        | Self::NotYet(message)
        | Self::QueueFull(message)
        | Self::Unanswered(message)) = self;
        to.write_str(message)
    }
}
