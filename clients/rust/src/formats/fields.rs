//! Checks data of another party: every field is valid, and there are no other fields.

use serde_json::{Map, Value};

use super::bytes::unhex_exact;
use super::canonical_json::number_text;
use super::json::MOST_INTEGER;
use super::times::parse_time;
use crate::errors::{Error, Result};

/// A form of text, with the words for a message.
pub(crate) struct Form {
    says: &'static str,
    fits: fn(&str) -> bool,
}

impl Form {
    pub(crate) const fn new(says: &'static str, fits: fn(&str) -> bool) -> Self {
        Self { says, fits }
    }

    /// Return whether a text has this form.
    pub(crate) fn fits(&self, text: &str) -> bool {
        (self.fits)(text)
    }
}

/// The id of a campaign, and names that have its form.
pub(crate) const IDENTIFIER: Form = Form::new("[a-z0-9][a-z0-9._-]{0,63}", |text| {
    let first = text.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let rest = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
    first && text.len() <= 64 && text.bytes().all(rest)
});

/// The fields of an object in a file; `name` names the object in messages.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a> {
    fields: &'a Map<String, Value>,
    name: &'a str,
}

impl<'a> Fields<'a> {
    /// Return an object's fields: all of `needed`, some of `optional`, and no other fields.
    pub(crate) fn of(data: &'a Value, name: &'a str, needed: &[&str], optional: &[&str]) -> Result<Self> {
        let Value::Object(fields) = data else { return Err(Error::format(format!("{name} must be an object"))) };
        if let Some(missing) = needed.iter().find(|field| !fields.contains_key(**field)) {
            return Err(Error::format(format!("{name}: {missing} is missing: it must be given")));
        }
        if fields.keys().any(|field| !needed.contains(&field.as_str()) && !optional.contains(&field.as_str())) {
            let known = [needed, optional].concat().join(", ");
            return Err(Error::format(format!("{name} has a field that is not one of {known}: leave it out")));
        }
        Ok(Self { fields, name })
    }

    /// Return the value of a field, if it has one.
    pub(crate) fn get(&self, field: &str) -> Option<&'a Value> {
        self.fields.get(field)
    }

    /// Return a text that has this form.
    pub(crate) fn text(&self, field: &str, form: &Form) -> Result<&'a str> {
        let text = self.get(field).and_then(Value::as_str).filter(|text| (form.fits)(text));
        text.ok_or_else(|| self.wrong(field, &format!("text of the form {}", form.says)))
    }

    /// Return a text that is one of these.
    pub(crate) fn one_of(&self, field: &str, known: &[&str]) -> Result<&'a str> {
        let text = self.get(field).and_then(Value::as_str).filter(|text| known.contains(text));
        text.ok_or_else(|| self.wrong(field, &format!("one of {}", known.join(", "))))
    }

    /// Return a list of at most `most` texts that have this form.
    pub(crate) fn texts(&self, field: &str, most: usize, form: &Form) -> Result<Vec<String>> {
        let fits = |text: &Value| text.as_str().filter(|text| (form.fits)(text)).map(str::to_owned);
        let texts: Option<_> = self.list(field, most)?.iter().map(fits).collect();
        texts.ok_or_else(|| self.wrong(field, &format!("a list of texts of the form {}", form.says)))
    }

    /// Return bytes that are written in so many lower-case hexadecimal digits.
    pub(crate) fn bytes<const LENGTH: usize>(&self, field: &str) -> Result<[u8; LENGTH]> {
        let bytes = self.get(field).and_then(Value::as_str).and_then(unhex_exact);
        bytes.ok_or_else(|| self.wrong(field, &format!("text of the form [0-9a-f]{{{}}}", 2 * LENGTH)))
    }

    /// Return a finite number in least..=most.
    pub(crate) fn number(&self, field: &str, least: f64, most: f64) -> Result<f64> {
        let number = self.get(field).and_then(Value::as_f64).filter(|number| (least..=most).contains(number));
        let [least, most] = [least, most].map(number_text);
        number.ok_or_else(|| self.wrong(field, &format!("a number in {least}..{most}")))
    }

    /// Return a whole number in least..=most, at most 2**53 - 1; 1.0 is the whole number 1.
    pub(crate) fn whole(&self, field: &str, least: u64, most: u64) -> Result<u64> {
        let number = self.get(field).and_then(whole_of).filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| self.wrong(field, &format!("a whole number in {least}..{most}")))
    }

    /// Return true or false.
    pub(crate) fn boolean(&self, field: &str) -> Result<bool> {
        self.get(field).and_then(Value::as_bool).ok_or_else(|| self.wrong(field, "true or false"))
    }

    /// Return a list of at most `most` elements.
    pub(crate) fn list(&self, field: &str, most: usize) -> Result<&'a [Value]> {
        let list = self.get(field).and_then(Value::as_array).filter(|list| list.len() <= most);
        list.map(Vec::as_slice).ok_or_else(|| self.wrong(field, &format!("a list of at most {most}")))
    }

    /// Return a time in milliseconds since 1970.
    pub(crate) fn time(&self, field: &str) -> Result<i64> {
        let time = self.get(field).and_then(Value::as_str).and_then(parse_time);
        time.ok_or_else(|| self.wrong(field, "a time, as in 2026-12-01T00:00:00Z"))
    }

    /// Return the error of a field that must be something else.
    pub(crate) fn wrong(&self, field: &str, must: &str) -> Error {
        Error::format(format!("{}: {field} must be {must}", self.name))
    }
}

/// Return a number that is not negative and has no fraction.
pub(crate) fn whole_of(value: &Value) -> Option<u64> {
    let number =
        value.as_f64().filter(|number| number.fract() == 0.0 && (0.0..=MOST_INTEGER as f64).contains(number))?;
    Some(number as u64)
}
