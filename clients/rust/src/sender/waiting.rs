//! The rows of a queue: a sealed report or a plain value, its claim, and its settlement after an answer.

use crate::campaigns::campaign::Stream;
use crate::errors::Result;
use crate::formats::bytes::hex;
use crate::randomness::fresh;
use crate::values::strata::Coordinates;

/// Names of claims for an evaluation begin with this text; such claims last longer than claims for sending.
pub(crate) const EVALUATION: &str = "evaluation-";

/// What an app reports: a value as text, and the client's coordinates by axis, those that a campaign may list.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Measurement {
    pub(crate) value: String,
    pub(crate) by: Coordinates,
}

/// A report that waits to be sent, with the plain measurement if the app keeps plain values.
///
/// A plain value without a report waits for a campaign file; its fingerprint is empty, and its stream is that of the
/// report to make, or none for all streams of the campaign.
#[derive(Clone)]
pub(crate) struct Waiting {
    /// The fingerprint of the campaign file, in hexadecimal.
    pub(crate) fingerprint: String,
    pub(crate) stream: Option<Stream>,
    pub(crate) body: Vec<u8>,
    pub(crate) measurement: Option<Measurement>,
    /// When the report may be sent.
    pub(crate) due: i64,
    /// Claim of the process that asks for the report's name (`new_evaluation`); empty if no evaluation is asked for.
    /// Until `claimed_until` no other process sends the report.
    pub(crate) claim: String,
    pub(crate) claimed_until: i64,
    /// The collector's name in the campaign file.
    pub(crate) collector: String,
    /// Most reports of the stream that the campaign file lets a client send in a window.
    pub(crate) cap: u64,
    /// Seconds in which a pass of the campaign is good; 0: the campaign asks for no passes.
    pub(crate) period: u64,
    /// When the window begins that the report itself names: with noise of the mixes it counts in no other one. None: it
    /// counts in the window in which it arrives.
    pub(crate) window: Option<i64>,
}

impl Waiting {
    /// Return a plain value that waits for a campaign file.
    pub(crate) fn plain(stream: Option<Stream>, measurement: Measurement, due: i64) -> Self {
        Self {
            fingerprint: String::new(),
            stream,
            body: Vec::new(),
            measurement: Some(measurement),
            due,
            claim: String::new(),
            claimed_until: 0,
            collector: String::new(),
            cap: 0,
            period: 0,
            window: None,
        }
    }

    /// Whether this is a plain value without a report.
    pub(crate) fn is_plain(&self) -> bool {
        self.fingerprint.is_empty()
    }
}

/// The window in which a claim sends: when the collector's present window began, and the least length of a window.
#[derive(Clone, Copy)]
pub(crate) struct Turn {
    pub(crate) window: i64,
    pub(crate) least: i64,
}

/// A claimed row.
pub(crate) struct Held {
    pub(crate) id: i64,
    pub(crate) waiting: Waiting,
    /// Whether the report has its place since this claim: no earlier attempt may have arrived.
    pub(crate) is_new: bool,
}

/// Reports of one campaign file, stream and token, or plain values; no other process sends them until the claim ends.
pub(crate) struct Claimed {
    pub(crate) claim: String,
    /// The first report that was due, also if it was removed.
    pub(crate) of: Waiting,
    pub(crate) rows: Vec<Held>,
    /// When the window of the reports' first attempt began; their token is of it.
    pub(crate) window: i64,
    /// How many reports were removed, because there is no room for them, or because they name a window that is over.
    /// There may be no others.
    pub(crate) over: usize,
    /// Whether they name a window that is over.
    pub(crate) is_late: bool,
    /// First moment, and the moment from which on no sending may begin: the first half of the claim's time. The second
    /// half is for the exchange with the collector.
    pub(crate) usable: (i64, i64),
}

impl Claimed {
    /// The bytes of all claimed reports, one report after the other.
    pub(crate) fn body(&self) -> Vec<u8> {
        self.rows.iter().flat_map(|row| row.waiting.body.iter().copied()).collect()
    }
}

/// A report that no longer waits for an answer and is due at `due`; `body`, if given, replaces its bytes.
pub(crate) struct Settled {
    pub(crate) claim: String,
    pub(crate) due: i64,
    pub(crate) body: Option<Vec<u8>>,
}

/// Return a new name for a claim that waits for an evaluation; no other claim has this name.
///
/// # Errors
/// `Store`: the operating system has no randomness.
pub(crate) fn new_evaluation() -> Result<String> {
    Ok(format!("{EVALUATION}{}", new_claim()?))
}

/// Return a new name for a claim that sends.
///
/// # Errors
/// As `new_evaluation`.
pub(crate) fn new_claim() -> Result<String> {
    Ok(hex(&fresh::<16>()?))
}
