//! The mechanism: public parameters, and the one random step of a client.

use num_bigint::BigUint;

use super::catalogue;
use super::design::Design;
use super::encoder::Encoder;
use super::responder::{Answer, Responder};
use crate::campaigns::sections::MechanismTerms;
use crate::errors::Result;
use crate::randomness::Randomness;
use crate::wire::packing::{NumberField, answers, pack, report_bytes};

/// A frequency oracle: an encoder, and a responder over the encoder's cells. All of it is public.
#[derive(Clone, Debug)]
pub(crate) struct Mechanism {
    domain: Option<u64>,
    encoder: Encoder,
    pub(crate) responder: Responder,
    report_bytes: usize,
}

impl Mechanism {
    /// Build the mechanism that a campaign file names; `domain` is the number of items with "other", none if every
    /// fingerprint is an item.
    ///
    /// # Errors
    /// `Format`: the name is unknown, or a parameter is missing, unknown or out of range; the error names it.
    pub(crate) fn build(terms: &MechanismTerms, domain: Option<u64>, designs: &[Design]) -> Result<Self> {
        catalogue::build(terms, domain, designs)
    }

    /// The mechanism of a campaign with noise: a report is the item itself, and only dummies of the mixes hide it.
    ///
    /// # Errors
    /// `Format`: the domain is out of range.
    pub(crate) fn truthful(domain: u64) -> Result<Self> {
        catalogue::require_domain(domain)?;
        Ok(Self::new(Some(domain), Encoder::Identity { cells: domain }, Responder::Truthful { width: domain }))
    }

    /// Join an encoder and a responder over its cells; `domain` is as in `build`.
    pub(super) fn new(domain: Option<u64>, encoder: Encoder, responder: Responder) -> Self {
        let mechanism = Self { domain, encoder, responder, report_bytes: 0 };
        Self { report_bytes: report_bytes(mechanism.answers()), ..mechanism }
    }

    /// The number of items, "other" included; none if every fingerprint is an item.
    pub(crate) fn domain(&self) -> Option<u64> {
        self.domain
    }

    /// The length of every report, before sealing.
    pub(crate) fn report_bytes(&self) -> usize {
        self.report_bytes
    }

    /// The number of different reports; the integer of every report is below it.
    pub(crate) fn answers(&self) -> BigUint {
        answers(&self.fields(), self.responder.codes())
    }

    /// Privatise one item: epsilon-locally private, replace-one, unless the mixes add the noise.
    ///
    /// `item` is below the domain, or a fingerprint. The number of words drawn does not depend on it.
    pub(crate) fn report(&self, item: u64, random: &mut dyn Randomness) -> Vec<u8> {
        let mut numbers: Vec<u64> = self.encoder.fields().into_iter().map(|field| field.draw(random)).collect();
        let answer = self.responder.respond(self.encoder.cell(item, &numbers), random);
        let code = match answer {
            Answer::Number(number) => {
                numbers.push(number);
                Vec::new()
            }
            Answer::Code(code) => code,
        };
        pack(&self.fields(), &numbers, code, self.report_bytes)
    }

    fn fields(&self) -> Vec<NumberField> {
        self.encoder.fields().into_iter().chain(self.responder.field()).collect()
    }
}
