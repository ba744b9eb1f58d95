//! Exact probabilities and draws.

pub(crate) mod event_bits;
pub(crate) mod primes;
pub(crate) mod subsets;
pub(crate) mod thresholds;
