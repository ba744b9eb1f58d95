//! Strata: a client reports an item together with its coordinate on each axis, as one cell of a product.

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;

use crate::campaigns::sample::finalised;
use crate::campaigns::sections::{Listed, MechanismTerms};
use crate::errors::{Error, Result};
use crate::formats::fields::{Fields, IDENTIFIER};
use crate::oracles::catalogue::{Family, family_of};

const MOST_AXES: usize = 8;
const MOST_STRATA: u64 = 4096;
const MOST_CELLS: u64 = 1 << 24;
const STRATUM_BYTES: usize = 2;
const ROUNDS: usize = 8;
const MOST_COORDINATE: usize = 64;
/// The coordinate of a client that has none, or one that the axis does not list.
const OTHER: &str = "other";

/// A client's coordinates, by axis.
pub type Coordinates = BTreeMap<String, String>;

/// What clients are broken down by, with the coordinates that are listed; `OTHER` is the one after them.
#[derive(Clone, Debug)]
struct Axis {
    name: String,
    public: bool,
    values: Vec<String>,
}

/// The section of a campaign file on axes.
#[derive(Clone, Debug)]
pub(crate) struct Strata {
    /// In the order of the file; the strata are at most `MOST_STRATA`.
    axes: Vec<Axis>,
    /// The words of the key, one a round, and the number of cells of all items and private strata.
    words: [u32; ROUNDS],
    cells: u64,
}

impl Strata {
    /// Check the section, together with the others that it needs; `has_noise` is whether the mixes add the noise.
    ///
    /// # Errors
    /// `Format`: the section has a wrong field, there are too many cells, or the mechanism counts no cells.
    pub(crate) fn parse(
        data: &Value,
        terms: Option<&MechanismTerms>,
        dictionary: Option<&Listed>,
        has_noise: bool,
    ) -> Result<Self> {
        let Some((axes, key)) = section_of(data) else {
            let message = format!("axes must have a key and 1 to {MOST_AXES} named lists of different coordinates");
            return Err(Error::format(message));
        };
        let strata = strata_of(axes.iter());
        if strata > MOST_STRATA {
            return Err(Error::format(format!("axes: {strata} strata, must be at most {MOST_STRATA}")));
        }
        let private = || axes.iter().filter(|axis| !axis.public);
        let items = dictionary.map_or(MOST_CELLS, |listed| listed.items).saturating_add(1);
        let is_counted = match terms {
            None => has_noise,
            Some(terms) => match family_of(&terms.name)? {
                Family::Pools => false,
                Family::Lines => private().next().is_none(),
                _ => true,
            },
        };
        if !is_counted || items.saturating_mul(strata) > MOST_CELLS {
            return Err(Error::format(format!(
                "axes need a dictionary with at most {MOST_CELLS} cells, and a mechanism without a sketch; private \
                 axes need one that is no mean"
            )));
        }
        let cells = items * strata_of(private());
        let mut words = [0; ROUNDS];
        for (word, bytes) in words.iter_mut().zip(key.chunks_exact(4)) {
            *word = bytes.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte));
        }
        Ok(Self { axes, words, cells })
    }

    /// The number of cells; none without private axes.
    pub(crate) fn cells(&self) -> Option<u64> {
        self.that_are(false).next().map(|_| self.cells)
    }

    /// Return the cell of an item and a client's coordinates; the item itself without private axes.
    ///
    /// An item above "other" counts as the last cell.
    pub(crate) fn cell_of(&self, item: u64, by: &Coordinates) -> u64 {
        if self.cells().is_none() {
            return item;
        }
        let place =
            item.saturating_mul(strata_of(self.that_are(false))).saturating_add(place_of(self.that_are(false), by));
        number_of(place.min(self.cells - 1), self.cells - 1, &self.words)
    }

    /// Return the bytes before a sealed report: the number of the public stratum; none without public axes.
    pub(crate) fn stratum_of(&self, by: &Coordinates) -> Vec<u8> {
        let stratum = place_of(self.that_are(true), by) as u16;
        stratum.to_le_bytes()[..self.stratum_bytes()].to_vec()
    }

    /// The number of public strata, 1 without public axes.
    pub(crate) fn public_strata(&self) -> u64 {
        strata_of(self.that_are(true))
    }

    /// The length of what `stratum_of` returns.
    pub(crate) fn stratum_bytes(&self) -> usize {
        if self.that_are(true).next().is_some() { STRATUM_BYTES } else { 0 }
    }

    /// The names of the axes, and whether each is public.
    pub(crate) fn axes(&self) -> Vec<(String, bool)> {
        self.axes.iter().map(|axis| (axis.name.clone(), axis.public)).collect()
    }

    fn that_are(&self, public: bool) -> impl Iterator<Item = &Axis> {
        self.axes.iter().filter(move |axis| axis.public == public)
    }
}

