//! Passes: blind signatures of an issuer, which a client shows in place of its token (docs/adr/0053).

pub(crate) mod asking;
pub(crate) mod blind;
pub(crate) mod slots;
pub(crate) mod terms;
