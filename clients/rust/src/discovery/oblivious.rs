//! Names from an evaluator (RFC 9497, mode VOPRF, ristretto255-SHA512).
//!
//! The evaluator sees blinded elements, which are uniform for every value. The evaluator's proof shows that it used the
//! campaign's key, so it cannot use a special key for one client.

use std::fmt;

use curve25519_dalek::{RistrettoPoint, Scalar};
use voprf::{EvaluationElement, Group, Proof, Ristretto255, VoprfClient};

use super::report::{DiscoveryFormat, Name};
use crate::errors::{Error, Kind, Result};
use crate::formats::bytes::{Purpose, hash_for};
use crate::randomness::Randomness;

/// The length of an element, blinded or evaluated.
pub(crate) const ELEMENT_BYTES: usize = 32;
/// The length of the proof after the evaluated elements.
pub(crate) const PROOF_BYTES: usize = 64;
const INPUT_BYTES: usize = 32;

/// Return the evaluator's key.
///
/// # Errors
/// `Format`: the bytes are no group element, or the identity.
pub(crate) fn public_key_of(key: &[u8; 32]) -> Result<RistrettoPoint> {
    let refused = |_| Error::format("the evaluator's key is not a valid ristretto255 public key");
    Ristretto255::deserialize_elem(key).map_err(refused)
}

/// One request for several inputs of the function, and the step from the answer to their outputs.
pub(crate) struct Evaluations {
    inputs: Vec<Vec<u8>>,
    clients: Vec<VoprfClient<Ristretto255>>,
    /// An element of 32 bytes for each input.
    pub(crate) blinded: Vec<u8>,
}

impl Evaluations {
    /// Blind inputs of the function; in place of none, a random input is used.
    ///
    /// Randomness: for each input 4 words, which are its bytes if there is none, and 8 words for the blind.
    ///
    /// # Errors
    /// `Usage`: an input has more than 65,535 bytes.
    pub(crate) fn of(inputs: &[Option<Vec<u8>>], random: &mut dyn Randomness) -> Result<Self> {
        let mut made = Self { inputs: Vec::new(), clients: Vec::new(), blinded: Vec::new() };
        for given in inputs {
            let mut fresh = [0; INPUT_BYTES];
            random.octets(&mut fresh);
            let input = given.clone().unwrap_or_else(|| fresh.to_vec());
            let blind = VoprfClient::deterministic_blind_unchecked(&input, blind_of(random));
            let blind = blind.map_err(|_| Error::usage("a value is too long to be discovered: shorten it"))?;
            made.blinded.extend(blind.message.serialize());
            made.inputs.push(input);
            made.clients.push(blind.state);
        }
        Ok(made)
    }

    /// Return the output of each input, 64 bytes.
    ///
    /// `answer`: an evaluated element of 32 bytes for each input, then the proof of 64 bytes.
    ///
    /// # Errors
    /// `Unanswered`: the answer's length, an element or the proof is wrong.
    pub(crate) fn finish(&self, answer: &[u8], public_key: &RistrettoPoint) -> Result<Vec<[u8; 64]>> {
        let elements = ELEMENT_BYTES * self.inputs.len();
        let (long, must) = (answer.len(), elements + PROOF_BYTES);
        if long != must {
            return Err(unanswered(format!("the evaluator's answer has {long} bytes, must have {must}")));
        }
        let (evaluated, proof) = answer.split_at(elements);
        let wrong = || unanswered("the evaluator's answer is wrong: it was not made with the key of the campaign");
        self.verified(evaluated, proof, public_key).map_err(|_| wrong())
    }

    fn verified(&self, evaluated: &[u8], proof: &[u8], public_key: &RistrettoPoint) -> voprf::Result<Vec<[u8; 64]>> {
        let evaluated = evaluated.chunks(ELEMENT_BYTES).map(EvaluationElement::deserialize);
        let evaluated: Vec<_> = evaluated.collect::<voprf::Result<_>>()?;
        let proof = Proof::deserialize(proof)?;
        let outputs = VoprfClient::batch_finalize(&self.inputs, &self.clients, &evaluated, &proof, *public_key)?;
        outputs.map(|output| output.map(Into::into)).collect()
    }
}

/// Return the name of a value from the output of the function.
pub(crate) fn name_of(output: &[u8; 64]) -> Name {
    let hashed = |person| hash_for(&[], Purpose { person, key: output, salt: &[] });
    Name { hash: hashed("bin hash"), box_key: hashed("box key") }
}

/// Draw a blind, which must not be zero.
fn blind_of(random: &mut dyn Randomness) -> Scalar {
    loop {
        let mut wide = [0; 64];
        random.octets(&mut wide);
        let blind = Scalar::from_bytes_mod_order_wide(&wide);
        if blind != Scalar::ZERO {
            return blind;
        }
    }
}

fn unanswered(message: impl Into<String>) -> Error {
    Error::new(Kind::Unanswered, message)
}

/// A discovery report that is counted and charged, and still needs its name from the evaluator.
///
/// Send the evaluation once, at a random time that does not depend on the value, and then the report that `finish`
/// makes of the answer. If no usable answer comes, send the blank. So one evaluation and one report are sent for every
/// value.
pub struct PendingDiscovery {
    /// A sealed blank, which is sent instead of the report if no answer comes.
    pub blank: Vec<u8>,
    /// The blinded element for the evaluator: 32 bytes, which are uniform for every value.
    pub evaluation: Vec<u8>,
    evaluations: Evaluations,
    format: DiscoveryFormat,
    public_key: RistrettoPoint,
    value: Option<String>,
    /// The secret of the outer box of the finished report, which is the same for each right answer.
    secret: [u8; 32],
}

impl PendingDiscovery {
    /// Begin the report of a value that may be discovered; a report without a value asks for an evaluation too, of a
    /// random input.
    ///
    /// Randomness: 12 words for the evaluation, 8 words and a secret for the blank, a secret for the finished report.
    ///
    /// # Errors
    /// `Format`: the value is too long.
    pub(crate) fn begin(
        format: &DiscoveryFormat,
        public_key: RistrettoPoint,
        value: Option<String>,
        random: &mut dyn Randomness,
    ) -> Result<Self> {
        let input = value.as_ref().map(|value| [&format.binding[..], value.as_bytes()].concat());
        let evaluations = Evaluations::of(&[input], random)?;
        let blank = format.blank(random)?;
        let (evaluation, secret) = (evaluations.blinded.clone(), random.secret());
        Ok(Self { blank, evaluation, evaluations, format: format.clone(), public_key, value, secret })
    }

    /// Return the sealed report, as long as `blank`, from the evaluator's answer: the evaluated element and the proof.
    ///
    /// A report without a value is sealed again too, so that neither the time nor the queue reveals whether there is a
    /// value.
    ///
    /// # Errors
    /// `Unanswered`: the answer's length, element or proof is wrong; then send `blank`.
    pub fn finish(&self, answer: &[u8]) -> Result<Vec<u8>> {
        let outputs = self.evaluations.finish(answer, &self.public_key)?;
        let output = outputs.first().ok_or_else(|| unanswered("the evaluator's answer is empty"))?;
        self.format.report(self.value.as_deref(), &name_of(output), &self.secret)
    }
}

impl fmt::Debug for PendingDiscovery {
    /// Write no value and no secret.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("PendingDiscovery").finish_non_exhaustive()
    }
}