/// Return whether an axis may list a coordinate: printable ASCII without , = [ ] and a space at an end.
pub(crate) fn may_be_listed(coordinate: &str) -> bool {
    let fits = |byte| matches!(byte, b' '..=b'~') && !b",=[]".contains(&byte);
    let is_long = coordinate.is_empty() || coordinate.len() > MOST_COORDINATE;
    !is_long && coordinate.bytes().all(fits) && coordinate.trim_matches(' ') == coordinate
}

/// Return the section's axes and key, if each field has its form.
fn section_of(data: &Value) -> Option<(Vec<Axis>, [u8; 4 * ROUNDS])> {
    let fields = Fields::of(data, "axes", &["listed", "key"], &[]).ok()?;
    let listed = fields.list("listed", MOST_AXES).ok()?;
    let axes: Vec<Axis> = listed.iter().map(axis_of).collect::<Option<_>>()?;
    let names: HashSet<&String> = axes.iter().map(|axis| &axis.name).collect();
    let key = fields.bytes("key").ok().filter(|_| !axes.is_empty() && names.len() == axes.len())?;
    Some((axes, key))
}

fn axis_of(data: &Value) -> Option<Axis> {
    let fields = Fields::of(data, "axes: an axis", &["name", "public", "values"], &[]).ok()?;
    let name = fields.text("name", &IDENTIFIER).ok()?.to_owned();
    let public = fields.boolean("public").ok()?;
    let listed = fields.list("values", MOST_STRATA as usize - 1).ok()?.iter();
    let listed = listed.map(|value| value.as_str().filter(|value| *value != OTHER && may_be_listed(value)));
    let values: Vec<String> = listed.map(|value| value.map(str::to_owned)).collect::<Option<_>>()?;
    let different: HashSet<&String> = values.iter().collect();
    (!values.is_empty() && different.len() == values.len()).then_some(Axis { name, public, values })
}

/// Return the number of strata of axes, at most 2**64 - 1.
fn strata_of<'a>(axes: impl Iterator<Item = &'a Axis>) -> u64 {
    axes.fold(1, |product: u64, axis| product.saturating_mul(axis.values.len() as u64 + 1))
}

/// Return the stratum of a client; a missing or unlisted coordinate is `OTHER`.
fn place_of<'a>(axes: impl Iterator<Item = &'a Axis>, by: &Coordinates) -> u64 {
    axes.fold(0, |found, Axis { name, values, .. }| {
        let listed = by.get(name).and_then(|coordinate| values.iter().position(|value| value == coordinate));
        found * (values.len() as u64 + 1) + listed.unwrap_or(values.len()) as u64
    })
}

/// Return the number of a cell, a random one: a keyed permutation of 0 to last - 1, by a Feistel network whose numbers
/// out of range walk on. The last cell, of no item in the last stratum, keeps its number.
///
/// Reference: Black and Rogaway 2002, "Ciphers with arbitrary finite domains".
fn number_of(place: u64, last: u64, words: &[u32; ROUNDS]) -> u64 {
    if place >= last {
        return last;
    }
    let bits = u64::BITS - (last - 1).leading_zeros();
    let half = bits.div_ceil(2).max(1);
    let mut made = encrypted(place, half, words);
    // A permutation leads back to `place` at the latest, so the walk ends.
    while made >= last {
        made = encrypted(made, half, words);
    }
    made
}

fn encrypted(number: u64, half: u32, words: &[u32; ROUNDS]) -> u64 {
    let mask = (1 << half) - 1;
    let (mut left, mut right) = (number >> half, number & mask);
    for &word in words {
        (left, right) = (right, left ^ u64::from(finalised((right as u32).wrapping_add(word))) & mask);
    }
    left << half | right
}
