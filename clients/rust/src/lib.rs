#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![deny(missing_docs)]
#![warn(clippy::pedantic)]
#![allow(
    clippy::must_use_candidate,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss
)]

mod budget;
mod campaigns;
mod client;
mod clock;
mod discovery;
mod errors;
mod formats;
mod making;
mod maths;
mod memory;
mod oracles;
mod passes;
mod randomness;
mod sender;
mod store;
mod trust;
mod value;
mod values;
mod wire;

pub use budget::{Budget, Limits, Spent, SpentOn, StreamSpent, WhenSpent};
pub use campaigns::campaign::Stream;
pub use client::{Client, ClientOptions};
pub use clock::{Clock, SystemClock};
pub use discovery::oblivious::PendingDiscovery;
pub use errors::{Error, Kind, Result};
pub use oracles::design::Design;
#[cfg(feature = "http")]
pub use sender::UreqHttp;
pub use sender::{
    Delivery, Event, Failure, Http, Issuer, Reported, Request, Response, Sender, SenderOptions, Site, What,
};
pub use store::Store;
pub use trust::policy::Policy;
pub use value::Value;

#[cfg(test)]
#[path = "../tests/hostile/mod.rs"]
mod hostile;
#[cfg(test)]
#[path = "../tests/vectors/mod.rs"]
mod vectors;
