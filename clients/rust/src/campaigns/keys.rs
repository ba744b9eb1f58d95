//! The section of a campaign file on keys.

use serde_json::Value;

use super::campaign::NAME;
use crate::errors::{Error, Result};
use crate::formats::bytes::{hash, hex};
use crate::formats::fields::Fields;

/// A party's public key, and when clients may seal to it, in milliseconds since 1970.
#[derive(Clone, Debug)]
pub(crate) struct PublicKey {
    pub(crate) key: [u8; 32],
    pub(crate) not_before: i64,
    pub(crate) not_after: i64,
}

/// The keys that clients seal to, and the evaluator's key of an oblivious campaign.
#[derive(Clone, Debug)]
pub(crate) struct PublicKeys {
    pub(crate) analyzer: PublicKey,
    pub(crate) aux_server: Option<PublicKey>,
    pub(crate) evaluator: Option<PublicKey>,
}

impl PublicKeys {
    /// Read the section of a campaign file.
    ///
    /// # Errors
    /// `Format`: a key or its id is wrong, a role has too few or too many keys, or one key is of both roles.
    pub(crate) fn parse(data: &Value, has_discovery: bool, is_oblivious: bool) -> Result<Self> {
        let name = format!("{NAME}: keys");
        let fields = Fields::of(data, &name, &["analyzer", "aux_server", "evaluator"], &[])?;
        let key_of = |role, person| {
            let key = |key| PublicKey::parse(key, &format!("{name}: {role}"), person);
            fields.list(role, 1)?.first().map(key).transpose()
        };
        let analyzer = key_of("analyzer", "")?;
        let (aux_server, evaluator) = (key_of("aux_server", "")?, key_of("evaluator", "evaluator key")?);
        let is_complete = (aux_server.is_some() || !has_discovery) && evaluator.is_some() == is_oblivious;
        let Some(analyzer) = analyzer.filter(|_| is_complete) else {
            return Err(Error::format(format!(
                "{name}: each role must have one key, the auxiliary server only with discovery, \
                 the evaluator if hash is oblivious"
            )));
        };
        if aux_server.as_ref().is_some_and(|other| other.key == analyzer.key) {
            let both = "one key is of both roles, so one party could open both layers";
            return Err(Error::format(format!("{name}: {both}")));
        }
        Ok(Self { analyzer, aux_server, evaluator })
    }
}

impl PublicKey {
    /// Read a key; `person` is that of the hash that makes its id.
    fn parse(data: &Value, name: &str, person: &str) -> Result<Self> {
        let fields = Fields::of(data, name, &["id", "key", "not_before", "not_after"], &[])?;
        let key: [u8; 32] = fields.bytes("key")?;
        let (id, named) = (hex(&fields.bytes::<8>("id")?), hex(&hash::<8>(&[&key], person)));
        if id != named {
            return Err(Error::format(format!("{name}: id is {id}, but the key has id {named}")));
        }
        let [not_before, not_after] = ["not_before", "not_after"].map(|field| time_of(&fields, field));
        let made = Self { key, not_before: not_before?, not_after: not_after? };
        if made.not_before >= made.not_after {
            return Err(Error::format(format!("{name}: not_after must be later than not_before")));
        }
        Ok(made)
    }
}

/// Return a time that is spelled as Python writes it: UTC as Z, and a fraction, of 6 digits, only if it is not 0.
///
/// Only this form is accepted, because the fingerprint covers the text.
fn time_of(fields: &Fields<'_>, field: &str) -> Result<i64> {
    let time = fields.time(field)?;
    let rest = fields.get(field).and_then(Value::as_str).and_then(|text| text.get(19..)).unwrap_or_default();
    let (fraction, zone) = rest.split_at(rest.find(['Z', '+', '-']).unwrap_or_default());
    let is_fraction = fraction.is_empty() || (fraction.len() == 7 && fraction != ".000000");
    if is_fraction && zone != "+00:00" && zone != "-00:00" {
        return Ok(time);
    }
    Err(fields.wrong(field, "a time with UTC as Z, and a fraction of 6 digits only if it is not 0"))
}
