//! The campaign: the public parameters of one collection, read from a file that states even default values.

pub(crate) mod campaign;
pub(crate) mod fingerprint;
pub(crate) mod keys;
pub(crate) mod noise;
mod reading;
pub(crate) mod sample;
pub(crate) mod sections;
pub(crate) mod windows;
