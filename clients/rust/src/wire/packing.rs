//! The wire form of a report: one integer below the number of different reports, in the fewest whole bytes.

use num_bigint::BigUint;

use crate::randomness::{Randomness, uniform};

/// A number of a report, in least..bound.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NumberField {
    pub(crate) bound: u64,
    pub(crate) least: u64,
}

impl NumberField {
    /// Return the field of the numbers below a bound.
    pub(crate) const fn below(bound: u64) -> Self {
        Self { bound, least: 0 }
    }

    /// Draw a uniform number.
    pub(crate) fn draw(self, random: &mut dyn Randomness) -> u64 {
        uniform(self.values(), random) + self.least
    }

    fn values(self) -> u64 {
        self.bound - self.least
    }
}

/// Return the number of different reports; `codes` is the number of values of the part after the fields, or 1.
pub(crate) fn answers(fields: &[NumberField], codes: BigUint) -> BigUint {
    fields.iter().fold(codes, |product, field| product * field.values())
}

/// Return the length in bytes of reports of so many different ones, at least one.
pub(crate) fn report_bytes(answers: BigUint) -> usize {
    (answers - 1u32).bits().div_ceil(8) as usize
}

/// Return a report: its numbers are digits in mixed radix, the first the least significant.
///
/// `code` is the integer of the part after the fields, with its low 64 bits first; without such a part it is empty.
pub(crate) fn pack(fields: &[NumberField], numbers: &[u64], mut code: Vec<u64>, length: usize) -> Vec<u8> {
    code.resize(length.div_ceil(8), 0);
    for (field, number) in fields.iter().zip(numbers).rev() {
        let mut carry = number - field.least;
        for limb in &mut code {
            let whole = u128::from(*limb) * u128::from(field.values()) + u128::from(carry);
            (*limb, carry) = (whole as u64, (whole >> 64) as u64);
        }
    }
    let mut bytes: Vec<u8> = code.into_iter().flat_map(u64::to_le_bytes).collect();
    bytes.truncate(length);
    bytes
}
