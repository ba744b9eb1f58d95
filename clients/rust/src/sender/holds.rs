//! Pauses after failures, one a party. A pause is stored in the queue, so that all processes wait.

use super::queue::Queue;
use super::waits::{LONGEST_WAIT, is_ahead, pause};
use crate::errors::Result;

/// Who is asked for something.
#[derive(Clone, Copy)]
pub(crate) enum Party {
    Collector,
    Evaluator,
    Issuer,
}

impl Party {
    /// The name of the fact: how many attempts failed in a row, and until when nothing is sent.
    fn fact(self) -> &'static str {
        match self {
            Self::Collector => "hold",
            Self::Evaluator => "hold_evaluator",
            Self::Issuer => "hold_issuer",
        }
    }
}

impl Queue {
    /// Return until when nothing is sent to a party; none if nothing forbids sending.
    pub(crate) fn held_until(&self, now: i64, whom: Party) -> Result<Option<i64>> {
        let (_, until) = read(self.fact(whom.fact())?.as_deref());
        Ok(Some(until).filter(|until| is_ahead(*until, now, LONGEST_WAIT)))
    }

    /// Store one more failure, and return until when nothing is sent; `asked` is the time that Retry-After demands.
    pub(crate) fn hold(&self, now: i64, asked: i64, whom: Party) -> Result<i64> {
        self.change(|tables| {
            let failures = read(tables.fact(whom.fact())?.as_deref()).0.saturating_add(1);
            let until = now + pause(failures, asked)?;
            tables.note(whom.fact(), &format!("{failures} {until}"))?;
            Ok(until)
        })
    }

    /// Store that a party answered, which ends the pause.
    pub(crate) fn release(&self, whom: Party) -> Result<()> {
        self.change(|tables| match read(tables.fact(whom.fact())?.as_deref()) {
            (0, _) => Ok(()),
            _ => tables.note(whom.fact(), "0 0"),
        })
    }
}

/// Read the fact; one that is missing or damaged counts as no failure.
fn read(fact: Option<&str>) -> (u32, i64) {
    let parts = fact.and_then(|fact| fact.split_once(' '));
    let numbers = parts.and_then(|(failures, until)| Some((failures.parse().ok()?, until.parse().ok()?)));
    numbers.unwrap_or_default()
}
