//! Probabilities as integer thresholds out of 2**64: an event happens if a fresh word is below its threshold.
//!
//! Python computes these thresholds with 60 decimal digits. This module writes every number as an integer out of
//! 2**384, with an error of less than 2**-300. Python and this module round the same real number, which is irrational
//! because epsilon is rational and not 0. So they give the same integer unless that real number is within Python's
//! error, less than 1e-38, of an integer. `rounded` refuses a number within 2**-100 of an integer, about 8e-31, so its
//! result is always Python's result.
//!
//! A public parameter is an `i128` until it is checked, so that a message can name any number of a campaign file.

use num_bigint::BigInt;

use crate::errors::{Error, Result};
use crate::formats::canonical_json::number_text;

/// The number of values of a word.
pub(crate) const WORD_VALUES: i128 = 1 << 64;
/// The least and the largest epsilon of a report, and of a window.
pub(crate) const LEAST_EPSILON: f64 = 1e-4;
pub(crate) const LARGEST_EPSILON: f64 = 40.0;
const BITS: u64 = 384;
const HALVINGS: u64 = 10;
/// A number that is less than 2**-100 from an integer is not rounded.
const UNDECIDED_BITS: u64 = 100;

/// Return floor(2**64 e / (e + m - s)) with e = s exp(epsilon): for a report of s (size) of m (width) cells that spends
/// epsilon.
///
/// # Errors
/// `Format`: epsilon is not in [0.0001, 40], m is below 2, or s is not in 1..m.
pub(crate) fn spending_threshold(epsilon: f64, width: i128, size: i128) -> Result<i128> {
    spending(&scaled(epsilon)?, width, size)
}

/// Return the threshold for keeping a bit, which is flipped otherwise: two items differ in two bits, each spends half.
///
/// # Errors
/// `Format`: epsilon is not in [0.0001, 40].
pub(crate) fn symmetric_threshold(epsilon: f64) -> Result<i128> {
    spending(&(scaled(epsilon)? / 2), 2, 1)
}

/// Return the least threshold for q: the odds of q are at least the odds of p (`keep`) divided by exp(epsilon).
///
/// # Errors
/// `Format`: epsilon is not in [0.0001, 40], or p is not above 0 and below 1.
pub(crate) fn spending_flip(epsilon: f64, keep: i128) -> Result<i128> {
    let others = exponential(&scaled(epsilon)?);
    if !(keep > 0 && keep < WORD_VALUES) {
        return Err(Error::format("p must be above 0 and below 1"));
    }
    let own = BigInt::from(keep) << BITS;
    let others = others * (WORD_VALUES - keep);
    // The number is rounded up by adding 1 to the number rounded down, because it is no integer.
    Ok(rounded(&((&own << (64 + BITS)) / (own + others)))? + 1)
}

/// Return the threshold of a probability, rounded down. A double times 2**64 is exact.
///
/// # Errors
/// `Format`: the probability, which the message calls `name`, is not in [0, 1].
pub(crate) fn probability_threshold(probability: f64, name: &str) -> Result<i128> {
    if !(0.0..=1.0).contains(&probability) {
        return Err(Error::format(format!("{name} must be in [0, 1]")));
    }
    Ok((probability * WORD_VALUES as f64) as i128)
}

/// Check that a report can have s (size) of m (width) cells.
///
/// # Errors
/// `Format`: m is below 2, or s is not in 1..m.
pub(crate) fn require_size(width: i128, size: i128) -> Result<()> {
    if width < 2 {
        return Err(Error::format(format!("width is {width}, must be at least 2 cells")));
    }
    if !(1..width).contains(&size) {
        return Err(Error::format(format!("s is {size}, must be in 1..{} for {width} cells", width - 1)));
    }
    Ok(())
}

fn spending(epsilon: &BigInt, width: i128, size: i128) -> Result<i128> {
    require_size(width, size)?;
    let weight = exponential(epsilon) * size;
    let all = &weight + (BigInt::from(width - size) << BITS);
    rounded(&((weight << (64 + BITS)) / all))
}

/// Return epsilon out of 2**384, exactly: no double in [0.0001, 40] has a bit below 2**-66.
fn scaled(epsilon: f64) -> Result<BigInt> {
    if !(LEAST_EPSILON..=LARGEST_EPSILON).contains(&epsilon) {
        return Err(Error::format(format!(
            "epsilon is {}, must be in [{LEAST_EPSILON}, {LARGEST_EPSILON}]",
            number_text(epsilon)
        )));
    }
    let (exponent, digits) = (epsilon.to_bits() >> 52, epsilon.to_bits() & ((1 << 52) - 1) | 1 << 52);
    Ok(BigInt::from(digits) << (BITS + exponent - 1075))
}

/// Return exp(x), both out of 2**384: the series of x / 2**10, squared ten times.
fn exponential(x: &BigInt) -> BigInt {
    let small = x >> HALVINGS;
    let mut term = BigInt::from(1) << BITS;
    let mut sum = term.clone();
    for step in 1u32.. {
        term = ((term * &small) >> BITS) / step;
        if term == BigInt::ZERO {
            break;
        }
        sum += &term;
    }
    for _ in 0..HALVINGS {
        sum = (&sum * &sum) >> BITS;
    }
    sum
}

/// Return the integer part of a number out of 2**384, unless the number is so near an integer that it is uncertain.
fn rounded(value: &BigInt) -> Result<i128> {
    let undecided = BigInt::from(1) << (BITS - UNDECIDED_BITS);
    let (down, up): (BigInt, BigInt) = ((value - &undecided) >> BITS, (value + &undecided) >> BITS);
    let decided = if down == up { i128::try_from(down).ok() } else { None };
    decided.ok_or_else(|| Error::format("a threshold cannot be decided: change epsilon"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_near_an_integer_is_not_rounded() {
        let (seven, near) = (BigInt::from(7) << BITS, BigInt::from(1) << (BITS - UNDECIDED_BITS));
        assert_eq!(rounded(&(&seven + &near)).unwrap(), 7);
        for unclear in [seven.clone(), &seven + &near - 1, &seven - &near] {
            assert!(rounded(&unclear).unwrap_err().to_string().contains("change epsilon"));
        }
    }
}
