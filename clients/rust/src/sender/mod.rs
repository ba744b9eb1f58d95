//! Delivers reports: a durable queue, and requests to a collector.

mod arrivals;
mod arrived;
mod background;
mod claims;
mod common;
mod delivering;
mod documents;
mod evaluations;
mod events;
mod holds;
mod http;
mod issuer;
mod making;
mod open_evaluations;
mod options;
mod posting;
mod present;
mod publication;
mod queue;
mod reported;
mod sending;
mod settling;
mod shown;
mod site;
mod tables;
pub(crate) mod token;
#[cfg(feature = "http")]
mod ureq_http;
#[cfg(feature = "http")]
mod ureq_transport;
pub(crate) mod verdict;
mod waiting;
mod waits;

pub use events::{Delivery, Event, What};
pub use http::{Failure, Http, Request, Response};
pub use issuer::Issuer;
pub use options::SenderOptions;
pub use reported::Reported;
pub use sending::Sender;
pub use site::Site;
#[cfg(feature = "http")]
pub use ureq_http::UreqHttp;

#[cfg(test)]
#[path = "../../tests/sender/mod.rs"]
mod tests;
