//! JSON and numbers to canonical JSON.

use serde_json::{Number, Value};

use super::support::{array, bytes, entries, require_refused, text};
use crate::errors::{Error, Result};
use crate::formats::canonical_json::canonical_json;
use crate::formats::json::parse;

const SAID: &[(&str, &[&str])] = &[
    ("integer_too_large", &["has an integer above 2**53 - 1"]),
    ("not_finite", &["not finite"]),
    ("lone_surrogate", &["has a lone surrogate"]),
    ("duplicate_key", &["has a key twice"]),
    ("too_deep", &["is nested deeper than 32 levels"]),
    ("not_utf8", &["is not UTF-8"]),
    ("not_json", &["is not JSON"]),
];

fn canonical(entry: &Value) -> Result<String> {
    let data = if entry.get("double").is_some() {
        // No data hold a number that is not finite.
        let number = Number::from_f64(f64::from_be_bytes(array(entry, "double")));
        number.map(Value::Number).ok_or_else(|| Error::format("the number is not finite"))?
    } else {
        let times = entry["times"].as_u64().unwrap_or(1) as usize;
        parse(&bytes(entry, "bytes").repeat(times), 1 << 20, "the file")?
    };
    Ok(String::from_utf8(canonical_json(&data)).unwrap())
}

#[test]
fn each_value_has_one_text() {
    for entry in entries("canonical_json", "accept") {
        assert_eq!(canonical(&entry).unwrap(), text(&entry, "canonical"), "{entry}");
    }
}

#[test]
fn what_is_no_json_of_ours_is_refused() {
    for entry in entries("canonical_json", "refuse") {
        require_refused(canonical(&entry), &entry, SAID);
    }
}

#[test]
fn longer_bytes_are_refused_before_they_are_read() {
    assert!(parse(b"{}", 2, "the file").is_ok());
    let refused = parse(b"{} ", 2, "the file").unwrap_err();
    assert!(refused.to_string().contains("has 3 bytes, must have at most 2"), "{refused}");
}
