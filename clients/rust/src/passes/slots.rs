//! Slots: for whom and from when one token or one pass is good.

use sha2::{Digest, Sha256};

use crate::formats::bytes::{Purpose, hash, hash_for};

/// Blind RSA with 2048 bits (RFC 9578, section 6).
pub(crate) const TOKEN_TYPE: [u8; 2] = [0, 2];
/// The name of every evaluator.
pub(crate) const EVALUATOR: &str = "evaluator";

/// Who gets a token. An evaluator that knew a token for the collector could use up the client's cap there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Role {
    Collector,
    Evaluator,
}

impl Role {
    /// The role's name on the wire.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Collector => "collector",
            Self::Evaluator => EVALUATOR,
        }
    }
}

/// Where and when one token or pass is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Slot<'a> {
    pub(crate) role: Role,
    /// The campaign's id.
    pub(crate) campaign: &'a str,
    /// The collector's name in the campaign file, or `EVALUATOR`; never a part of an address.
    pub(crate) name: &'a str,
    /// When the window or the period begins, in seconds since 1970.
    pub(crate) begins: i64,
}

impl Slot<'_> {
    /// Return each text with its length, and the begin: different slots have different bytes.
    pub(crate) fn octets(&self) -> Vec<u8> {
        let texts = [self.role.name(), self.campaign, self.name].map(sized);
        [texts.concat(), self.begins.to_be_bytes().to_vec()].concat()
    }

    /// Return the bytes of the client token, which are also the nonce of the pass: a keyed hash.
    pub(crate) fn nonce(&self, secret: &[u8; 32]) -> [u8; 32] {
        hash_for(&[&self.octets()], Purpose { person: "window token", key: secret, salt: b"" })
    }

    /// Return the hash of the `TokenChallenge` of RFC 9577, which everybody computes and nobody sends: a challenge for
    /// one client would mark its pass.
    pub(crate) fn challenge_digest(&self) -> [u8; 32] {
        let context: [u8; 32] = hash(&[&self.octets()], "pass context");
        let parts: [&[u8]; 5] = [&TOKEN_TYPE, &sized(self.campaign), &[32], &context, &[0, 0]];
        Sha256::digest(parts.concat()).into()
    }
}

/// Return a text after its length in two bytes; an id has at most 64.
fn sized(text: &str) -> Vec<u8> {
    [&(text.len() as u16).to_be_bytes(), text.as_bytes()].concat()
}
