//! What sender and client need alike: the app's policy, its store, and the person's budget.

use std::ffi::c_char;

use hushcount::{Budget, Design, Limits, Policy, Store, WhenSpent};

use crate::errors::hushcount_error;
use crate::texts::{hushcount_bytes, option};

/// Where a person's budget is kept, and how large it is.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct hushcount_budget {
    /// The file of the store: for one person, in a folder that only its user can change. NULL: in memory, so budget,
    /// answers and reports end with the process.
    pub store: *const c_char,
    /// The largest epsilon that may be charged on a UTC day; INFINITY without a limit.
    pub per_day: f64,
    /// Most epsilon ever; INFINITY without a limit.
    pub lifetime: f64,
    /// Make no report once the budget is spent, which reveals that it is spent; otherwise reports tell nothing then.
    pub silent_when_spent: bool,
}

impl hushcount_budget {
    /// Return the default: no limits.
    pub(crate) fn unlimited(store: *const c_char) -> Self {
        Self { store, per_day: f64::INFINITY, lifetime: f64::INFINITY, silent_when_spent: false }
    }

    /// Open the store, and the budget in it.
    pub(crate) unsafe fn opened(self) -> Result<(Store, Budget), hushcount_error> {
        let store = match unsafe { option("store", self.store) }? {
            Some(path) => Store::open(path)?,
            None => Store::in_memory()?,
        };
        let when_spent = if self.silent_when_spent { WhenSpent::Nothing } else { WhenSpent::Other };
        let limits = Limits { per_day: self.per_day, lifetime: self.lifetime, when_spent };
        let budget = Budget::new(store.clone(), limits)?;
        Ok((store, budget))
    }
}

/// Read the app's policy.
pub(crate) unsafe fn policy_of(bytes: hushcount_bytes) -> Result<Policy, hushcount_error> {
    let bytes = unsafe { bytes.copied() }.ok_or_else(|| hushcount_error::usage("policy must not be NULL"))?;
    Ok(Policy::parse(&bytes)?)
}

/// Read the designs of a campaign with mechanism `wss`, if the app has some.
pub(crate) unsafe fn designs_of(bytes: hushcount_bytes) -> Result<Vec<Design>, hushcount_error> {
    unsafe { bytes.copied() }.map_or_else(|| Ok(Vec::new()), |bytes| Ok(Design::parse(&bytes)?))
}
