//! The native client of Hushcount for C, and for languages that call C.
//!
//! `include/hushcount.h` is written from this crate: `make header`. Its first lines state what a caller must keep to;
//! every function here is unsafe, because only the caller can.

#![deny(missing_docs)]
#![warn(clippy::pedantic)]
// The header has these names, and states once what is safe.
#![allow(non_camel_case_types, clippy::missing_safety_doc)]

mod client;
mod errors;
mod files;
#[cfg(feature = "http")]
mod sender;
#[cfg(feature = "http")]
mod sender_options;
mod texts;
