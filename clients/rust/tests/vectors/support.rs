//! Reads files of vectors.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::campaigns::campaign::Campaign;
use crate::errors::Result;
use crate::formats::bytes::unhex;
use crate::randomness::Randomness;

/// Return a file of vectors; all its integers are exact.
pub(crate) fn vectors(name: &str) -> Value {
    let shipped = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/v1");
    let folder = std::env::var_os("HUSHCOUNT_VECTORS").map_or_else(shipped, PathBuf::from);
    let path = folder.join(format!("{name}.json"));
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// What stands in `vectors_of_any_text` for a lone surrogate.
pub(crate) const LONE: &str = "(a lone surrogate)";

/// Return a file of vectors whose texts have lone surrogates, which neither JSON's reader nor a `&str` takes.
pub(crate) fn vectors_of_any_text(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/v1").join(format!("{name}.json"));
    any_text(&std::fs::read_to_string(path).unwrap())
}

/// Return the data of JSON whose texts may have lone surrogates.
pub(crate) fn any_text(file: &str) -> Value {
    let (mut made, mut rest) = (String::new(), file);
    while let Some(at) = rest.find("\\u") {
        let unit_at = |at: usize| rest.get(at + 2..at + 6).and_then(|unit| u16::from_str_radix(unit, 16).ok());
        let is_low = |unit| (0xdc00..0xe000).contains(&unit);
        let length = match unit_at(at).unwrap() {
            0xd800..0xdc00 if rest[at + 6..].starts_with("\\u") && unit_at(at + 6).is_some_and(is_low) => 12,
            0xd800..0xe000 => 0,
            _ => 6,
        };
        made += &rest[..at + length];
        made += if length == 0 { LONE } else { "" };
        rest = &rest[at + length.max(6)..];
    }
    serde_json::from_str(&(made + rest)).unwrap()
}

/// Return the entries that a client must make, or those that it must refuse.
pub(crate) fn entries(name: &str, side: &str) -> Vec<Value> {
    let entries = vectors(name)[side].as_array().unwrap().clone();
    assert!(!entries.is_empty(), "{name} has nothing to {side}");
    entries
}

/// Return the text of a field.
pub(crate) fn text<'a>(entry: &'a Value, field: &str) -> &'a str {
    entry[field].as_str().unwrap_or_else(|| panic!("{field} of {entry}"))
}

/// Return the bytes of a field.
pub(crate) fn bytes(entry: &Value, field: &str) -> Vec<u8> {
    unhex(text(entry, field)).unwrap()
}

/// Return so many bytes of a field.
pub(crate) fn array<const LENGTH: usize>(entry: &Value, field: &str) -> [u8; LENGTH] {
    bytes(entry, field).try_into().unwrap()
}

/// Require that all refusals of one reason say one thing: each message has the reason's part in `said`.
pub(crate) fn require_refused<T>(made: Result<T>, entry: &Value, said: &[(&str, &[&str])]) {
    let reason = text(entry, "reason");
    let Err(error) = made else { panic!("{entry} must be refused: {reason}") };
    let (_, parts) = said.iter().find(|(name, _)| *name == reason).unwrap_or_else(|| panic!("{reason}: {error}"));
    assert!(parts.iter().any(|part| error.to_string().contains(part)), "{entry} was refused with: {error}");
}

/// Randomness that a vector states; a test ends if more is drawn than stated.
pub(crate) struct Given {
    pub(crate) words: VecDeque<u64>,
    pub(crate) secrets: VecDeque<[u8; 32]>,
}

impl Given {
    /// The words of a field, hexadecimal digits each.
    pub(crate) fn words(entry: &Value, field: &str) -> Self {
        let words = entry[field].as_array().into_iter().flatten();
        let words = words.map(|word| u64::from_str_radix(word.as_str().unwrap(), 16).unwrap()).collect();
        Self { words, secrets: VecDeque::new() }
    }

    /// Require that all that is stated was drawn.
    pub(crate) fn require_used(&self) {
        assert!(self.words.is_empty() && self.secrets.is_empty(), "not all words were drawn");
    }
}

impl Randomness for Given {
    fn word(&mut self) -> u64 {
        self.words.pop_front().expect("a word more than stated was drawn")
    }

    fn secret(&mut self) -> [u8; 32] {
        self.secrets.pop_front().expect("a secret more than stated was drawn")
    }
}

/// Return the campaign of the accepted file of this name.
pub(crate) fn campaign(name: &str) -> Campaign {
    let accepted = entries("campaigns", "accept");
    let entry = accepted.iter().find(|entry| entry["name"] == name).unwrap_or_else(|| panic!("no campaign {name}"));
    Campaign::parse(&serde_json::to_vec(&entry["file"]).unwrap(), &[]).unwrap()
}
