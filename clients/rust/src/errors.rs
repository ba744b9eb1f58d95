//! The one error of this crate: what kind it is, and one sentence that can be shown to people.

use std::fmt;

/// What kind of error stopped a call; the names are those of the clients in other languages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// An argument cannot be used.
    Usage,
    /// A file of another party is malformed, or of another version.
    Format,
    /// No key of the campaign file is valid now.
    NoValidKey,
    /// The bytes differ from the signed bytes, or no trusted key signed these bytes.
    Signature,
    /// The policy does not allow the campaign: no report may be made for it.
    Untrusted,
    /// The device's store or its random generator failed, and nothing was written.
    Store,
    /// The collector cannot be reached, or its answer cannot be used; a later try may succeed.
    Delivery,
    /// The campaign's sample does not contain this installation, so it makes no report.
    NotAsked,
    /// The budget is too small for a report, and the app chose that no report is made in this case.
    BudgetSpent,
    /// The person opted out, so no more reports are made.
    OptedOut,
    /// The client has made as many reports of a stream in this window as the campaign's cap allows.
    OverCap,
    /// The client has no campaign file yet. This is not a fault; report the value again later.
    NotYet,
    /// The queue is full, so no report was made, and no budget was spent.
    QueueFull,
    /// The evaluator gave no usable answer, so a blank is sent instead of the value's report.
    Unanswered,
}

/// Why a call failed, in one sentence that names the value, what is allowed, and the cure. It never has a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Error {
    kind: Kind,
    message: String,
}

/// The result of a call that may fail with an [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Kind::Usage, message)
    }

    pub(crate) fn format(message: impl Into<String>) -> Self {
        Self::new(Kind::Format, message)
    }

    pub(crate) fn untrusted(message: impl Into<String>) -> Self {
        Self::new(Kind::Untrusted, message)
    }

    pub(crate) fn store(message: impl Into<String>) -> Self {
        Self::new(Kind::Store, message)
    }

    /// What kind of error this is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{:?}: {}", self.kind, self.message)
    }
}

impl std::error::Error for Error {}
