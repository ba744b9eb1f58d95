//! The sections of a campaign file on dictionary, shuffling, discovery and the mechanism.

use serde_json::{Map, Value};

use super::campaign::NAME;
use crate::errors::{Error, Result};
use crate::formats::fields::{Fields, Form};
use crate::maths::thresholds::{LARGEST_EPSILON, LEAST_EPSILON};

/// The least and the greatest epsilon.
pub(crate) const EPSILON: (f64, f64) = (LEAST_EPSILON, LARGEST_EPSILON);
/// The open interval (0, 1), as doubles.
pub(crate) const INSIDE: (f64, f64) = (f64::from_bits(1), 1.0 - f64::EPSILON / 2.0);
const MOST_ITEMS: u64 = 1 << 24;
const MOST_VALUE_BYTES: u64 = 4096;
const FILE_NAME: Form = Form::new("FILE, without a folder", |text| {
    let fits = |character: char| !matches!(character, '/' | '\\' | ':' | '\0'..='\x1f');
    !text.is_empty() && !text.starts_with('.') && text.chars().count() <= 128 && text.chars().all(fits)
});
const MECHANISM: Form = Form::new("[a-z0-9-]{1,64}", |text| {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=64).contains(&text.len()) && text.bytes().all(fits)
});

/// The dictionary that belongs to a campaign.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    pub(crate) items: u64,
    pub(crate) digest: [u8; 32],
}

impl Listed {
    /// Read the section of a campaign file.
    ///
    /// # Errors
    /// `Format`: a field is missing or out of range, or the path is no plain file name.
    pub(crate) fn parse(data: &Value) -> Result<Self> {
        let name = format!("{NAME}: dictionary");
        let fields = Fields::of(data, &name, &["path", "items", "digest"], &[])?;
        fields.text("path", &FILE_NAME)?;
        Ok(Self { items: fields.whole("items", 1, MOST_ITEMS)?, digest: fields.bytes("digest")? })
    }
}

/// What the shuffler does.
#[derive(Clone, Debug)]
pub(crate) struct Shuffle {
    pub(crate) cap: u64,
    pub(crate) minimum_batch: u64,
    pub(crate) delta: f64,
}

impl Shuffle {
    /// Read the section of a campaign file.
    ///
    /// # Errors
    /// `Format`: a field is missing or out of range.
    pub(crate) fn parse(data: &Value) -> Result<Self> {
        let name = format!("{NAME}: shuffle");
        let fields = Fields::of(data, &name, &["cap", "minimum_batch", "delta"], &[])?;
        Ok(Self {
            cap: fields.whole("cap", 1, 1000)?,
            minimum_batch: fields.whole("minimum_batch", 1, 1_000_000_000_000)?,
            delta: fields.number("delta", INSIDE.0, INSIDE.1)?,
        })
    }
}

/// Terms of the discovery of values that the dictionary lacks.
#[derive(Clone)]
pub(crate) struct DiscoveryTerms {
    /// The keep rule's (epsilon, delta), as the file states them.
    pub(crate) epsilon: f64,
    pub(crate) delta: f64,
    /// 2 if the relation is add-remove: replacing a client costs twice as much as adding one. Else 1.
    pub(crate) sides: u64,
    pub(crate) max_value_bytes: usize,
    /// Whether an evaluator makes the names of values, instead of a hash key.
    pub(crate) is_oblivious: bool,
    /// The hash key; none in an oblivious campaign, and in a redacted file, with which no client can report.
    pub(crate) hash_key: Option<[u8; 32]>,
}

impl DiscoveryTerms {
    /// Read the section of a campaign file.
    ///
    /// # Errors
    /// `Format`: a field is missing or out of range, or the file does not have the one hash key or commitment.
    pub(crate) fn parse(data: &Value) -> Result<Self> {
        let name = format!("{NAME}: discovery");
        let needed = ["epsilon", "delta", "relation", "rule", "max_value_bytes", "hash", "counts"];
        let fields = Fields::of(data, &name, &needed, &["hash_key", "hash_key_commitment"])?;
        let bytes = |field| fields.get(field).map(|_| fields.bytes::<32>(field)).transpose();
        let (hash_key, commitment) = (bytes("hash_key")?, bytes("hash_key_commitment")?);
        let is_oblivious = fields.one_of("hash", &["keyed", "oblivious"])? == "oblivious";
        let given = usize::from(hash_key.is_some()) + usize::from(commitment.is_some());
        if given != usize::from(!is_oblivious) {
            return Err(Error::format(format!(
                "{name}: exactly one of hash_key and hash_key_commitment must be there, none if hash is oblivious"
            )));
        }
        let rules: &[&str] = if fields.boolean("counts")? { &["optimal"] } else { &["optimal", "laplace"] };
        fields.one_of("rule", rules)?;
        let is_doubled = fields.one_of("relation", &["replace-one", "add-remove"])? == "add-remove";
        Ok(Self {
            epsilon: fields.number("epsilon", EPSILON.0, EPSILON.1)?,
            delta: fields.number("delta", INSIDE.0, INSIDE.1)?,
            sides: if is_doubled { 2 } else { 1 },
            max_value_bytes: fields.whole("max_value_bytes", 1, MOST_VALUE_BYTES)? as usize,
            is_oblivious,
            hash_key,
        })
    }
}

/// A mechanism with complete parameters.
#[derive(Clone, Debug)]
pub(crate) struct MechanismTerms {
    pub(crate) name: String,
    pub(crate) epsilon: f64,
    pub(crate) parameters: Map<String, Value>,
}

impl MechanismTerms {
    /// Read the section of a campaign file; the mechanism itself checks its name and parameters.
    ///
    /// # Errors
    /// `Format`: a field is missing or out of range.
    pub(crate) fn parse(data: &Value) -> Result<Self> {
        let name = format!("{NAME}: mechanism");
        let fields = Fields::of(data, &name, &["name", "epsilon", "parameters"], &[])?;
        let parameters = fields.get("parameters").and_then(Value::as_object);
        Ok(Self {
            parameters: parameters.ok_or_else(|| fields.wrong("parameters", "an object"))?.clone(),
            name: fields.text("name", &MECHANISM)?.to_owned(),
            epsilon: fields.number("epsilon", EPSILON.0, EPSILON.1)?,
        })
    }
}
