//! Client tokens: what a client shows to a collector or an evaluator in one window (docs/adr/0051).
//!
//! A token is derived from a secret of the campaign on this device, so no two windows and no two collectors see equal
//! tokens of one client, and nobody without the secret can link them.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use crate::errors::{Error, Result};
use crate::formats::bytes::{hex, unhex};
use crate::passes::slots::Slot;
use crate::randomness::fresh;
use crate::store::Records;

/// The longest name that a message repeats: that of an id.
const SHOWN_BYTES: usize = 64;

/// Return the text of a slot's token, for the header Client-Token; the slot begins with the window of the first attempt.
pub(crate) fn client_token(secret: &[u8; 32], slot: &Slot) -> String {
    base64_url(&slot.nonce(secret))
}

/// Return the secret of this client's tokens for a campaign. The first call draws it.
///
/// # Errors
/// `Store`: there is no randomness. `Format`: the record is damaged. Or as the records.
pub(crate) fn secret_of(records: &Records<'_>, campaign: &str) -> Result<[u8; 32]> {
    let name = key_of(campaign);
    if let Some(kept) = records.get(&name)? {
        let secret = kept.as_str().and_then(unhex).and_then(|bytes| bytes.try_into().ok());
        return secret.ok_or_else(|| Error::format(format!("record {name} is damaged: restore the store")));
    }
    let secret = fresh::<32>()?;
    records.put(&name, &Value::from(hex(&secret)))?;
    Ok(secret)
}

/// Return the beginning of the names of all records that are deleted together with a campaign's secret.
pub(crate) fn key_of(campaign: &str) -> String {
    format!("token/{campaign}")
}

/// Return the name of the collector at a site: the given one, or that of the campaign's only collector.
///
/// # Errors
/// `Untrusted`: the campaign has several collectors and no name is given, or it lacks the given one.
pub(crate) fn collector_name<'a>(campaign: &str, collectors: &'a [String], given: Option<&str>) -> Result<&'a str> {
    let named = match (given, collectors) {
        (None, [only]) => Some(only),
        (None, _) => None,
        (Some(name), _) => collectors.iter().find(|collector| *collector == name),
    };
    let said = match given {
        None => "missing".to_owned(),
        Some(name) if name.len() <= SHOWN_BYTES => format!("{name:?}"),
        Some(_) => "too long".to_owned(),
    };
    let all = collectors.join(", ");
    named.map(String::as_str).ok_or_else(|| {
        Error::untrusted(format!("site name is {said}, must be one of the collectors of campaign {campaign}, {all}"))
    })
}

/// Return bytes in base64url without padding.
pub(crate) fn base64_url(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}
