//! The clock, which tests replace.

use std::time::{SystemTime, UNIX_EPOCH};

/// A clock of the device, which may be wrong.
pub trait Clock: Send + Sync {
    /// Return milliseconds since 1970.
    fn now(&self) -> i64;
}

/// The clock of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> i64 {
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
            Err(before) => i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |millis| -millis),
        }
    }
}
