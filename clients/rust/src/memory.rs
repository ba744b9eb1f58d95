//! A client's memory in a store: a value gets the same answer throughout an epoch, so that repetition reveals nothing
//! more.
//!
//! Anybody who reads the store can test guessed values with the memory, which is as private as the app's other data.

use serde_json::Value;

use crate::budget::require_opted_in;
use crate::campaigns::campaign::Campaign;
use crate::errors::{Error, Result};
use crate::formats::bytes::{Purpose, hash, hash_for, hex, unhex};
use crate::randomness::fresh;
use crate::store::{Records, Store};

const PREFIX: &str = "answer/";
/// So many that a client with ten values and an epoch each day needs 27 years; none is deleted before, because an operator
/// may go back to an epoch.
const MOST_ANSWERS: u64 = 100_000;
/// A kept answer begins with a salt, and the salted name of its item.
const SALT_BYTES: usize = 16;
const NAME_BYTES: usize = 16;

/// Return whether the memory has an answer of this epoch.
///
/// # Errors
/// `Store`, `Format`: the store cannot be read, or has no room for a first answer.
pub(crate) fn has_answer(store: &Store, campaign: &Campaign) -> Result<bool> {
    store.change(|records| {
        let has = records.get(&key_of(campaign, 0))?.is_some();
        if !has {
            require_room(records)?;
        }
        Ok(has)
    })
}

fn require_room(records: &Records<'_>) -> Result<()> {
    if records.count(PREFIX)? < MOST_ANSWERS {
        return Ok(());
    }
    let cure = "begin a new store, and with it a new budget";
    Err(Error::store(format!("the memory has {MOST_ANSWERS} answers, its limit: {cure}")))
}

/// Return the remembered answer to an item. For a new item, draw and remember an answer; if the memory is full, return
/// the last answer that was stored. An answer is returned after it is stored durably.
///
/// If a second or later answer cannot be stored, the memory counts as full, because an error only for new items would
/// reveal that an item is new.
///
/// # Errors
/// `Store`, `Format`, `OptedOut`: the store cannot be read, or it has no answer of this epoch and cannot keep one.
pub(crate) fn remembered(
    store: &Store,
    campaign: &Campaign,
    item: u64,
    draw: impl FnOnce() -> Vec<u8>,
) -> Result<Vec<u8>> {
    let kept = store.change(|records| match Found::of(records, campaign, item)? {
        Found { free: Some(key), .. } => keep(records, &key, item, draw),
        Found { last, .. } => last.ok_or_else(damaged),
    });
    kept.or_else(|error| store.change(|records| Found::of(records, campaign, item))?.last.ok_or(error))
}

/// Delete all answers.
///
/// # Errors
/// `Store`: the store cannot be written.
pub(crate) fn clear(store: &Store) -> Result<()> {
    store.change(|records| records.remove(PREFIX))
}

/// What a memory has for an item.
struct Found {
    /// The item's own answer, or else the last answer of the epoch; none in an epoch without answers.
    last: Option<Vec<u8>>,
    /// The record for the answer to a new item; none if the item has an answer, or clients remember no more values.
    free: Option<String>,
}

impl Found {
    fn of(records: &Records<'_>, campaign: &Campaign, item: u64) -> Result<Self> {
        let mut last = None;
        for place in 0..campaign.memory_values {
            let key = key_of(campaign, place);
            let Some(record) = records.get(&key)? else { return Ok(Self { last, free: Some(key) }) };
            let kept = record.as_str().and_then(unhex).ok_or_else(damaged)?;
            let (salt, named) = kept.split_at_checked(SALT_BYTES).ok_or_else(damaged)?;
            let (name, answer) = named.split_at_checked(NAME_BYTES).ok_or_else(damaged)?;
            last = Some(answer.to_vec());
            if name == item_name(item, salt) {
                break;
            }
        }
        Ok(Self { last, free: None })
    }
}

/// Draw an answer, and store it in a free record.
fn keep(records: &Records<'_>, key: &str, item: u64, draw: impl FnOnce() -> Vec<u8>) -> Result<Vec<u8>> {
    // The opt-out deletes the answers, and no answer may be stored afterwards.
    require_opted_in(records)?;
    require_room(records)?;
    // The salt never leaves the device, so no test vector states it.
    let (salt, answer) = (fresh::<SALT_BYTES>()?, draw());
    let kept = hex(&[&salt[..], &item_name(item, &salt), &answer].concat());
    records.put(key, &Value::from(kept))?;
    Ok(answer)
}

fn damaged() -> Error {
    Error::format("an answer in the memory is damaged: restore the store")
}

/// Return the record of a place for an answer, unique to this campaign file.
fn key_of(campaign: &Campaign, place: u64) -> String {
    let key: [u8; 32] = hash(&[&campaign.fingerprint, &place.to_le_bytes()], "reports");
    format!("{PREFIX}{}", hex(&key))
}

/// Return the salted name of an answer's item, so that the same item has different names in different memories.
fn item_name(item: u64, salt: &[u8]) -> [u8; NAME_BYTES] {
    hash_for(&[&item.to_le_bytes()], Purpose { salt, ..Purpose::default() })
}
