//! Unicode 13.0, whatever version the library has: the form NFC, the assigned characters, and the invisible ones.
//!
//! Every version of Unicode adds characters. A character that 13.0 does not assign is not changed, and separates the
//! text before it from the text after it. Text of characters that 13.0 assigns is normalised by every later version as
//! by 13.0 (docs/adr/0025).

use std::sync::LazyLock;

use unicode_normalization::UnicodeNormalization;

/// Below this character, Unicode 13.0 assigns every character, and each character is its own normal form.
const FIRST_COMPOSED: char = '\u{300}';
/// Code points that Unicode 13.0 does not assign: FIRST..LAST in hexadecimal digits, one range a line.
const UNASSIGNED_TEXT: &str = include_str!("tables/unassigned-13.0.txt");
/// Code points with a property, after a line of explanation: PROPERTY CODE FIRST..LAST ..., one property a line.
const INVISIBLE_TEXT: &str = include_str!("tables/invisible-13.0.txt");

static UNASSIGNED: LazyLock<Ranges> = LazyLock::new(|| Ranges::read(UNASSIGNED_TEXT.lines()));

/// Code points, as ranges in rising order, each with its last one.
pub(crate) struct Ranges(Vec<(u32, u32)>);

impl Ranges {
    /// Return the code points that have a property of the table of invisible characters.
    pub(crate) fn with(property: &str) -> Self {
        let line = INVISIBLE_TEXT.lines().find_map(|line| line.strip_prefix(property)?.strip_prefix(' '));
        Self::read(line.unwrap_or_default().split(' '))
    }

    /// Return whether a character is in a range.
    pub(crate) fn contain(&self, character: char) -> bool {
        let code = u32::from(character);
        let place = self.0.partition_point(|&(_, last)| last < code);
        self.0.get(place).is_some_and(|&(first, _)| first <= code)
    }

    /// Read ranges of this crate's tables; a test compares the tables with those of Python, which have no other forms.
    fn read<'a>(ranges: impl Iterator<Item = &'a str>) -> Self {
        let code = |digits| u32::from_str_radix(digits, 16).ok();
        let ends = ranges.filter_map(|range| {
            let (first, last) = range.split_once("..").unwrap_or((range, range));
            Some((code(first)?, code(last)?))
        });
        Self(ends.collect())
    }
}

/// Return whether Unicode 13.0 assigns a character.
pub(crate) fn is_assigned(character: char) -> bool {
    character < FIRST_COMPOSED || !UNASSIGNED.contain(character)
}

/// Return the NFC of a text; characters that Unicode 13.0 does not assign stay as they are, and part the text.
///
/// The caller bounds the text's length, because marks after one letter are sorted.
pub(crate) fn nfc(text: &str) -> String {
    if text.chars().all(|character| character < FIRST_COMPOSED) {
        return text.to_owned();
    }
    let mut made = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((at, newer)) = rest.char_indices().find(|&(_, character)| !is_assigned(character)) {
        let (known, from_newer) = rest.split_at(at);
        made.extend(known.nfc());
        made.push(newer);
        rest = from_newer.strip_prefix(newer).unwrap_or_default();
    }
    made.extend(rest.nfc());
    made
}

#[cfg(test)]
mod tests {
    use super::{INVISIBLE_TEXT, Ranges, UNASSIGNED_TEXT, is_assigned};

    #[test]
    fn the_tables_are_those_of_python() {
        for (name, text) in [("unassigned", UNASSIGNED_TEXT), ("invisible", INVISIBLE_TEXT)] {
            let path = format!("{}/../../hushcount/formats/{name}-13.0.txt", env!("CARGO_MANIFEST_DIR"));
            assert_eq!(std::fs::read_to_string(path).unwrap(), text, "copy hushcount/formats/{name}-13.0.txt");
        }
    }

    #[test]
    fn every_line_of_the_tables_is_read() {
        assert_eq!(('\0'..=char::MAX).filter(|&character| is_assigned(character)).count(), 283_440 - 2048);
        for line in INVISIBLE_TEXT.lines().skip(1) {
            let (property, codes) = line.split_once(' ').unwrap();
            assert_eq!(Ranges::with(property).0.len(), codes.split(' ').count(), "{property}");
        }
    }
}
