//! The responder of a weighted design's rows.

use num_bigint::BigUint;

use super::design::Design;
use super::responder::require_sized;
use crate::errors::{Error, Result};
use crate::maths::thresholds::{WORD_VALUES, spending_threshold};
use crate::randomness::{Randomness, event, uniform};
use crate::wire::packing::NumberField;

const LARGEST_TOTAL: u128 = 1 << 62;

/// With probability keep / 2**64 a row with the client's cell, else a row without it; rows are drawn by weight.
#[derive(Clone, Debug)]
pub(crate) struct WeightedRows {
    design: Design,
    keep: u64,
    /// The weight of the rows with each cell, and that of all rows.
    weights: Vec<u64>,
    total: u64,
}

impl WeightedRows {
    /// Return the responder of a design that spends epsilon.
    ///
    /// # Errors
    /// `Format`: the weights of cells differ so much that a report could spend more than epsilon.
    pub(super) fn new(epsilon: f64, design: Design) -> Result<Self> {
        let total = u128::from(design.turns) * design.weights.iter().copied().map(u128::from).sum::<u128>();
        if total >= LARGEST_TOTAL {
            return Err(Error::format("the design is hardly balanced"));
        }
        let (weights, total) = (cell_weights(&design), total as u64);
        let keep = require_sized(design.width(), design.size().into(), kept(epsilon, &weights, total)?)?;
        Ok(Self { design, keep, weights, total })
    }

    /// The number of the row.
    pub(super) fn field(&self) -> NumberField {
        NumberField::below(self.design.rows())
    }

    /// Draw a row for the client's own cell.
    pub(super) fn respond(&self, own: u64, random: &mut dyn Randomness) -> u64 {
        let turns = self.design.turns;
        // The rows with a moved cell are the rows with cell 0, turned by the cell's number.
        let (cell, turned) = if own < turns { (0, own) } else { (own, 0) };
        let weight = self.weights.get(own as usize).copied().unwrap_or(1);
        let kept = event(self.keep, random);
        let held = self.row_of(cell, true, uniform(weight, random));
        let other = self.row_of(cell, false, uniform(self.total - weight, random));
        let row = if kept { held } else { other };
        row - row % turns + (row % turns + turned) % turns
    }

    /// Return the row of a number: of the rows that hold a cell, or do not, each has as many numbers as its weight.
    ///
    /// `cell` is 0, or is never moved. All turns of a block have one weight, so only blocks are searched.
    fn row_of(&self, cell: u64, holding: bool, number: u64) -> u64 {
        let (design, mut left) = (&self.design, number);
        for (base, (block, &weight)) in
            (0..).step_by(design.turns as usize).zip(design.blocks.iter().zip(&design.weights))
        {
            let held = turns_with(design, block, cell);
            let turns = if holding { held } else { design.turns - held };
            if left < turns * weight {
                return base + turn_of(design, block, cell, holding, left / weight);
            }
            left -= turns * weight;
        }
        0
    }
}

/// Return how many turns of a block hold a cell, which is 0 or never moved.
fn turns_with(design: &Design, block: &[u64], cell: u64) -> u64 {
    match (cell < design.turns, block.binary_search(&cell)) {
        (true, _) => block.partition_point(|&each| each < design.turns) as u64,
        (false, Ok(_)) => design.turns,
        (false, Err(_)) => 0,
    }
}

/// Return the turn of this number among those, in ascending order, in which a block holds a cell, or does not.
fn turn_of(design: &Design, block: &[u64], cell: u64, holding: bool, number: u64) -> u64 {
    if cell >= design.turns {
        return number;
    }
    let holds = |turn: u64| block.binary_search(&((design.turns - turn) % design.turns)).is_ok();
    (0..design.turns).filter(|&turn| holds(turn) == holding).nth(number as usize).unwrap_or_default()
}

