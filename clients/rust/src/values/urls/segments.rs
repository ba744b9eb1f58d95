//! The segments of a URL's path in one spelling, without what may identify a person or hold a secret.

use std::fmt::Write;

use unicode_normalization::UnicodeNormalization;

use super::{decoded, escaped_byte};
use crate::values::unicode13::is_assigned;

/// What stands for a segment that looks like an id.
const ID: &str = ":id";
/// The characters / ? # and \, which servers read in different ways if they are encoded.
const HIDING: &[u8] = b"/?#\\";
const KEPT: &[u8] = b"-._~!$&'()*+,:";
/// Numbers of characters from which a text may be an id: decimal digits in all; hexadecimal digits, letters and digits
/// of which some are capitals, and letters and digits of all kinds, each in a row.
const DIGITS: usize = 8;
const HEXADECIMAL: usize = 16;
const RUN: usize = 16;
const TOKEN: usize = 8;
const UUID_BYTES: usize = 36;
const UUID_DASHES: [usize; 4] = [8, 13, 18, 23];
/// The zeros of Unicode 13.0 (category Nd), each with the digits 1 to 9 after it.
const ZEROS: [u32; 65] = [
    0x30, 0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xde6, 0xe50, 0xed0,
    0xf20, 0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90, 0x1b50, 0x1bb0, 0x1c40, 0x1c50, 0xa620,
    0xa8d0, 0xa900, 0xa9d0, 0xa9f0, 0xaa50, 0xabf0, 0xff10, 0x104a0, 0x10d30, 0x11066, 0x110f0, 0x11136, 0x111d0,
    0x112f0, 0x11450, 0x114d0, 0x11650, 0x116c0, 0x11730, 0x118e0, 0x11950, 0x11c50, 0x11d50, 0x11da0, 0x16a60,
    0x16b50, 0x1d7ce, 0x1d7d8, 0x1d7e2, 0x1d7ec, 0x1d7f6, 0x1e140, 0x1e2f0, 0x1e950, 0x1fbf0,
];

/// Return the first `most` segments of a path, without dot segments and empty ones; none if it hides a separator.
pub(super) fn segments_of(path: &str, most: usize) -> Option<Vec<String>> {
    let bytes = path.as_bytes();
    let hides = |at| bytes.get(at..).and_then(escaped_byte).is_some_and(|byte| HIDING.contains(&byte));
    if (0..bytes.len()).any(hides) {
        return None;
    }
    let mut kept = Vec::new();
    for segment in path.split(['/', '\\']).skip(1) {
        match segment.to_ascii_lowercase().replace("%2e", ".").as_str() {
            ".." => drop(kept.pop()),
            "." => {}
            _ => kept.push(segment),
        }
    }
    Some(kept.into_iter().filter_map(segment_of).take(most).collect())
}

/// Return a segment in one spelling, without its parameters; ":id" if it looks like an id; none if nothing is left.
fn segment_of(segment: &str) -> Option<String> {
    let decoded = decoded(segment);
    let text = decoded.as_deref().and_then(|text| text.split(';').next()).filter(|text| !is_id(text));
    match text {
        None => Some(ID.to_owned()),
        Some("" | "." | "..") => None,
        Some(text) => Some(encoded(text)),
    }
}

fn encoded(text: &str) -> String {
    let mut made = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || KEPT.contains(&byte) {
            made.push(char::from(byte));
        } else {
            // Writing to a text does not fail.
            let _ = write!(made, "%{byte:02X}");
        }
    }
    made
}

/// Return whether a decoded segment may be an id, a secret or a person's address; in doubt it may.
fn is_id(text: &str) -> bool {
    if !text.chars().all(is_assigned) || text.nfkc().any(|character| matches!(character, '@' | '=')) {
        return true;
    }
    let bytes = text.as_bytes();
    let is_escaped = bytes.windows(3).any(|part| escaped_byte(part).is_some());
    if is_escaped || bytes.windows(UUID_BYTES).any(is_uuid) {
        return true;
    }
    let mut hexadecimal = runs(text, HEXADECIMAL, |byte| byte.is_ascii_hexdigit());
    if hexadecimal.next().is_some() || text.chars().filter(|&character| is_digit(character)).count() >= DIGITS {
        return true;
    }
    runs(text, RUN, |byte| byte.is_ascii_alphanumeric() || byte == b'+').any(|run| !is_word(run))
        || runs(text, TOKEN, |byte| byte.is_ascii_alphanumeric()).any(|run| changes(run) || has_all_kinds(run))
        || runs(text, RUN, |byte| byte.is_ascii_alphanumeric() || b"+_-".contains(&byte)).any(has_all_kinds)
}

/// Return the longest runs of ASCII bytes that fit, of at least so many.
fn runs(text: &str, least: usize, fits: fn(u8) -> bool) -> impl Iterator<Item = &[u8]> {
    text.as_bytes().split(move |&byte| !fits(byte)).filter(move |run| run.len() >= least)
}

fn is_uuid(text: &[u8]) -> bool {
    let fits =
        |(at, byte): (usize, &u8)| if UUID_DASHES.contains(&at) { *byte == b'-' } else { byte.is_ascii_hexdigit() };
    text.iter().enumerate().all(fits)
}

/// Return whether a character is a decimal digit of any script.
fn is_digit(character: char) -> bool {
    let code = u32::from(character);
    let place = ZEROS.partition_point(|&zero| zero <= code);
    place.checked_sub(1).and_then(|place| ZEROS.get(place)).is_some_and(|zero| code - zero < 10)
}

/// Return whether a run has only capitals, or only small letters after a letter.
fn is_word(run: &[u8]) -> bool {
    let small = run.split_first().is_some_and(|(first, rest)| {
        first.is_ascii_alphabetic() && rest.iter().all(u8::is_ascii_lowercase) && !rest.is_empty()
    });
    small || run.iter().all(u8::is_ascii_uppercase)
}

/// Return whether letters and digits of a run change three times.
fn changes(run: &[u8]) -> bool {
    let changed =
        run.windows(2).filter(|pair| matches!(pair, [one, next] if one.is_ascii_digit() != next.is_ascii_digit()));
    changed.count() >= 3
}

fn has_all_kinds(run: &[u8]) -> bool {
    let kinds = [u8::is_ascii_lowercase, u8::is_ascii_uppercase, u8::is_ascii_digit];
    kinds.iter().all(|is_kind| run.iter().any(is_kind))
}
