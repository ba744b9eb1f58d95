//! The request to an issuer for the passes of one client and day, and the passes that its answer makes (docs/adr/0053).
//!
//! The client asks for all its passes of the next day at a random second of each day, whether it reports or not. The bytes
//! of a request follow from the client's secret, the slots and the keys, so a repeated request is equal, and the issuer
//! answers it again.

use num_bigint::BigUint;
use sha2::{Digest, Sha256};

use super::blind::{BLIND_BYTES, KEY_BYTES, Modulus, SALT_BYTES, encoded};
use super::slots::{EVALUATOR, Role, Slot, TOKEN_TYPE};
use super::terms::PassTerms;
use crate::errors::{Error, Kind, Result};
use crate::formats::bytes::{Purpose, hash, hash_for};
use crate::formats::times::parse_time;
use crate::sender::token::base64_url;
use crate::sender::verdict::{Answer, Fate, Verdict};

const DAY: i64 = 86_400;
/// The longest list of a day's keys: most parties of a campaign times most periods of a day.
pub(crate) const MOST_KEYS_BYTES: usize = 17 * 24 * KEY_BYTES;
/// Bytes of a block that is drawn from the secret, and the blocks that have a blinding and a salt.
const DRAWN_BYTES: usize = 64;
const DRAWN_BLOCKS: [u8; 5] = [0, 1, 2, 3, 4];
/// DER of a public key for RSASSA-PSS, before and after its modulus (RFC 9578, section 6.5).
const BEFORE_MODULUS: [u8; 81] = [
    0x30, 0x82, 0x01, 0x52, 0x30, 0x3d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0a, 0x30, 0x30,
    0xa0, 0x0d, 0x30, 0x0b, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x02, 0xa1, 0x1a, 0x30, 0x18,
    0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x08, 0x30, 0x0b, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01,
    0x65, 0x03, 0x04, 0x02, 0x02, 0xa2, 0x03, 0x02, 0x01, 0x30, 0x03, 0x82, 0x01, 0x0f, 0x00, 0x30, 0x82, 0x01, 0x0a,
    0x02, 0x82, 0x01, 0x01, 0x00,
];
const AFTER_MODULUS: [u8; 5] = [2, 3, 1, 0, 1];

/// What decides which passes a campaign's clients have.
#[derive(Clone, Copy)]
pub(crate) struct Issue<'a> {
    /// The campaign's id.
    pub(crate) campaign: &'a str,
    pub(crate) collectors: &'a [String],
    /// Whether an evaluator takes passes too.
    pub(crate) has_evaluator: bool,
    pub(crate) terms: &'a PassTerms,
}

/// A slot, and its pass whose signature is asked for.
pub(crate) struct Pending<'a> {
    pub(crate) slot: Slot<'a>,
    /// The `TokenRequest` of RFC 9578, section 6.1.
    pub(crate) request: Vec<u8>,
    modulus: Modulus,
    message: Vec<u8>,
    encoded: BigUint,
    blinding: [u8; BLIND_BYTES],
}

impl<'a> Issue<'a> {
    /// Return all slots of a day, in the order of its keys; `day` is its begin, in seconds since 1970.
    pub(crate) fn slots_of(&self, day: i64) -> Vec<Slot<'a>> {
        let collectors = self.collectors.iter().map(|name| (Role::Collector, name.as_str()));
        let evaluator = self.has_evaluator.then_some((Role::Evaluator, EVALUATOR));
        let seconds = self.seconds();
        let periods = move |(role, name)| {
            (0..DAY / seconds).map(move |number| (role, name, day.saturating_add(number * seconds)))
        };
        let all = collectors.chain(evaluator).flat_map(periods);
        all.map(|(role, name, begins)| Slot { role, campaign: self.campaign, name, begins }).collect()
    }

    /// Return the slots of a day for which a client of a collector asks: a fixed number, 24 at most.
    pub(crate) fn own_slots(&self, collector: &str, day: i64) -> Vec<Slot<'a>> {
        let slots = self.slots_of(day).into_iter();
        slots.filter(|slot| slot.role == Role::Evaluator || slot.name == collector).collect()
    }

    /// Return when the period with a moment begins; both in seconds since 1970.
    pub(crate) fn period(&self, moment: i64) -> i64 {
        moment.saturating_sub(moment.rem_euclid(self.seconds()))
    }

    /// Return a client's passes of a day, whose signatures are asked for; `keys` are the moduli that the issuer serves.
    ///
    /// # Errors
    /// `Delivery`: the campaign has no passes for this day, or the keys are not those of its signed file.
    pub(crate) fn pending(
        &self,
        secret: &[u8; 32],
        collector: &str,
        day: i64,
        keys: &[u8],
    ) -> Result<Vec<Pending<'a>>> {
        let moduli = self.checked_day(day, keys)?;
        let own = self.own_slots(collector, day);
        let slots = self.slots_of(day).into_iter().zip(moduli);
        let mine = slots.filter(|(slot, _)| own.contains(slot));
        Ok(mine.map(|(slot, modulus)| Pending::new(secret, slot, modulus)).collect())
    }

    /// Return the moduli of a day, one for each of its slots, if they are those of the signed campaign file.
    fn checked_day(&self, day: i64, keys: &[u8]) -> Result<Vec<Modulus>> {
        let first = parse_time(&format!("{}T00:00:00Z", self.terms.first)).map(|millis| millis / 1000);
        let place = first.and_then(|first| usize::try_from(day.checked_sub(first)?.div_euclid(DAY)).ok());
        let Some(digest) = place.and_then(|place| self.terms.days.get(place)) else {
            return Err(useless(format!("campaign {} has no passes for this day: wait for another", self.campaign)));
        };
        let number = self.slots_of(day).len();
        let moduli: Option<Vec<Modulus>> = keys.chunks(KEY_BYTES).map(Modulus::parse).collect();
        let named = hash::<32>(&[keys], "pass keys") == *digest;
        moduli.filter(|moduli| named && moduli.len() == number).ok_or_else(|| {
            useless(format!("the keys for passes are not those of campaign {}: tell the operator", self.campaign))
        })
    }

    fn seconds(&self) -> i64 {
        i64::try_from(self.terms.seconds).unwrap_or(DAY).clamp(1, DAY)
    }
}

