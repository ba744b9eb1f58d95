//! Dictionaries: the items that a campaign knows in advance, and the step from values to items.

use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;

use super::items::{Fault, MOST_SPELLED_BYTES, OTHER, fault_of, fingerprint_of, normal};
use crate::errors::{Error, Result};
use crate::formats::bytes::hash;

/// The most bytes of a dictionary, unpacked. Normal forms have at most three times as many, so 32 bits are a place.
const MOST_BYTES: u64 = 1 << 28;
/// The most items of a dictionary.
const MOST_ITEMS: u64 = 1 << 24;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// The most bytes of a line with its end, and a byte order mark.
const MOST_LINE_BYTES: usize = MOST_SPELLED_BYTES + BYTE_ORDER_MARK.len() + b"\r\n".len();
/// The begin of every gzip file, and of no UTF-8 text.
const GZIP: &[u8] = b"\x1f\x8b";
/// A slot without an item.
const FREE: u32 = u32::MAX;

/// A dictionary that was read and checked: its text, and 10 bytes an item to look items up.
pub(crate) struct Dictionary {
    /// The items in normal form, each followed by a line feed.
    text: String,
    /// The begin of each item in the text.
    starts: Vec<u32>,
    /// The places of all items, each in the first slot that was free, from the slot of its hash on. A third are `FREE`.
    slots: Vec<u32>,
    hasher: RandomState,
}

impl Dictionary {
    /// Read a dictionary file, one item a line, text or gzip; `items` is the most items, `most_bytes` the most bytes that
    /// are unpacked.
    ///
    /// # Errors
    /// `Format`: the file is damaged, empty or too long, or a line is no item or repeats an item. The message names the
    /// line, and does not repeat its contents.
    pub(crate) fn parse(bytes: &[u8], items: u64, most_bytes: u64) -> Result<Self> {
        let limits = Limits { items: items.min(MOST_ITEMS), bytes: most_bytes.min(MOST_BYTES) };
        let (text, starts) = if bytes.starts_with(GZIP) {
            read_items(BufReader::new(MultiGzDecoder::new(bytes)), limits)?
        } else {
            read_items(bytes, limits)?
        };
        if starts.is_empty() {
            return Err(Error::format("the dictionary is empty, must hold at least 1 item"));
        }
        let slots = vec![FREE; starts.len() + starts.len() / 2 + 1];
        let mut made = Self { text, starts, slots, hasher: RandomState::new() };
        for place in 0..made.starts.len() {
            let slot = made.slot_of(made.item(place));
            if made.slots[slot] != FREE {
                return Err(wrong_line(place, "is there twice, in NFC"));
            }
            made.slots[slot] = place as u32;
        }
        Ok(made)
    }

    /// The number of items.
    pub(crate) fn len(&self) -> u64 {
        self.starts.len() as u64
    }

    /// The hash of all items, each followed by a line feed.
    pub(crate) fn digest(&self) -> [u8; 32] {
        hash(&[self.text.as_bytes()], "")
    }

    /// Return the place of a text in normal form, if it is listed.
    pub(crate) fn position(&self, text: &str) -> Option<u64> {
        let place = self.slots[self.slot_of(text)];
        (place != FREE).then_some(u64::from(place))
    }

    fn item(&self, place: usize) -> &str {
        let end = self.starts.get(place + 1).map_or(self.text.len(), |&next| next as usize);
        &self.text[self.starts[place] as usize..end - 1]
    }

    /// Return the slot that has a text, or the free slot in which the text belongs.
    fn slot_of(&self, text: &str) -> usize {
        let hashed = u128::from(self.hasher.hash_one(text));
        let mut slot = ((hashed * self.slots.len() as u128) >> 64) as usize;
        while self.slots[slot] != FREE && self.item(self.slots[slot] as usize) != text {
            slot = (slot + 1) % self.slots.len();
        }
        slot
    }
}

/// Return the item of a text in normal form, as the table in docs/wire-format.md says.
///
/// `domain` is the mechanism's: the number of items with "other", none if every fingerprint is an item.
pub(crate) fn item_of(text: &str, dictionary: Option<&Dictionary>, domain: Option<u64>) -> u64 {
    match (dictionary, domain) {
        (Some(dictionary), Some(_)) => dictionary.position(text).unwrap_or(dictionary.len()),
        (Some(dictionary), None) if dictionary.position(text).is_some() => fingerprint_of(text),
        (None, _) if fault_of(text).is_none() => fingerprint_of(text),
        _ => OTHER,
    }
}

/// Return the item "other" of a mechanism's domain.
pub(crate) fn other_item(domain: Option<u64>) -> u64 {
    domain.map_or(OTHER, |items| items.saturating_sub(1))
}

/// The most items and the most bytes of one dictionary.
#[derive(Clone, Copy)]
struct Limits {
    items: u64,
    bytes: u64,
}

/// Return the items of a stream's lines, each followed by a line feed, and the begin of each.
fn read_items(mut stream: impl BufRead, limits: Limits) -> Result<(String, Vec<u32>)> {
    let (mut text, mut starts, mut line, mut left) = (String::new(), Vec::new(), Vec::new(), limits.bytes);
    loop {
        line.clear();
        let length = stream.by_ref().take(MOST_LINE_BYTES as u64 + 1).read_until(b'\n', &mut line);
        let length = length.map_err(|_| Error::format("the dictionary is no whole gzip file: it is damaged"))?;
        if length == 0 {
            break;
        }
        left = left.checked_sub(length as u64).ok_or_else(|| {
            let most = limits.bytes;
            Error::format(format!("the dictionary has more than {most} bytes unpacked: raise max_dictionary_bytes"))
        })?;
        if starts.len() as u64 == limits.items {
            let most = limits.items;
            return Err(Error::format(format!("the dictionary has more items than the {most} that it may have")));
        }
        let item = item_in(&line, starts.len())?;
        starts.push(text.len() as u32);
        text.push_str(&item);
        text.push('\n');
    }
    text.shrink_to_fit();
    starts.shrink_to_fit();
    Ok((text, starts))
}

/// Return the item in a line of a file.
fn item_in(line: &[u8], place: usize) -> Result<String> {
    if line.len() > MOST_LINE_BYTES {
        return Err(wrong_line(place, &Fault::TooLong.to_string()));
    }
    let line = line.strip_prefix(BYTE_ORDER_MARK).filter(|_| place == 0).unwrap_or(line);
    let line = std::str::from_utf8(line).map_err(|_| wrong_line(place, "is not UTF-8"))?;
    let item = normal(line.strip_suffix('\n').unwrap_or(line).trim_end_matches('\r'));
    fault_of(&item).map_or(Ok(item), |fault| Err(wrong_line(place, &fault.to_string())))
}

fn wrong_line(place: usize, fault: &str) -> Error {
    Error::format(format!("line {} of the dictionary {fault}: remove it", place + 1))
}
