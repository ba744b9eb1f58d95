//! What a value becomes before it is reported.

pub(crate) mod dictionary;
pub(crate) mod items;
pub(crate) mod numbers;
pub(crate) mod strata;
pub(crate) mod unicode13;
pub(crate) mod urls;