fn cell_weights(design: &Design) -> Vec<u64> {
    let (mut moved, mut weights) = (0, vec![0; design.width() as usize]);
    for (block, weight) in design.blocks.iter().zip(&design.weights) {
        moved += weight * turns_with(design, block, 0);
        for &cell in block {
            if let Some(sum) = weights.get_mut(cell as usize) {
                *sum += weight * design.turns;
            }
        }
    }
    weights.iter_mut().take(design.turns as usize).for_each(|sum| *sum = moved);
    weights
}

/// Return the threshold at which the greatest ratio of a row's probabilities for two cells is exp(epsilon).
fn kept(epsilon: f64, weights: &[u64], total: u64) -> Result<i128> {
    let mut sorted = weights.to_vec();
    sorted.sort_unstable();
    let (&[low, second, ..], Some(&high)) = (sorted.as_slice(), sorted.last()) else {
        return Err(Error::format("the design is hardly balanced"));
    };
    if low == 0 || high >= total {
        return Err(Error::format("the design is hardly balanced"));
    }
    // (T - R') / R is greatest for the two cells with the least R.
    let (one, other) = (total - second, total - low);
    let is_first = u128::from(one) * u128::from(second) >= u128::from(other) * u128::from(low);
    let (above, below) = if is_first { (one, low) } else { (other, second) };
    let keep = spending_threshold(epsilon, i128::from(above) + i128::from(below), below.into())?;
    // For a row with both cells, with neither cell, or with only the second cell, the ratio must not exceed p/q *
    // above/below.
    let (p, q) = (BigUint::from(keep as u128), BigUint::from((WORD_VALUES - keep) as u128));
    let is_within = |top: BigUint, bottom: BigUint| top * &q * below <= bottom * &p * above;
    let [low, high, rest, least] = [low, high, total - low, total - high].map(BigUint::from);
    if is_within(high.clone(), low) && is_within(rest, least.clone()) && is_within(high * &q, least * &p) {
        return Ok(keep);
    }
    Err(Error::format("the design is hardly balanced: a report could spend more than epsilon"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracles::constructed::constructed;

    fn singles(weights: [u64; 3]) -> Design {
        Design::new([3, 1, 1], vec![vec![0], vec![1], vec![2]], weights.to_vec())
    }

    #[test]
    fn a_design_whose_cells_weigh_differently_must_not_spend_more_than_epsilon() {
        let said = WeightedRows::new(1.0, singles([1, 1, 100])).unwrap_err().to_string();
        assert!(said.contains("hardly balanced"), "{said}");
        assert!(WeightedRows::new(1.0, singles([1, 1, 1])).is_ok());
    }

    #[test]
    fn rows_are_those_of_all_rows_written_down() {
        let weighted = Design::new([4, 2, 3], vec![vec![0, 1], vec![1, 3]], vec![2, 2]);
        let windows = constructed(7, 3).unwrap();
        for design in [singles([1, 2, 3]), weighted, windows, constructed(8, 2).unwrap(), constructed(5, 4).unwrap()] {
            let (turns, weights) = (design.turns, cell_weights(&design));
            let total = turns * design.weights.iter().sum::<u64>();
            let rows = WeightedRows { design, keep: 1, weights, total };
            for cell in (0..rows.design.width()).filter(|&cell| cell == 0 || cell >= turns) {
                for holding in [true, false] {
                    let expected = written_down(&rows.design, cell, holding);
                    let found: Vec<u64> =
                        (0..).take(expected.len()).map(|number| rows.row_of(cell, holding, number)).collect();
                    assert_eq!(found, expected);
                    assert!(!holding || expected.len() as u64 == rows.weights[cell as usize]);
                }
            }
        }
    }

    /// Return each row that holds a cell, or does not, as often as it weighs.
    fn written_down(design: &Design, cell: u64, holding: bool) -> Vec<u64> {
        let mut rows = Vec::new();
        for row in 0..design.rows() {
            let (block, turn) = ((row / design.turns) as usize, row % design.turns);
            let moved = |&each: &u64| if each < design.turns { (each + turn) % design.turns } else { each };
            if design.blocks[block].iter().map(moved).any(|each| each == cell) == holding {
                rows.extend((0..design.weights[block]).map(|_| row));
            }
        }
        rows
    }
}
