//! The strings that may be items, their normal spelling, and the numbers that stand for them.

use std::fmt;
use std::sync::LazyLock;

use super::unicode13::{Ranges, nfc};
use crate::formats::bytes::hash;

/// The most bytes of an item.
pub(crate) const MOST_ITEM_BYTES: usize = 4096;
/// The most bytes of a text that may become an item: its normal form has more than a quarter of them.
pub(crate) const MOST_SPELLED_BYTES: usize = 4 * MOST_ITEM_BYTES;
/// The item "other" where items are fingerprints; no string has it.
pub(crate) const OTHER: u64 = (1 << 61) - 2;

/// The flags of England, Scotland and Wales, the only ones of Unicode's `RGI_Emoji_Tag_Sequence`.
const FLAGS: [&str; 3] = [
    "\u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
    "\u{1f3f4}\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}",
    "\u{1f3f4}\u{e0067}\u{e0062}\u{e0077}\u{e006c}\u{e0073}\u{e007f}",
];
const SELECTOR_OF_EMOJI: char = '\u{fe0f}';
const KEY: char = '\u{20e3}';
const JOINERS: [char; 3] = ['\u{180e}', '\u{200c}', '\u{200d}'];
const JOINERS_AFTER_VIRAMA: [char; 2] = ['\u{200c}', '\u{200d}'];

static IGNORABLE: LazyLock<Ranges> = LazyLock::new(|| Ranges::with("Default_Ignorable_Code_Point"));
static PICTURES: LazyLock<Ranges> = LazyLock::new(|| Ranges::with("Extended_Pictographic"));
static VIRAMA: LazyLock<Ranges> = LazyLock::new(|| Ranges::with("Virama"));
static SHAPED: LazyLock<Ranges> = LazyLock::new(|| Ranges::with("Variation_Base"));

/// Why a string may not be an item; the names are those of the wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    TooLong,
    Empty,
    ByteOrderMark,
    ControlCharacter,
    LineSeparator,
    ParagraphSeparator,
    DirectionControl,
    InvisibleCharacter,
    NotNormalForm,
}

impl fmt::Display for Fault {
    /// Write the predicate of a sentence about the string, which does not repeat the string.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::TooLong => return write!(to, "has more than {MOST_ITEM_BYTES} bytes"),
            Self::Empty => "is empty",
            Self::ByteOrderMark => "begins with a byte order mark",
            Self::ControlCharacter => "holds a control character",
            Self::LineSeparator => "holds a separator of lines",
            Self::ParagraphSeparator => "holds a separator of paragraphs",
            Self::DirectionControl => "holds a control of direction",
            Self::InvisibleCharacter => "holds an invisible character",
            Self::NotNormalForm => "is not in Unicode's normal form NFC",
        })
    }
}

/// Return why a text may not be an item; none if it may.
pub(crate) fn fault_of(text: &str) -> Option<Fault> {
    if text.len() > MOST_ITEM_BYTES { Some(Fault::TooLong) } else { fault_of_text(text) }
}

/// Return why a text may not be an item, whatever its length; none if only its length may forbid it.
///
/// The normal form of a text of more than 16,384 bytes is not checked.
pub(crate) fn fault_of_text(text: &str) -> Option<Fault> {
    if text.is_empty() {
        return Some(Fault::Empty);
    }
    if text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return None;
    }
    if text.starts_with('\u{feff}') {
        return Some(Fault::ByteOrderMark);
    }
    let mut rest = text;
    while let Some((first, after)) = first_shown(rest) {
        if let fault @ Some(_) = fault_of_character(first) {
            return fault;
        }
        rest = after;
    }
    (normal(text) != text).then_some(Fault::NotNormalForm)
}

/// Return the normal spelling of a value; a text of more than 16,384 bytes stays as it is.
pub(crate) fn normal(value: &str) -> String {
    if value.len() > MOST_SPELLED_BYTES { value.to_owned() } else { nfc(value) }
}

/// Return the fingerprint of a text, below 2**61 - 2: it stands for the text in the open domain and in pools.
pub(crate) fn fingerprint_of(text: &str) -> u64 {
    (u128::from_le_bytes(hash(&[text.as_bytes()], "fingerprint")) % u128::from(OTHER)) as u64
}

/// Return a text's first character, and the text after it, without invisible characters that have an effect on it.
///
/// The sequences are those of Unicode's data: a flag's tags, the selector of a keycap or picture, the selector of a
/// character's other shape, a joiner between two visible characters beyond ASCII, and a joiner after a virama.
///
/// Reference: Unicode Technical Standard 51, section 1.4; Unicode Standard, section 23.4; RFC 5892, appendix A.1, A.2.
fn first_shown(text: &str) -> Option<(char, &str)> {
    let mut characters = text.chars();
    let first = characters.next()?;
    let after = characters.as_str();
    // Most characters have no selector, joiner or tag after them.
    if !after.starts_with(is_invisible) {
        return Some((first, after));
    }
    let flag = FLAGS.iter().find_map(|flag| text.strip_prefix(flag));
    let keycap = || after.strip_prefix(SELECTOR_OF_EMOJI).filter(|rest| is_keycap(first) && rest.starts_with(KEY));
    let selected = after.strip_prefix(|next| selects_shape(first, next));
    let base = selected.or_else(|| is_visible(first).then_some(after));
    let joined = base.and_then(|rest| rest.strip_prefix(JOINERS)).filter(|rest| rest.starts_with(is_visible));
    let ended = || after.strip_prefix(JOINERS_AFTER_VIRAMA).filter(|_| VIRAMA.contain(first));
    Some((first, flag.or_else(keycap).or(joined).or(selected).or_else(ended).unwrap_or(after)))
}

fn is_keycap(character: char) -> bool {
    matches!(character, '#' | '*' | '0'..='9')
}

/// Return whether a selector has an effect on the character before it.
fn selects_shape(base: char, selector: char) -> bool {
    match selector {
        '\u{fe0e}' | '\u{fe0f}' => PICTURES.contain(base),
        '\u{180b}'..='\u{180d}' | '\u{fe00}'..='\u{fe0d}' | '\u{e0100}'..='\u{e01ef}' => SHAPED.contain(base),
        _ => false,
    }
}

/// Return whether a character is beyond U+009F, and neither invisible nor white space.
fn is_visible(character: char) -> bool {
    let is_space = matches!(
        character,
        '\u{a0}' | '\u{1680}' | '\u{2000}'
            ..='\u{200a}' | '\u{2028}' | '\u{2029}' | '\u{202f}' | '\u{205f}' | '\u{3000}'
    );
    character > '\u{9f}' && !is_space && !is_invisible(character)
}

/// Return whether a character is invisible by itself: by Unicode's property, Braille's blank, or marks of annotations.
fn is_invisible(character: char) -> bool {
    matches!(character, '\u{2800}' | '\u{fff9}'..='\u{fffb}') || IGNORABLE.contain(character)
}

/// Return why no item holds a character by itself.
fn fault_of_character(character: char) -> Option<Fault> {
    match character {
        '\0'..='\x1f' | '\x7f'..='\u{9f}' => Some(Fault::ControlCharacter),
        '\u{2028}' => Some(Fault::LineSeparator),
        '\u{2029}' => Some(Fault::ParagraphSeparator),
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => Some(Fault::DirectionControl),
        _ => is_invisible(character).then_some(Fault::InvisibleCharacter),
    }
}
