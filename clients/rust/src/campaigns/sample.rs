//! Who is asked: the part of the clients that a campaign names (docs/adr/0050).

use serde_json::Value;

use super::campaign::NAME;
use crate::errors::Result;
use crate::formats::fields::{Fields, IDENTIFIER, whole_of};

/// The number of buckets of a layer.
pub(crate) const BUCKETS: u64 = 10_000;
/// The most layers of an app and of an installation, because the list of campaigns that ask somebody is a pseudonym.
pub(crate) const MOST_LAYERS: usize = 3;
const MOST_RANGES: usize = 100;

/// The part of the clients that a campaign asks: ranges of buckets of a layer, each [first, end).
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) layer: String,
    pub(crate) buckets: Vec<(u64, u64)>,
}

impl Sample {
    /// Read the section of a campaign file.
    ///
    /// # Errors
    /// `Format`: the layer is no identifier, or the ranges do not rise from number to number.
    pub(crate) fn parse(data: &Value) -> Result<Self> {
        let name = format!("{NAME}: sample");
        let fields = Fields::of(data, &name, &["layer", "buckets"], &[])?;
        let ranges: Option<Vec<_>> = fields.list("buckets", MOST_RANGES)?.iter().map(range_of).collect();
        let must = "1 or more ranges of two whole numbers in 0..10000, which rise from number to number";
        let buckets = ranges.filter(|ranges| do_rise(ranges)).ok_or_else(|| fields.wrong("buckets", must))?;
        Ok(Self { layer: fields.text("layer", &IDENTIFIER)?.to_owned(), buckets })
    }

    /// Return whether clients with this bucket are asked.
    pub(crate) fn has(&self, bucket: u64) -> bool {
        self.buckets.iter().any(|&(first, end)| (first..end).contains(&bucket))
    }

    /// Return the share of all clients that are asked, in (0, 1].
    pub(crate) fn share(&self) -> f64 {
        self.buckets.iter().map(|(first, end)| end - first).sum::<u64>() as f64 / BUCKETS as f64
    }
}

fn range_of(data: &Value) -> Option<(u64, u64)> {
    let [first, end] = data.as_array()?.as_slice() else { return None };
    let end_of = |data| whole_of(data).filter(|&end| end <= BUCKETS);
    Some((end_of(first)?, end_of(end)?))
}

/// Return whether there are ranges, and all their numbers rise.
fn do_rise(ranges: &[(u64, u64)]) -> bool {
    let ends = ranges.iter().flat_map(|&(first, end)| [first, end]);
    !ranges.is_empty() && ends.is_sorted_by(|one, next| one < next)
}

/// Return the bucket of an installation in a layer, in 0..BUCKETS; its id is 32 lower-case hexadecimal digits.
pub(crate) fn bucket_of(id: &str, layer: &str) -> u64 {
    u64::from(murmur3(format!("{layer}:{id}").as_bytes())) % BUCKETS
}

/// Return `MurmurHash3`, x86, 32 bit, seed 0: public and easily inverted, so only for an even split of honest ids.
fn murmur3(bytes: &[u8]) -> u32 {
    let mixed = |block: u32| block.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte));
    let blocks = bytes.chunks_exact(4);
    let tail = mixed(word(blocks.remainder()));
    let joined =
        |hash: u32, block| (hash ^ mixed(word(block))).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64);
    finalised(blocks.fold(0, joined) ^ tail ^ bytes.len() as u32)
}

/// Return the finaliser of `MurmurHash3` of a word.
pub(crate) fn finalised(word: u32) -> u32 {
    let word = (word ^ word >> 16).wrapping_mul(0x85eb_ca6b);
    let word = (word ^ word >> 13).wrapping_mul(0xc2b2_ae35);
    word ^ word >> 16
}
