//! How long to wait: a random delay that hides when a value was used, and a pause that grows after each failure.
//!
//! All times of a sender are in milliseconds since 1970, and all spans in milliseconds.

use std::sync::Arc;

use crate::clock::Clock;
use crate::errors::Result;
use crate::randomness::{Fresh, uniform};

pub(crate) use super::verdict::LONGEST_WAIT;
const FIRST_PAUSE: i64 = 5_000;
const LONGEST_PAUSE: i64 = 3_600_000;
/// Every time that a clock may show, so that no sum of times overflows.
const FARTHEST: i64 = 1 << 52;

/// The device's clock, within bounds that keep all arithmetic exact.
#[derive(Clone)]
pub(crate) struct Device(pub(crate) Arc<dyn Clock>);

impl Device {
    /// Return the time, which may be wrong by any amount.
    pub(crate) fn now(&self) -> i64 {
        self.0.now().clamp(-FARTHEST, FARTHEST)
    }
}

/// Draw a time from 0 to `most`, uniformly.
///
/// # Errors
/// `Store`: the operating system has no randomness.
pub(crate) fn random_time(most: i64) -> Result<i64> {
    let bound = u64::try_from(most).unwrap_or_default() + 1;
    // A draw is at most `most`.
    Ok(uniform(bound, &mut Fresh::new()?).cast_signed())
}

/// Return whether a stored moment is still to come; a valid moment is at most `longest` ahead.
///
/// A moment that is further ahead was stored before the clock was set back, and counts as past. So no stored moment
/// delays anything for longer than `longest`.
pub(crate) fn is_ahead(moment: i64, now: i64, longest: i64) -> bool {
    now < moment && moment <= now.saturating_add(longest)
}

/// Return the time until the next attempt, after `failures` (at least 1) failures in a row.
///
/// The pause doubles with each failure, to an hour at most. Half of the pause is drawn at random, so that clients that
/// failed together do not return together. The time that the other side asked for by Retry-After, `asked`, is added.
/// The whole pause is a day at most.
///
/// # Errors
/// `Store`: the operating system has no randomness.
pub(crate) fn pause(failures: u32, asked: i64) -> Result<i64> {
    let doublings = failures.saturating_sub(1).min(20);
    let whole = (FIRST_PAUSE << doublings).min(LONGEST_PAUSE);
    Ok(asked.clamp(0, LONGEST_WAIT - whole) + whole / 2 + random_time(whole / 2)?)
}
