//! Limits the reports that a client makes: of each stream, in each window, at most the campaign's cap.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::last_changed::{Counts, MOST_KEPT, change_count, count_of};
use super::ledger::Request;
use crate::errors::{Error, Kind, Result};
use crate::formats::fields::whole_of;
use crate::formats::times::time_text;
use crate::store::Records;

/// The name of the record of all counts.
const RECORD: &str = "allowance";

/// Numbers of reports made, by "campaign/stream", and by start of the window in milliseconds since 1970.
type Made = BTreeMap<String, Counts<i64, u64>>;

/// Count reports that are about to be made, in a step of the store.
///
/// Each window has its cap, in whatever order the clock shows the windows. So no reports are blocked after a clock
/// that was ahead is set right. A person who sets the clock to a window that is not among the last 16 gets a new cap,
/// as with any new window.
///
/// `window` is the length of the windows of a campaign that lists none, in milliseconds.
///
/// # Errors
/// `OverCap`: the reports exceed the cap, so none of them may be made. `Format`: the record is damaged.
pub(crate) fn count(records: &Records<'_>, window: i64, requests: &[Request<'_>], now: i64) -> Result<()> {
    let mut made = made_of(records.get(RECORD)?.as_ref())?;
    for request in requests {
        let Request { campaign, stream, number, due, .. } = *request;
        // Counts are by campaign, not by campaign file, because an operator may publish many epochs in one window.
        let counts = made.entry(format!("{}/{}", campaign.id, stream.name())).or_default();
        let starts = campaign.starts(window);
        let began = starts.at(due.unwrap_or(now));
        // Another epoch may list windows that begin a little earlier or later. They are no new windows.
        let near = counts.iter().filter(|(start, _)| start.saturating_sub(began).saturating_abs() < starts.least());
        let earlier = near.fold(0u64, |sum, (_, count)| sum.saturating_add(*count));
        let cap = campaign.shuffle.cap;
        if earlier.saturating_add(number) > cap {
            let message = format!(
                "{number} more {} of campaign {} cannot be made: {earlier} were made in the window that began at {}, \
                 and the cap is {cap}; wait for the next window",
                stream.name(),
                campaign.id,
                time_text(began)
            );
            return Err(Error::new(Kind::OverCap, message));
        }
        let present = count_of(counts, &began).unwrap_or(0).saturating_add(number);
        change_count(counts, began, present);
    }
    records.put(RECORD, &json!(made))
}

fn made_of(record: Option<&Value>) -> Result<Made> {
    let damaged = || {
        Error::format(
            "the allowance's record is damaged or of another version: restore it; if you remove it, this client counts \
             its reports from 0 again",
        )
    };
    let Some(record) = record else { return Ok(Made::new()) };
    let made = record.as_object().ok_or_else(damaged)?.iter();
    made.map(|(name, counts)| Some((name.clone(), counts_of(counts)?))).collect::<Option<_>>().ok_or_else(damaged)
}

fn counts_of(data: &Value) -> Option<Counts<i64, u64>> {
    let counts = data.as_array().filter(|counts| counts.len() <= MOST_KEPT)?;
    let count = |pair: &Value| match pair.as_array()?.as_slice() {
        [start, count] => Some((i64::try_from(whole_of(start)?).ok()?, whole_of(count)?)),
        _ => None,
    };
    counts.iter().map(count).collect()
}
