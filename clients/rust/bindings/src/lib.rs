//! The native client of Hushcount for programs in Kotlin and Swift: the same calls as the crate `hushcount`, in types
//! that `UniFFI` can pass.

#![forbid(unsafe_code)]
#![deny(missing_docs)]
#![warn(clippy::pedantic)]
// UniFFI passes options by value.
#![allow(clippy::must_use_candidate, clippy::needless_pass_by_value)]

mod client;
mod errors;
mod http;
mod options;
mod sender;
mod spent;
mod told;
mod values;

pub use client::{Client, ClientOptions};
pub use errors::HushcountError;
pub use http::{Http, HttpError, HttpRequest, HttpResponse};
pub use options::{Issuer, Limits, SenderOptions, Site};
pub use sender::Sender;
pub use spent::{Spent, StreamSpent};
pub use told::Delivery;
pub use values::ValueText;

uniffi::setup_scaffolding!("hushcount");
