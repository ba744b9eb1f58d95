//! What an app reports.

use std::collections::HashMap;

use hushcount::Value;

/// The text of a value, of an axis or of a coordinate: a string. A string that is no Unicode text, such as half of a surrogate
/// pair, counts as "other".
// Only Kotlin has such strings, and UniFFI would throw. uniffi.toml turns them into a text that cannot be an item,
// because no text of a person may stop an app.
#[derive(PartialEq, Eq, Hash)]
pub struct ValueText(String);

uniffi::custom_newtype!(ValueText, String);

impl<'a> From<&'a ValueText> for Value<'a> {
    fn from(text: &'a ValueText) -> Self {
        Self::Text(&text.0)
    }
}

/// Return coordinates as the crate takes them.
pub(crate) fn coordinates(by: &HashMap<ValueText, ValueText>) -> Vec<(&str, Value<'_>)> {
    by.iter().map(|(axis, text)| (axis.0.as_str(), text.into())).collect()
}