impl<'a> Pending<'a> {
    /// Return the pass of a slot to ask for. Its blinding depends on the key too: one used with two keys would link.
    pub(crate) fn new(secret: &[u8; 32], slot: Slot<'a>, modulus: Modulus) -> Self {
        let der: [&[u8]; 3] = [&BEFORE_MODULUS, modulus.octets(), &AFTER_MODULUS];
        let key_id: [u8; 32] = Sha256::digest(der.concat()).into();
        let purpose = Purpose { person: "pass blinding", key: secret, salt: b"" };
        let drawn = DRAWN_BLOCKS.map(|block| hash_for::<DRAWN_BYTES>(&[&slot.octets(), &key_id, &[block]], purpose));
        let (mut blinding, mut salt) = ([0; BLIND_BYTES], [0; SALT_BYTES]);
        let (for_blinding, for_salt) = drawn.as_flattened().split_at(BLIND_BYTES);
        blinding.copy_from_slice(for_blinding);
        salt.copy_from_slice(for_salt);
        let message: [&[u8]; 4] = [&TOKEN_TYPE, &slot.nonce(secret), &slot.challenge_digest(), &key_id];
        let message = message.concat();
        let encoded = encoded(&message, &salt);
        let parts: [&[u8]; 3] = [&TOKEN_TYPE, &key_id[31..], &modulus.blinded(&encoded, &blinding)];
        Self { slot, request: parts.concat(), modulus, message, encoded, blinding }
    }

    /// Return the value of the header Authorization that shows the pass of an answer.
    ///
    /// # Errors
    /// `Delivery`: the answer is no signature by the slot's key.
    pub(crate) fn finished(&self, answer: &[u8]) -> Result<String> {
        let signature = self.modulus.unblinded(&self.encoded, &self.blinding, answer).ok_or_else(|| {
            useless("the answer of the issuer is no signature by the key of the campaign file: tell the operator")
        })?;
        Ok(format!("PrivateToken token=\"{}\"", base64_url(&[&self.message[..], &signature].concat())))
    }
}

/// Return the body of a request for all these passes.
pub(crate) fn body_of(pending: &[Pending<'_>]) -> Vec<u8> {
    pending.iter().flat_map(|one| one.request.iter().copied()).collect()
}

/// Return the headers of all passes, in order, for the answer to their request.
///
/// # Errors
/// `Delivery`: a part of the answer is missing, or is no signature; no pass may be kept then.
pub(crate) fn headers_of(pending: &[Pending<'_>], answer: &[u8]) -> Result<Vec<String>> {
    let parts = answer.chunks(KEY_BYTES).chain(std::iter::repeat(&[][..]));
    pending.iter().zip(parts).map(|(one, part)| one.finished(part)).collect()
}

/// Return the bytes of the issuer's answer 200, or why there are none; the client asks again later, whatever it is.
///
/// `wanted` is the number of bytes that the answer must have, if that is known.
pub(crate) fn octets_of(answer: &Answer, wanted: Option<usize>) -> std::result::Result<&[u8], Verdict> {
    let again = |reason: &str, wait| Verdict { fate: Fate::Again, reason: reason.to_owned(), wait, at: None };
    match answer.status {
        200 if answer.media() != "application/octet-stream" => Err(again("no_issuer", 0)),
        200 if wanted.is_some_and(|wanted| answer.body.len() != wanted) => Err(again("wrong_length", 0)),
        200 => Ok(&answer.body),
        _ => {
            let Verdict { reason, wait, .. } = answer.verdict(1, i64::MIN);
            Err(again(if reason.is_empty() || reason == "no_collector" { "no_issuer" } else { &reason }, wait))
        }
    }
}

/// Return the second of a day at which a client asks for the passes of the next one; `day` is its begin.
pub(crate) fn asking_second(secret: &[u8; 32], day: i64) -> i64 {
    let drawn = hash_for(&[&day.to_be_bytes()], Purpose { person: "asking", key: secret, salt: b"" });
    i64::try_from(u64::from_be_bytes(drawn) % DAY as u64).unwrap_or_default()
}

fn useless(message: impl Into<String>) -> Error {
    Error::new(Kind::Delivery, message)
}
