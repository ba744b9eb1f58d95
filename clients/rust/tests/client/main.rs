//! A client by its public interface alone: what it makes, what it charges, and when it makes nothing.

mod allowance;
mod budget;
mod memory;
mod noise;
mod oblivious;
mod reports;
mod support;
