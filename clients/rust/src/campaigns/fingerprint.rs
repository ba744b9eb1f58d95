//! Two hashes of a campaign file: of everything that the file fixes, and of everything that a publisher may not change.

use serde_json::{Map, Value, json};

use crate::formats::bytes::{hash, hex};
use crate::formats::canonical_json::canonical_json;

/// What a publisher may change from one epoch to the next, beside `epoch`, `previous` and the dictionary.
///
/// The delegation names the evaluator's keys that a publisher may use. A publisher may add days to the keys of passes,
/// and list more windows.
const CHANGING: [(&str, &str); 6] = [
    ("mechanism", "parameters"),
    ("discovery", "hash_key_commitment"),
    ("passes", "days"),
    ("passes", "first"),
    ("windows", "starts"),
    ("keys", "evaluator"),
];

/// Return a checked file without the dictionary's path, and with the commitment in place of the hash key.
pub(crate) fn fixed(file: &Value, hash_key: Option<&[u8; 32]>) -> Value {
    let mut fixed = file.clone();
    remove(&mut fixed, "dictionary", "path");
    remove(&mut fixed, "discovery", "hash_key");
    if let (Some(key), Some(discovery)) = (hash_key, section(&mut fixed, "discovery")) {
        discovery.insert("hash_key_commitment".to_owned(), hex(&hash::<32>(&[key], "hash key")).into());
    }
    fixed
}

/// Return the fingerprint of what a file fixes.
pub(crate) fn fingerprint_of(fixed: &Value) -> [u8; 32] {
    hash(&[&canonical_json(fixed)], "")
}

/// Return the hash of what a file fixes and a publisher may not change from one epoch to the next.
pub(crate) fn terms_of(mut fixed: Value) -> [u8; 32] {
    for (section, field) in CHANGING {
        remove(&mut fixed, section, field);
    }
    if let Value::Object(fields) = &mut fixed {
        fields.retain(|name, _| name != "epoch" && name != "previous");
        fields.entry("dictionary").and_modify(|listed| *listed = json!({}));
    }
    hash(&[&canonical_json(&fixed)], "campaign terms")
}

/// Remove a field of a section, if the file has this section.
fn remove(file: &mut Value, name: &str, field: &str) {
    section(file, name).map(|fields| fields.remove(field));
}

fn section<'a>(file: &'a mut Value, name: &str) -> Option<&'a mut Map<String, Value>> {
    file.get_mut(name).and_then(Value::as_object_mut)
}
