//! Discovery: reports of values that the dictionary lacks.

pub(crate) mod oblivious;
pub(crate) mod report;
