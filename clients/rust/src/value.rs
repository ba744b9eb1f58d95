//! What an app reports: text or a number, and the client's coordinates.

use std::borrow::Cow;

use crate::formats::canonical_json::number_text;
use crate::formats::fields::IDENTIFIER;
use crate::values::strata::{Coordinates, may_be_listed};

/// A value that an app reports, or a client's coordinate on an axis: made of a `&str`, a `&String`, an `f64`, an `i32`
/// or a `u32`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// Text of any length; a text that may be no item of the campaign counts as "other".
    Text(&'a str),
    /// A number, also NaN and infinity; without bins in the campaign, its text as ECMAScript writes it is reported.
    Number(f64),
}

impl<'a> Value<'a> {
    /// Return a value as text.
    pub(crate) fn text(self) -> Cow<'a, str> {
        match self {
            Self::Text(text) => text.into(),
            Self::Number(number) => number_text(number).into(),
        }
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a String> for Value<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(text)
    }
}

impl From<f64> for Value<'_> {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<i32> for Value<'_> {
    fn from(number: i32) -> Self {
        Self::Number(number.into())
    }
}

impl From<u32> for Value<'_> {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}

/// Return a client's coordinates as texts, those that a campaign may list; the others count as "other".
pub(crate) fn coordinates_of(by: &[(&str, Value<'_>)]) -> Coordinates {
    let texts = by.iter().map(|(axis, value)| (*axis, value.text()));
    let listed = texts.filter(|(axis, text)| IDENTIFIER.fits(axis) && may_be_listed(text));
    listed.map(|(axis, text)| (axis.to_owned(), text.into_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_its_text_as_ecmascript_writes_it() {
        let infinity = f64::INFINITY;
        let numbers =
            [0.1, 2.0, -0.0, 1e21, 1e-7, f64::NAN, infinity, -infinity].map(|number| Value::from(number).text());
        assert_eq!(numbers, ["0.1", "2", "0", "1e+21", "1e-7", "NaN", "Infinity", "-Infinity"]);
        assert_eq!([Value::from(-3).text(), Value::from(3u32).text(), Value::from("NaN").text()], ["-3", "3", "NaN"]);
    }

    #[test]
    fn coordinates_that_no_campaign_may_list_are_left_out() {
        let long = "x".repeat(65);
        let by = [
            ("version", "2.1".into()),
            ("cores", 8.into()),
            ("Axis", "a".into()),
            ("a", "ü".into()),
            ("b", (&long).into()),
        ];
        let kept: Vec<_> = coordinates_of(&by).into_iter().collect();
        assert_eq!(kept, [("cores", "8"), ("version", "2.1")].map(|(axis, text)| (axis.to_owned(), text.to_owned())));
    }
}
