//! Frequency oracles: an encoder and a responder make one packed report from one item (docs/adr/0004).

pub(crate) mod catalogue;
mod constructed;
pub(crate) mod design;
pub(crate) mod encoder;
pub(crate) mod mechanism;
mod parameters;
pub(crate) mod pool;
mod recipes;
pub(crate) mod responder;
pub(crate) mod weighted;
