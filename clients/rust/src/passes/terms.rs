//! The section of a campaign file on passes.

use serde_json::Value;

use crate::campaigns::campaign::NAME;
use crate::errors::Result;
use crate::formats::bytes::unhex_exact;
use crate::formats::fields::{Fields, Form};
use crate::formats::times::parse_time;

const DAY_SECONDS: u64 = 86_400;
const MOST_DAYS: usize = 100;
const DAY: Form =
    Form::new("YYYY-MM-DD", |text| text.len() == 10 && parse_time(&format!("{text}T00:00:00Z")).is_some());

/// Passes: how many seconds each is good, and from the day `first` on a hash of the issuer's keys of each day.
#[derive(Clone, Debug)]
pub(crate) struct PassTerms {
    pub(crate) seconds: u64,
    /// As in 2026-12-01.
    pub(crate) first: String,
    pub(crate) days: Vec<[u8; 32]>,
}

impl PassTerms {
    /// Read the section of a campaign file; with an evaluator a client needs passes for it too, and at most 24 a day.
    ///
    /// # Errors
    /// `Format`: the period does not divide a day or is too short, the first day does not exist, or a hash is no hash.
    pub(crate) fn parse(data: &Value, has_evaluator: bool) -> Result<Self> {
        let name = format!("{NAME}: passes");
        let fields = Fields::of(data, &name, &["seconds", "first", "days"], &[])?;
        let least = if has_evaluator { 7200 } else { 3600 };
        let seconds = fields.whole("seconds", least, DAY_SECONDS)?;
        if !DAY_SECONDS.is_multiple_of(seconds) {
            return Err(fields.wrong("seconds", "a divisor of 86400"));
        }
        let first = fields.text("first", &DAY)?.to_owned();
        let days =
            fields.list("days", MOST_DAYS)?.iter().map(|day| unhex_exact(day.as_str()?)).collect::<Option<Vec<_>>>();
        let days = days.filter(|days| !days.is_empty());
        let days = days.ok_or_else(|| fields.wrong("days", "1 to 100 texts of the form [0-9a-f]{64}"))?;
        Ok(Self { seconds, first, days })
    }
}
