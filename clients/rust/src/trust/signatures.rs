//! Signatures (Ed25519) of the operator's files, checked with public keys that the app ships.
//!
//! They are checked as strictly as in libsodium: a key without its canonical encoding, a key or a point R of small order,
//! and a scalar S that is not below the group's order are refused, and no equation is multiplied by the cofactor.

use ed25519_dalek::VerifyingKey;
use serde_json::Value;

use crate::errors::{Error, Kind, Result};
use crate::formats::bytes::{hash, hex};
use crate::formats::fields::Fields;

/// A signer's public key, and its time of validity, in milliseconds since 1970.
#[derive(Clone, Debug)]
pub(crate) struct VerifyKey {
    pub(crate) id: [u8; 8],
    pub(crate) key: [u8; 32],
    pub(crate) not_before: i64,
    pub(crate) not_after: i64,
}

impl VerifyKey {
    /// Read a public key from a file's data.
    ///
    /// # Errors
    /// `Format`: the error names the file and the field.
    pub(crate) fn of(data: &Value, name: &str) -> Result<Self> {
        let fields = Fields::of(data, name, &["id", "key", "not_before", "not_after"], &[])?;
        let (id, key) = (fields.bytes("id")?, fields.bytes("key")?);
        let (not_before, not_after) = (fields.time("not_before")?, fields.time("not_after")?);
        let named: [u8; 8] = hash(&[&key], "verify key");
        if id != named {
            return Err(Error::format(format!("{name}: id is {}, but the key has id {}", hex(&id), hex(&named))));
        }
        if not_before >= not_after {
            return Err(Error::format(format!("{name}: not_after must be later than not_before")));
        }
        Ok(Self { id, key, not_before, not_after })
    }
}

/// A signature, and the id of the key that made it.
#[derive(Clone, Debug)]
pub(crate) struct Signature {
    pub(crate) key_id: [u8; 8],
    pub(crate) signature: [u8; 64],
}

impl Signature {
    /// Read a signature from a file's data.
    ///
    /// # Errors
    /// `Format`: the error names the file and the field.
    pub(crate) fn of(data: &Value, name: &str) -> Result<Self> {
        Self::in_fields(&Fields::of(data, name, &["key_id", "signature"], &[])?)
    }

    /// Return the signature in the fields of a file.
    ///
    /// # Errors
    /// `Format`: the error names the file and the field.
    pub(crate) fn in_fields(fields: &Fields<'_>) -> Result<Self> {
        Ok(Self { key_id: fields.bytes("key_id")?, signature: fields.bytes("signature")? })
    }
}

/// Return the bytes to sign: the payload after the name of its purpose, so that no signature is valid for two purposes.
pub(crate) fn signed_bytes(payload: &[u8], purpose: &str) -> Vec<u8> {
    [b"hushcount signature 1\0", purpose.as_bytes(), b"\0", payload].concat()
}

/// Check a signature of exactly these bytes by one of the trusted keys, and return the key that made it.
///
/// `purpose` is `campaign`, `delegation` or `restart`. The check does not show when the signature was made, or whether
/// something newer was signed since.
///
/// # Errors
/// `Signature`: the signature is by another key, for another purpose, or of other bytes.
pub(crate) fn verify<'a>(
    keys: &'a [VerifyKey],
    payload: &[u8],
    purpose: &str,
    signature: &Signature,
) -> Result<&'a VerifyKey> {
    let Some(key) = keys.iter().find(|key| key.id == signature.key_id) else {
        let trusted = keys.iter().map(|key| hex(&key.id)).collect::<Vec<_>>().join(", ");
        let trusted = if trusted.is_empty() { "none" } else { &trusted };
        let message =
            format!("the {purpose} was signed with key {}, but trusted are {trusted}", hex(&signature.key_id));
        return Err(Error::new(Kind::Signature, message));
    };
    if !is_signature(&key.key, &signed_bytes(payload, purpose), &signature.signature) {
        let id = hex(&key.id);
        let message =
            format!("the signature of the {purpose} by key {id} is wrong: it was altered, or signed as something else");
        return Err(Error::new(Kind::Signature, message));
    }
    Ok(key)
}

/// Return whether this key signed exactly this message; false also for keys and signatures that are not strict.
pub(crate) fn is_signature(key: &[u8; 32], message: &[u8], signature: &[u8; 64]) -> bool {
    let Ok(parsed) = VerifyingKey::from_bytes(key) else { return false };
    // The library reads other encodings of a key, so the canonical one is compared. It compares R by its encoding, and
    // refuses the other unusual keys and signatures itself.
    let is_canonical = parsed.to_edwards().compress().as_bytes() == key;
    is_canonical && parsed.verify_strict(message, &signature.into()).is_ok()
}
