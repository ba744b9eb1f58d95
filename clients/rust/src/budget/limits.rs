//! The limits of a budget, which the app sets.

use super::units::MOST_EPSILON;
use crate::errors::{Error, Result};

/// What a client does once its budget is spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenSpent {
    /// Reports that reveal nothing are made.
    #[default]
    Other,
    /// Making a report fails with `BudgetSpent`; missing reports then reveal that the budget is spent.
    Nothing,
}

/// The limits of a budget; by default there are none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// The largest epsilon that may be charged on a UTC day, rounded down to billionths; infinity without a limit.
    pub per_day: f64,
    /// Most epsilon ever, rounded down to billionths; infinity without a limit.
    pub lifetime: f64,
    /// What happens once the budget is spent.
    pub when_spent: WhenSpent,
}

impl Default for Limits {
    fn default() -> Self {
        Self { per_day: f64::INFINITY, lifetime: f64::INFINITY, when_spent: WhenSpent::Other }
    }
}

impl Limits {
    /// Require that each limit is an epsilon.
    ///
    /// # Errors
    /// `Usage`: a limit is out of range.
    pub(crate) fn require_valid(&self) -> Result<()> {
        for (name, limit) in [("per_day", self.per_day), ("lifetime", self.lifetime)] {
            if !((0.0..=MOST_EPSILON).contains(&limit) || limit == f64::INFINITY) {
                let message = format!("{name} is {limit}, must be an epsilon in 0..1,000,000, or infinity");
                return Err(Error::usage(message));
            }
        }
        Ok(())
    }
}
