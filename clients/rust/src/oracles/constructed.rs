//! Designs that a client constructs, so that no app needs a file for them.

use super::design::{Design, LARGEST_WIDTH};
use crate::maths::primes::is_prime;

/// Return the constructed design of this size: single cells, all cells but one, pairs, or windows of a prime field.
///
/// Reference: docs/mathematics.md section 4.
pub(super) fn constructed(width: u64, size: u64) -> Option<Design> {
    if !(2..=LARGEST_WIDTH).contains(&width) || !(1..width).contains(&size) {
        return None;
    }
    if size == 1 || size == width - 1 {
        return Some(equal(width, size, width, vec![(0..size).collect()]));
    }
    if size == 2 {
        // With an odd number of turns all turns of a pair are different; the last of an even number of cells stays.
        let turns = if width % 2 == 1 { width } else { width - 1 };
        let pairs = (1..=(turns - 1) / 2).map(|step| vec![0, step]);
        let staying = (turns < width).then(|| vec![0, turns]);
        return Some(equal(width, size, turns, pairs.chain(staying).collect()));
    }
    let windows = (1..=(width - 1) / 2).map(|factor| {
        let inverse = (1..width).find(|inverse| inverse * factor % width == 1)?;
        Some((0..size).map(|place| inverse * place % width).collect())
    });
    if is_prime(width) { Some(equal(width, size, width, windows.collect::<Option<_>>()?)) } else { None }
}

fn equal(width: u64, size: u64, turns: u64, mut blocks: Vec<Vec<u64>>) -> Design {
    for block in &mut blocks {
        block.sort_unstable();
    }
    let weights = vec![1; blocks.len()];
    Design::new([width, size, turns], blocks, weights)
}
