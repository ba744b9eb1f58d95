//! Responders turn a cell into a randomised answer. A responder draws the same number of words whatever the cell is.

use num_bigint::BigUint;

use super::weighted::WeightedRows;
use crate::errors::{Error, Result};
use crate::maths::event_bits::event_bits;
use crate::maths::subsets::other_cells;
use crate::maths::thresholds::{WORD_VALUES, require_size, symmetric_threshold};
use crate::randomness::{Randomness, event, uniform};
use crate::wire::packing::NumberField;
use crate::wire::subsets::SubsetField;

/// The greatest length of a report before sealing, in bytes, and the greatest number of cells in a report.
const MOST_BYTES: u64 = 1 << 16;
/// The most cells of a report times cells of the mechanism: with more, a draw would begin anew more than e**4 times.
const LARGEST_DRAW: i128 = 1 << 34;

/// A family of answers to a cell, one of `width`. Thresholds (`keep`, `flip`) are out of 2**64.
#[derive(Clone, Debug)]
pub(crate) enum Responder {
    /// The cell itself.
    Truthful { width: u64 },
    /// The cell with probability `keep`, else another cell.
    RandomisedResponse { width: u64, keep: u64 },
    /// A cyclic window of consecutive cells, sent as its start: with probability `keep` a window with the cell.
    Interval { width: u64, size: u64, keep: u64 },
    /// A subset of the cells, with probability `keep` one with the cell.
    Subset { field: SubsetField, keep: u64 },
    /// One bit a cell: the own cell's bit is 1 with probability `keep`, others with `flip`.
    Unary { width: u64, keep: u64, flip: u64 },
    /// A row of a weighted design.
    Rows(WeightedRows),
}

/// An answer: a number of the responder's field, or the part after all numbers.
pub(crate) enum Answer {
    /// The number.
    Number(u64),
    /// The integer of the part, with its low 64 bits first.
    Code(Vec<u64>),
}

impl Responder {
    /// Return the responder that keeps the cell with probability keep / 2**64, else draws another cell.
    ///
    /// # Errors
    /// `Format`: see `require_sized`.
    pub(super) fn randomised_response(width: u64, keep: i128) -> Result<Self> {
        Ok(Self::RandomisedResponse { width, keep: require_sized(width, 1, keep)? })
    }

    /// Return the responder of windows of `size` cells.
    ///
    /// # Errors
    /// `Format`: see `require_sized`.
    pub(super) fn interval(width: u64, size: i128, keep: i128) -> Result<Self> {
        Ok(Self::Interval { width, keep: require_sized(width, size, keep)?, size: size as u64 })
    }

    /// Return the responder of subsets of `size` cells.
    ///
    /// # Errors
    /// `Format`: see `require_sized`; or a report would be longer than 64 KiB, or its draw would hardly end.
    pub(super) fn subset(width: u64, size: i128, keep: i128) -> Result<Self> {
        let keep = require_sized(width, size, keep)?;
        let most = i128::from(8 * MOST_BYTES);
        let list_bits = size * i128::from((width - 1).ilog2() + 1);
        let drawn = size * i128::from(width);
        if list_bits.min(width.into()) > most || size > i128::from(MOST_BYTES) || drawn > LARGEST_DRAW {
            return Err(Error::format(format!("s is {size}, too large for {width} cells: it must be smaller")));
        }
        Ok(Self::Subset { field: SubsetField::new(width, size as u64), keep })
    }

    /// Return the responder of one bit a cell.
    ///
    /// # Errors
    /// `Format`: a report would be longer than 64 KiB; or p (`keep`) and q (`flip`) reveal nothing, or all.
    pub(super) fn unary(width: u64, keep: i128, flip: i128) -> Result<Self> {
        let most = 8 * MOST_BYTES;
        if !(2..=most).contains(&width) {
            return Err(Error::format(format!("width is {width}, must be in 2..{most} cells, a bit for each")));
        }
        if !(flip > 0 && flip < keep && keep < WORD_VALUES) {
            return Err(Error::format("p must be above q and below 1"));
        }
        Ok(Self::Unary { width, keep: keep as u64, flip: flip as u64 })
    }

