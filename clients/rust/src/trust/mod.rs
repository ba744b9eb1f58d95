//! What a client demands of a campaign before it reports to it.

pub(crate) mod delegation;
pub(crate) mod installation;
pub(crate) mod log;
pub(crate) mod newest;
pub(crate) mod policy;
mod policy_terms;
pub(crate) mod restart;
pub(crate) mod signatures;
