//! The sender, against a collector that a test steers in process, and against a real one.

mod clocks;
mod counted;
#[cfg(target_os = "linux")]
mod crashes;
mod epochs;
mod evaluations;
mod fake_collector;
mod fake_issuer;
mod hostile;
mod mutated;
mod noise;
mod passes;
mod queue;
#[cfg(feature = "http")]
mod real_collector;
mod refresh;
mod reported;
mod sender;
mod sent_in_a_window;
mod threads;
#[cfg(feature = "http")]
mod ureq;