    /// Return the responder that keeps all bits with the same probability.
    ///
    /// # Errors
    /// `Format`: epsilon is out of range, or as `unary`.
    pub(super) fn symmetric(epsilon: f64, width: u64) -> Result<Self> {
        let keep = symmetric_threshold(epsilon)?;
        Self::unary(width, keep, WORD_VALUES - keep)
    }

    /// The number of the answer; none if the answer is the part after all numbers.
    pub(super) fn field(&self) -> Option<NumberField> {
        match self {
            Self::Truthful { width } | Self::RandomisedResponse { width, .. } | Self::Interval { width, .. } => {
                Some(NumberField::below(*width))
            }
            Self::Rows(rows) => Some(rows.field()),
            Self::Subset { .. } | Self::Unary { .. } => None,
        }
    }

    /// The number of values of the part after all numbers; 1 without such a part.
    pub(super) fn codes(&self) -> BigUint {
        match self {
            Self::Subset { field, .. } => field.codes(),
            Self::Unary { width, .. } => BigUint::from(1u32) << *width,
            _ => BigUint::from(1u32),
        }
    }

    /// Draw the answer to the client's own cell.
    pub(super) fn respond(&self, own: u64, random: &mut dyn Randomness) -> Answer {
        match *self {
            Self::Truthful { .. } => Answer::Number(own),
            Self::RandomisedResponse { width, keep } => {
                let kept = event(keep, random);
                let step = uniform(width - 1, random);
                Answer::Number(if kept { own } else { (own + step + 1) % width })
            }
            Self::Interval { width, size, keep } => {
                let kept = event(keep, random);
                let before = uniform(size, random);
                let after = uniform(width - size, random);
                Answer::Number(if kept { own + width - before } else { own + 1 + after } % width)
            }
            Self::Subset { field, keep } => Answer::Code(subset(field, keep, own, random)),
            Self::Unary { width, keep, flip } => Answer::Code(unary(width, keep, flip, own, random)),
            Self::Rows(ref rows) => Answer::Number(rows.respond(own, random)),
        }
    }
}

/// Check that a report of `size` of `width` cells, at most 2**61, reveals something about the cell, but not the cell
/// itself; return its threshold.
///
/// # Errors
/// `Format`: the width or the size is out of range, or the probability is not above s/m and below 1.
pub(super) fn require_sized(width: u64, size: i128, keep: i128) -> Result<u64> {
    require_size(width.into(), size)?;
    // No product is above 2**125.
    if !(keep < WORD_VALUES && keep * i128::from(width) > WORD_VALUES * size) {
        return Err(Error::format("p must be above s/m, at which reports say nothing, and below 1"));
    }
    Ok(keep as u64)
}

fn subset(field: SubsetField, keep: u64, own: u64, random: &mut dyn Randomness) -> Vec<u64> {
    let kept = event(keep, random);
    let dropped = uniform(field.count, random);
    let mut cells = other_cells(field.bound, field.count, own, random);
    // A uniform s-subset of the other cells without one uniform member is a uniform (s-1)-subset.
    if let Some(cell) = cells.get_mut(dropped as usize).filter(|_| kept) {
        *cell = own;
    }
    cells.sort_unstable();
    field.code(&cells)
}

fn unary(width: u64, keep: u64, flip: u64, own: u64, random: &mut dyn Randomness) -> Vec<u64> {
    let mut bits = event_bits(flip, width.div_ceil(64) as usize, random);
    let kept = event(keep, random);
    if let Some(lane) = bits.get_mut((own / 64) as usize) {
        *lane = *lane & !(1 << (own % 64)) | u64::from(kept) << (own % 64);
    }
    if let Some(lane) = bits.last_mut() {
        *lane &= u64::MAX >> (width.wrapping_neg() % 64);
    }
    bits
}
