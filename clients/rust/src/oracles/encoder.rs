//! Encoders map an item to a cell, by a function that is drawn for each report.

use super::pool::Pool;
use crate::errors::{Error, Result};
use crate::maths::primes::{PRIME_61, prime_at_least};
use crate::wire::packing::NumberField;

/// A family of hash functions from items to cells.
#[derive(Clone, Debug)]
pub(crate) enum Encoder {
    /// Each item is its own cell.
    Identity { cells: u64 },
    /// Items are points of a line, the highest first.
    Points { cells: u64 },
    /// Affine functions of a prime field.
    Affine(Affine),
    /// Signs of the items in a Sylvester matrix.
    Signs(Hadamard),
    /// Functions that are fixed for the campaign.
    Pool(Pool),
    /// Signs of a pool's cells.
    PoolSigns(Pool, Hadamard),
}

impl Encoder {
    /// The number of cells.
    pub(crate) fn cells(&self) -> u64 {
        match self {
            Self::Identity { cells } | Self::Points { cells } => *cells,
            Self::Affine(affine) => affine.buckets,
            Self::Signs(signs) | Self::PoolSigns(_, signs) => 2 * signs.blocks,
            Self::Pool(pool) => pool.cells(),
        }
    }

    /// The numbers that name the function in a report, each drawn uniformly.
    pub(crate) fn fields(&self) -> Vec<NumberField> {
        match self {
            Self::Identity { .. } | Self::Points { .. } => Vec::new(),
            Self::Affine(affine) => affine.fields(),
            Self::Signs(signs) => vec![signs.field()],
            Self::Pool(pool) => vec![pool.field()],
            Self::PoolSigns(pool, signs) => vec![pool.field(), signs.field()],
        }
    }

    /// Return the cell of an item under the function with these numbers, one for each field.
    pub(crate) fn cell(&self, item: u64, named: &[u64]) -> u64 {
        let [first, second] = [0, 1].map(|place| named.get(place).copied().unwrap_or_default());
        match self {
            Self::Identity { .. } => item,
            Self::Points { cells } => cells - 1 - item,
            Self::Affine(affine) => affine.cell(item, first, second),
            Self::Signs(signs) => signs.cell(item, first),
            Self::Pool(pool) => pool.cell(item, first),
            Self::PoolSigns(pool, signs) => signs.cell(pool.cell(item, first), second),
        }
    }
}

/// Affine functions of a prime field, whose values are folded into fewer buckets; with P buckets nothing is folded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Affine {
    pub(crate) prime: u64,
    pub(crate) buckets: u64,
}

impl Affine {
    /// Return functions into B (buckets) of the field of P (prime).
    ///
    /// # Errors
    /// `Format`: B is not in 2..=P.
    pub(crate) fn new(prime: u64, buckets: i128) -> Result<Self> {
        if !(2..=i128::from(prime)).contains(&buckets) {
            return Err(Error::format(format!("B is {buckets}, must be in 2..{prime} buckets")));
        }
        Ok(Self { prime, buckets: buckets as u64 })
    }

    fn fields(self) -> Vec<NumberField> {
        let slope = NumberField { bound: ((self.prime - 1) / 2).max(1) + 1, least: 1 };
        if self.buckets < self.prime { vec![slope, NumberField::below(self.prime)] } else { vec![slope] }
    }

    fn cell(self, item: u64, slope: u64, shift: u64) -> u64 {
        // Slope, shift and item are below 2**61.
        let moved = (u128::from(slope) * u128::from(item) + u128::from(shift)) % u128::from(self.prime);
        moved as u64 % self.buckets
    }
}

/// Return P, the field of affine functions: 2**61 - 1 in the open domain, else the least prime from d (`domain`) on.
pub(crate) fn prime_of(domain: Option<u64>) -> u64 {
    domain.map_or(PRIME_61, prime_at_least)
}

/// Signs of a Sylvester matrix: item x has row x div B of the matrix, in block x mod B.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hadamard {
    order: u64,
    blocks: u64,
}

impl Hadamard {
    /// Return signs of items, at most 2**31, in blocks.
    pub(crate) fn new(items: u64, blocks: u64) -> Self {
        Self { order: items.div_ceil(blocks).next_power_of_two(), blocks }
    }

    fn field(self) -> NumberField {
        NumberField::below(self.order)
    }

    fn cell(self, item: u64, column: u64) -> u64 {
        let odd = (column & (item / self.blocks)).count_ones() % 2;
        2 * (item % self.blocks) + u64::from(odd)
    }
}
