//! JSON of another party: first its length is checked, then its depth, then its content.

use serde_json::Value;

use crate::errors::{Error, Result};

const DEEPEST: usize = 32;
/// The greatest integer that a double holds exactly together with all below it.
pub(crate) const MOST_INTEGER: u64 = (1 << 53) - 1;

/// Return the data of JSON text in bytes.
///
/// `most` is the largest number of bytes, and `name` is the name of the file.
///
/// # Errors
/// `Format`: the text is not JSON (RFC 8259) in UTF-8, nests deeper than 32 levels, or has a key twice, an integer
/// beyond 2**53 - 1, a number that is not finite as a double, or a lone surrogate.
pub(crate) fn parse(bytes: &[u8], most: usize, name: &str) -> Result<Value> {
    if bytes.len() > most {
        return Err(Error::format(format!("{name} has {} bytes, must have at most {most}", bytes.len())));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| Error::format(format!("{name} is not UTF-8")))?;
    let colons = scan(bytes, name)?;
    // The library's own message is left out, because it may repeat the file's contents.
    let data: Value = serde_json::from_str(text).map_err(|_| Error::format(format!("{name} is not JSON")))?;
    // In the text each key is followed by a colon. Of two equal keys the parser keeps one.
    if colons != keys_in(&data) {
        return Err(Error::format(format!("{name} has a key twice in an object")));
    }
    Ok(data)
}

/// Check depth, numbers and strings; return the number of colons outside strings. The text need not be JSON.
fn scan(bytes: &[u8], name: &str) -> Result<usize> {
    let (mut depth, mut colons, mut at) = (0usize, 0, 0);
    while let Some(&byte) = bytes.get(at) {
        let rest = &bytes[at..];
        match byte {
            b'"' => {
                let string = string_of(&rest[1..]);
                require_paired(string, name)?;
                at += string.len() + 1;
            }
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            b':' => colons += 1,
            b'-' | b'0'..=b'9' => {
                let length = rest.iter().take_while(|byte| b"+-.eE0123456789".contains(byte)).count();
                require_exact(&rest[..length], name)?;
                at += length - 1;
            }
            _ => {}
        }
        if depth > DEEPEST {
            return Err(Error::format(format!("{name} is nested deeper than {DEEPEST} levels")));
        }
        at += 1;
    }
    Ok(colons)
}

/// Return the bytes before the quotation mark that ends a string, or all if there is none.
fn string_of(bytes: &[u8]) -> &[u8] {
    let mut is_escaped = false;
    let ends = |&byte: &u8| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    };
    &bytes[..bytes.iter().position(ends).unwrap_or(bytes.len())]
}

/// Refuse an escaped half of a surrogate pair without the other half. UTF-8 has no surrogates.
fn require_paired(mut string: &[u8], name: &str) -> Result<()> {
    let (mut is_high, mut is_paired) = (false, true);
    while !string.is_empty() {
        let unit = string.strip_prefix(b"\\u").and_then(|digits| std::str::from_utf8(digits.get(..4)?).ok());
        let unit = unit.and_then(|digits| u16::from_str_radix(digits, 16).ok());
        is_paired &= is_high == unit.is_some_and(|unit| (0xdc00..0xe000).contains(&unit));
        is_high = unit.is_some_and(|unit| (0xd800..0xdc00).contains(&unit));
        let length = if unit.is_some() { 6 } else { 1 + usize::from(string[0] == b'\\') };
        string = string.get(length..).unwrap_or_default();
    }
    if is_paired && !is_high { Ok(()) } else { Err(Error::format(format!("{name} has a lone surrogate"))) }
}

fn require_exact(number: &[u8], name: &str) -> Result<()> {
    let text = std::str::from_utf8(number).unwrap_or_default();
    if text.parse().is_ok_and(f64::is_infinite) {
        return Err(Error::format(format!("{name} has a number that is not finite as a double")));
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_whole && digits.parse::<u64>().ok().is_none_or(|value| value > MOST_INTEGER) {
        return Err(Error::format(format!("{name} has an integer above 2**53 - 1: write it as text")));
    }
    Ok(())
}

fn keys_in(data: &Value) -> usize {
    match data {
        Value::Array(values) => values.iter().map(keys_in).sum(),
        Value::Object(fields) => fields.len() + fields.values().map(keys_in).sum::<usize>(),
        _ => 0,
    }
}
