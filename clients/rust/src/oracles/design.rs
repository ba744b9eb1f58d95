//! Weighted designs: rows of s cells such that every pair of cells is covered by the same weight.

use serde_json::Value;

use super::constructed::constructed;
use crate::errors::{Error, Result};
use crate::formats::bytes::{hash, hex, unhex};
use crate::formats::fields::{Fields, whole_of};
use crate::formats::json::parse;

const NAME: &str = "the file of designs";
const FILE_BYTES: usize = 1 << 24;
/// The most cells of a design.
pub(super) const LARGEST_WIDTH: u64 = 1024;
const MOST_BLOCKS: usize = 1 << 16;

/// A weighted design, which an app needs that reports to a campaign with mechanism `wss`.
///
/// Row b * turns + u is block b with every cell c < turns moved to (c + u) mod turns. The digest fixes the rows, their
/// order and their weights.
#[derive(Clone, Debug)]
pub struct Design {
    width: u64,
    size: u64,
    pub(super) turns: u64,
    /// The ascending cells of each block.
    pub(super) blocks: Vec<Vec<u64>>,
    pub(super) weights: Vec<u64>,
    digest: [u8; 32],
}

impl Design {
    /// Read a design file of an app, such as `hushcount/designs/designs.json` of the Python package, or a file with
    /// only some of its lines.
    ///
    /// # Errors
    /// `Format`: the file has more than 16 MiB, or is not a file of designs; the error names the field.
    pub fn parse(bytes: &[u8]) -> Result<Vec<Self>> {
        let file = parse(bytes, FILE_BYTES, NAME)?;
        let fields = Fields::of(&file, NAME, &["format", "designs"], &[])?;
        fields.whole("format", 1, 1)?;
        fields.list("designs", LARGEST_WIDTH as usize)?.iter().map(Self::read).collect()
    }

    fn read(data: &Value) -> Result<Self> {
        let fields = Fields::of(data, NAME, &["width", "size", "turns", "digest", "blocks", "weights"], &[])?;
        let width = fields.whole("width", 2, LARGEST_WIDTH)?;
        let (size, turns) = (fields.whole("size", 1, width - 1)?, fields.whole("turns", 1, width)?);
        let blocks = fields.list("blocks", MOST_BLOCKS)?.iter().map(|block| cells_of(block, width));
        let blocks = blocks.collect::<Result<Vec<_>>>()?;
        let weights = fields.list("weights", MOST_BLOCKS)?.iter().map(|weight| {
            let weight = whole_of(weight).filter(|&weight| weight >= 1);
            weight.ok_or_else(|| wrong("every weight must be a whole number of at least 1"))
        });
        let weights = weights.collect::<Result<Vec<_>>>()?;
        if ![1, width - 1, width].contains(&turns) || blocks.is_empty() || blocks.len() != weights.len() {
            return Err(wrong("turns must be 1, width - 1 or width, and there must be a weight for each block"));
        }
        if blocks.iter().any(|block| block.len() as u64 != size) {
            return Err(wrong("every block must hold size cells"));
        }
        let design = Self::new([width, size, turns], blocks, weights);
        if design.digest != fields.bytes("digest")? {
            return Err(wrong("digest is not that of the design"));
        }
        Ok(design)
    }

    /// Return the design of these rows; its arguments are checked.
    pub(super) fn new([width, size, turns]: [u64; 3], blocks: Vec<Vec<u64>>, weights: Vec<u64>) -> Self {
        // The text of lists of numbers is their JSON, but for spaces.
        let json = format!("[{width},{size},{turns},{blocks:?},{weights:?}]").replace(' ', "");
        let digest = hash(&[json.as_bytes()], "hushcount design");
        Self { width, size, turns, blocks, weights, digest }
    }

    /// Return the design that a campaign names: a constructed design, or a design of the app.
    ///
    /// # Errors
    /// `Format`: the design is not known, so the app must pass its file.
    pub(super) fn named(name: &str, known: &[Self]) -> Result<Self> {
        let mut shape = name.split('-').map(|digits| digits.parse().ok());
        let built = shape.next().flatten().zip(shape.next().flatten());
        let built = built.and_then(|(width, size)| constructed(width, size)).filter(|design| design.name() == name);
        built.or_else(|| known.iter().find(|design| design.name() == name).cloned()).ok_or_else(|| {
            let must = "design must be width-size-digest of a known design";
            Error::format(format!("{must}: give the client its file in `designs`"))
        })
    }

    /// The number of cells, m.
    pub(super) fn width(&self) -> u64 {
        self.width
    }

    /// The number of cells in a row, s.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// The number of rows.
    pub(super) fn rows(&self) -> u64 {
        self.blocks.len() as u64 * self.turns
    }

    fn name(&self) -> String {
        format!("{}-{}-{}", self.width, self.size, hex(&self.digest))
    }
}

/// Return the cells of a block, whose bitmap has cell 0 in the least significant bit of its first byte.
fn cells_of(block: &Value, width: u64) -> Result<Vec<u64>> {
    let octets = width.div_ceil(8);
    let digits = block.as_str().filter(|text| !text.bytes().any(|byte| byte.is_ascii_uppercase()));
    let bitmap = digits.and_then(unhex).filter(|bytes| bytes.len() as u64 == octets);
    let bitmap = bitmap.ok_or_else(|| wrong(&format!("every block must be {octets} bytes in hexadecimal digits")))?;
    let bits = bitmap.into_iter().flat_map(|byte| (0..8).map(move |bit| byte >> bit & 1));
    Ok((0..width).zip(bits).filter(|&(_, bit)| bit == 1).map(|(cell, _)| cell).collect())
}

fn wrong(must: &str) -> Error {
    Error::format(format!("{NAME}: {must}"))
}
