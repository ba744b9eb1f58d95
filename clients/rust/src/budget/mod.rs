//! What reports may cost a person, and how many a window may have.

mod allowance;
pub(crate) mod costs;
mod figures;
pub(crate) mod last_changed;
pub(crate) mod ledger;
mod limits;
mod record;
mod spent;
pub(crate) mod units;
mod words;

#[cfg(test)]
#[path = "../../tests/budget/mod.rs"]
mod tests;

use std::sync::Arc;

pub(crate) use ledger::Request;
pub use ledger::SpentOn;
pub use limits::{Limits, WhenSpent};
pub use spent::{Spent, StreamSpent};

use crate::clock::{Clock, SystemClock};
use crate::errors::Result;
use crate::store::{Records, Store};
use ledger::Charged;

/// Limits the total cost of one person's reports, over all campaigns, epochs and both streams; threads may share it,
/// and all processes that open the same store.
///
/// Once the budget is spent, frequency reports are of "other" and discovery reports are blanks, whatever the values
/// are, because sending no report would reveal that the budget is spent. Charges, and the moment when the budget is
/// spent, never depend on values. Days are UTC, and each day has its own limit, in whatever order the clock shows the
/// days. A person who sets the clock to a day that is not among the last 16 gets a new daily limit; the lifetime limit
/// bounds these charges too.
///
/// Privacy: all reports under one budget are together (epsilon, delta)-private, replace-one, with `Spent::epsilon` and
/// `Spent::delta`. This holds for frequency reports whoever colludes, or with noise of the mixes as long as shuffler
/// or auxiliary server keeps to its role, and for discovery reports as long as the auxiliary server and the analyzer
/// do not collude. Who removes the store begins a new budget, and who restores an older copy of it forgets later
/// charges.
#[derive(Clone)]
pub struct Budget {
    store: Store,
    limits: Limits,
    clock: Arc<dyn Clock>,
}

impl Budget {
    /// Keep the charges in a store; days are those of the system's clock.
    ///
    /// # Errors
    /// `Usage`: a limit is no epsilon in 0..1,000,000, nor infinity.
    pub fn new(store: Store, limits: Limits) -> Result<Self> {
        limits.require_valid()?;
        Ok(Self { store, limits, clock: Arc::new(SystemClock) })
    }

    /// Whether the charges are in this store.
    pub(crate) fn is_in(&self, store: &Store) -> bool {
        self.store.is(store)
    }

    /// Read the day on another clock.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// Return the spent and the remaining budget.
    ///
    /// # Errors
    /// `Format`: the record is damaged. `Store`: it cannot be read.
    pub fn spent(&self) -> Result<Spent> {
        self.spent_at(self.clock.now())
    }

    /// Return the spent and the remaining budget at a time in milliseconds since 1970; errors as `spent`.
    pub(crate) fn spent_at(&self, now: i64) -> Result<Spent> {
        Ok(Spent::of(&self.store.change(Charged::read)?, &self.limits, now))
    }

    /// Return whether the person opted out. Check this before you send reports that were made earlier.
    ///
    /// # Errors
    /// As `spent`.
    pub fn opted_out(&self) -> Result<bool> {
        Ok(self.store.change(Charged::read)?.opted_out)
    }

    /// Make no more reports, in all processes that use the store: making one fails with `OptedOut` from now on. The
    /// spent budget is not given back.
    ///
    /// # Errors
    /// As `spent`; tell the person, and call this again.
    pub fn opt_out(&self) -> Result<()> {
        self.opt(true)
    }

    /// Make reports again. The spent budget is not given back, and reports that were deleted at the opt-out still count
    /// for the cap of their window.
    ///
    /// # Errors
    /// As `spent`; tell the person, and call this again.
    pub fn opt_in(&self) -> Result<()> {
        self.opt(false)
    }

    fn opt(&self, out: bool) -> Result<()> {
        self.store.change(|records| Charged { opted_out: out, ..Charged::read(records)? }.write(records))
    }

    /// Charge reports that are about to be made, for good, in one step; return for each request how many of its
    /// reports may depend on values: the first ones. All other reports of the request must not, and are counted as
    /// blank.
    ///
    /// `window` is the length of the operator's windows in milliseconds, for the cap; none: the cap is not counted.
    /// `now` is in milliseconds since 1970.
    ///
    /// # Errors
    /// `OverCap`, `OptedOut`; `BudgetSpent`: not all reports fit, and the app then wants none; `Usage`: a campaign has
    /// no such reports; `Format`: a record is damaged. Then nothing is charged. `Store`: the caller must make no
    /// report.
    pub(crate) fn charge(&self, requests: &[Request<'_>], window: Option<i64>, now: i64) -> Result<Vec<u64>> {
        self.store.change(|records| {
            let mut charged = Charged::read(records)?;
            let telling =
                requests.iter().map(|request| charged.charge(&self.limits, request, now)).collect::<Result<_>>()?;
            if let Some(window) = window {
                allowance::count(records, window, requests, now)?;
            }
            charged.write(records)?;
            Ok(telling)
        })
    }
}

/// Require, in a step that keeps something for later, that the person did not opt out meanwhile.
///
/// # Errors
/// `OptedOut`; `Format`: the budget's record is damaged.
pub(crate) fn require_opted_in(records: &Records<'_>) -> Result<()> {
    Charged::read(records)?.require_opted_in()
}
