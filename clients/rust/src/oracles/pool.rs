//! Pools: functions that are fixed for the campaign, polynomials of degree 2 over fingerprints.

use chacha20::ChaCha20;
use chacha20::cipher::{KeyIvInit, StreamCipher, StreamCipherSeek};
use serde_json::Value;

use crate::errors::{Error, Result};
use crate::formats::bytes::unhex;
use crate::maths::primes::PRIME_61;
use crate::wire::packing::NumberField;

const MOST_FUNCTIONS: i128 = 1 << 18;
const MOST_CELLS: i128 = 1 << 24;
const NONCE: &[u8; 12] = b"LibsodiumDRG";

/// k functions over m cells, expanded from the seed. It is public.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pool {
    functions: u64,
    cells: u64,
    seed: [u8; 32],
}

impl Pool {
    /// Return k functions over m cells.
    ///
    /// # Errors
    /// `Format`: k, m or the seed is out of range.
    pub(crate) fn new(k: i128, m: i128, seed: &Value) -> Result<Self> {
        if !(1..=MOST_FUNCTIONS).contains(&k) {
            return Err(Error::format(format!("k is {k}, must be in 1..{MOST_FUNCTIONS}")));
        }
        if !(2..=MOST_CELLS).contains(&m) {
            return Err(Error::format(format!("m is {m}, must be in 2..{MOST_CELLS} cells")));
        }
        let digits = seed.as_str().filter(|text| !text.bytes().any(|byte| byte.is_ascii_uppercase()));
        let seed = digits.and_then(unhex).and_then(|bytes| bytes.try_into().ok());
        let seed = seed.ok_or_else(|| Error::format("seed must be 64 hexadecimal digits, in lower case"))?;
        Ok(Self { functions: k as u64, cells: m as u64, seed })
    }

    /// The number of cells, m.
    pub(crate) fn cells(&self) -> u64 {
        self.cells
    }

    /// The number of a function in a report.
    pub(super) fn field(&self) -> NumberField {
        NumberField::below(self.functions)
    }

    /// Return the cell of a fingerprint under the function of this number.
    pub(super) fn cell(&self, item: u64, row: u64) -> u64 {
        // Of two factors below 2**61 the product, and a number below 2**61 more, are below 2**123.
        let times = |one: u64, more: u64| {
            let whole = u128::from(one) * u128::from(item) + u128::from(more);
            (whole % u128::from(PRIME_61)) as u64
        };
        let [c0, c1, c2] = self.coefficients(row);
        times(times(c2, c1), c0) % self.cells
    }

    /// Return the coefficients of one function, for x**0, x**1 and x**2.
    ///
    /// A report needs one function only, so just three words of `ChaCha20` are computed, for any size of the pool.
    pub(crate) fn coefficients(&self, row: u64) -> [u64; 3] {
        let mut stream = ChaCha20::new(&self.seed.into(), NONCE.into());
        [0, 1, 2].map(|power| {
            let mut word = [0; 8];
            stream.seek(8 * (power * self.functions + row));
            stream.apply_keystream(&mut word);
            u64::from_le_bytes(word) % PRIME_61
        })
    }
}
