//! Bytes, JSON and times, as the wire format writes them.

pub(crate) mod bytes;
pub(crate) mod canonical_json;
pub(crate) mod fields;
pub(crate) mod json;
pub(crate) mod times;
