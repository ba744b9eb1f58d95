//! The host of a URL: in lower case and Punycode, and only if it is a public name.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use super::punycode::punycode;
use super::{decoded, is_label};
use crate::values::items::fault_of;
use crate::values::unicode13::{is_assigned, nfc};

const MOST_HOST_CHARACTERS: usize = 253;
const DOTS: [char; 4] = ['.', '\u{3002}', '\u{ff0e}', '\u{ff61}'];
/// Last labels of names that are not public.
const LOCAL: [&str; 15] = [
    "alt",
    "arpa",
    "corp",
    "home",
    "i2p",
    "internal",
    "intranet",
    "invalid",
    "lan",
    "local",
    "localdomain",
    "localhost",
    "onion",
    "private",
    "test",
];
const PREFIX: &str = "xn--";

/// Return the host of an authority; none if it is no public name, or has user information or another port.
pub(super) fn host_of(authority: &str, usual_port: &str) -> Option<String> {
    let digits = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let (name, port) = authority.rsplit_once(':').filter(|(_, port)| digits(port)).unwrap_or((authority, ""));
    if authority.contains('@') || !(port.is_empty() || port.trim_start_matches('0') == usual_port) {
        return None;
    }
    let name = decoded(name)?;
    let mut given: Vec<&str> = name.split(DOTS).take(MOST_HOST_CHARACTERS + 2).collect();
    if given.last().is_some_and(|last| last.is_empty()) {
        given.pop();
    }
    if !(2..=MOST_HOST_CHARACTERS).contains(&given.len()) {
        return None;
    }
    let labels: Vec<String> = given.into_iter().map(label_of).collect::<Option<_>>()?;
    let is_public = labels.last().is_some_and(|last| !LOCAL.contains(&last.as_str()) && !is_number(last));
    Some(labels.join(".")).filter(|host| is_public && host.len() <= MOST_HOST_CHARACTERS)
}

/// Return whether a browser would read a name with this last label as an IP address.
fn is_number(label: &str) -> bool {
    let is_hexadecimal = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    label.bytes().all(|byte| byte.is_ascii_digit()) || label.strip_prefix("0x").is_some_and(is_hexadecimal)
}

/// Return a label of a host in lower case and Punycode (UTS 46, not transitional); none if it is not valid.
///
/// Versions of UTS 46 differ in characters that Unicode 13.0 does not assign, in invisible ones, and browsers differ in
/// text of two directions. Here labels with these are not valid. A label in Punycode is taken as it is.
fn label_of(label: &str) -> Option<String> {
    if label.is_ascii() {
        return Some(label.to_ascii_lowercase()).filter(|text| is_label(text));
    }
    // Browsers differ in the capital sharp s too.
    let fits = label.chars().count() <= MOST_HOST_CHARACTERS && !label.contains('\u{1e9e}');
    if !fits || !label.chars().all(is_assigned) {
        return None;
    }
    // Each letter by itself, because a sigma at the end of a word has another lower case.
    let text = nfc(&label.chars().flat_map(char::to_lowercase).collect::<String>());
    let compatible: String = text.nfkc().collect();
    if fault_of(&text).is_some() || text.chars().chain(compatible.chars()).any(is_unfit) {
        return None;
    }
    if compatible.starts_with(PREFIX) || (compatible.contains(is_right_to_left) && !is_right_word(&compatible)) {
        return None;
    }
    ascii_of(&text)
}

/// Return the `ToASCII` of a label in lower case and NFC that has no fault.
fn ascii_of(text: &str) -> Option<String> {
    let mapped: String = text.chars().flat_map(mapping_of).nfkc().collect();
    if mapped.contains(is_disallowed) || mapped.starts_with(is_combining_mark) {
        return None;
    }
    let made = if mapped.is_ascii() { mapped } else { format!("{PREFIX}{}", punycode(&mapped)?) };
    Some(made).filter(|label| is_label(label))
}

/// Return the mapping of UTS 46 for a character that it does not disallow: the compatible one, with folded case.
///
/// All that is told here was compared with the tables of UTS 46 for every character that Unicode 13.0 assigns.
fn mapping_of(character: char) -> Vec<char> {
    match character {
        // The two letters that transitional processing would replace.
        'ß' | 'ς' => vec![character],
        // The selectors of a shape, the only characters of an item that UTS 46 leaves out.
        '\u{180b}'..='\u{180d}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' => vec![],
        _ => std::iter::once(character).nfkc().flat_map(folded).collect(),
    }
}

/// Return a character with folded case: the lower case of its upper case, with Unicode's exceptions.
fn folded(character: char) -> Vec<char> {
    match character {
        'ı' | 'Ꭰ'..='Ᏽ' => vec![character],
        // Cherokee is folded to its capitals, which are older.
        'ꭰ'..='ꮿ' => char::from_u32(u32::from(character) - 0xab70 + 0x13a0).into_iter().collect(),
        'ᏸ'..='ᏽ' => char::from_u32(u32::from(character) - 8).into_iter().collect(),
        _ => character.to_uppercase().flat_map(char::to_lowercase).collect(),
    }
}

/// Return whether UTS 46 disallows a mapped character, beside those that no item has.
fn is_disallowed(character: char) -> bool {
    matches!(character,
        // A space, descriptions of ideographs, a dot, private use, and replacements.
        '\u{1680}' | '\u{2ff0}'..='\u{2ffb}' | '\u{3002}' | '\u{e000}'..='\u{f8ff}' | '\u{fffc}' | '\u{fffd}'
        // Signs of Kaithi, controls of hieroglyphs, tags of flags, and private use.
        | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{13438}' | '\u{e0020}'..='\u{e007f}' | '\u{f0000}'..)
}

/// Return whether no label has a character beside other letters than ASCII; browsers differ in the invisible ones.
fn is_unfit(character: char) -> bool {
    let is_invisible = matches!(character, '\u{1806}' | '\u{180e}' | '\u{200c}' | '\u{200d}');
    is_invisible || (character.is_ascii() && !matches!(character, '-' | '0'..='9' | 'a'..='z'))
}

/// Return whether a character is in the blocks that are written from right to left.
fn is_right_to_left(character: char) -> bool {
    matches!(character, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}'
        | '\u{10800}'..='\u{10fff}' | '\u{1e800}'..='\u{1efff}')
}

/// Return whether a text has only letters that are written from right to left, with marks after them.
fn is_right_word(text: &str) -> bool {
    // In these blocks all alphabetic characters are letters or marks (categories L and M).
    let fits = |character: char| character.is_alphabetic() || is_combining_mark(character);
    !text.starts_with(is_combining_mark) && text.chars().all(|character| is_right_to_left(character) && fits(character))
}
