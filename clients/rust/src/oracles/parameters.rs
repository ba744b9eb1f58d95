//! The facts from which a mechanism is built.

use serde_json::{Map, Value};

use super::design::Design;
use crate::errors::{Error, Result};
use crate::formats::json::MOST_INTEGER;

/// A mechanism's parameters, by their letters.
pub(super) struct Parameters<'a> {
    pub(super) epsilon: f64,
    /// The number of items with "other"; none in the open domain.
    pub(super) domain: Option<u64>,
    pub(super) values: &'a Map<String, Value>,
    pub(super) designs: &'a [Design],
}

impl Parameters<'_> {
    /// Return the number of items of a mechanism that has a dictionary.
    pub(super) fn items(&self) -> u64 {
        self.domain.unwrap_or_default()
    }

    /// Return the integer with this letter; an integer above 2**53 - 1 is written as text.
    ///
    /// # Errors
    /// `Format`: the parameter is not an integer.
    pub(super) fn integer(&self, letter: &str) -> Result<i128> {
        let integer = match self.values.get(letter) {
            Some(Value::Number(number)) => number.as_f64().and_then(exact),
            Some(Value::String(digits)) => large(digits),
            _ => None,
        };
        let must = "must be an integer, as text of its digits only above 2**53 - 1";
        integer.ok_or_else(|| Error::format(format!("{letter} {must}")))
    }
}

fn exact(number: f64) -> Option<i128> {
    (number.fract() == 0.0 && number.abs() <= MOST_INTEGER as f64).then_some(number as i128)
}

fn large(digits: &str) -> Option<i128> {
    let has_form = digits.len() <= 20 && !digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|&integer| has_form && integer > i128::from(MOST_INTEGER))
}
