//! Uniform subsets.

use std::collections::HashSet;

use crate::randomness::Randomness;

/// Draw a uniform subset of the cells without the client's own cell, in the order of drawing.
///
/// `width` is at most 2**32, and `size` is below it. Step j of Floyd's method draws one of the first width-size+j other
/// cells; if the subset already has the drawn cell, it gets the last of these cells instead. A draw is the high half of
/// a 32-bit word times the bound. If the low half shows that the draw would favour some cells (Lemire 2019), the whole
/// subset is drawn again. So the distribution is exactly uniform.
pub(crate) fn other_cells(width: u64, size: u64, own: u64, random: &mut dyn Randomness) -> Vec<u64> {
    loop {
        let words: Vec<u64> = (0..size.div_ceil(2)).map(|_| random.word()).collect();
        let halves = words.into_iter().flat_map(|word| [word & 0xffff_ffff, word >> 32]);
        let mut chosen = HashSet::with_capacity(size as usize);
        let mut cells = Vec::with_capacity(size as usize);
        let mut fair = true;
        for (bound, half) in (width - size..width).zip(halves) {
            let product = half * bound;
            fair &= product & 0xffff_ffff >= (1 << 32) % bound;
            let mut cell = product >> 32;
            if !chosen.insert(cell) {
                cell = bound - 1;
                chosen.insert(cell);
            }
            cells.push(cell);
        }
        if fair {
            return cells.into_iter().map(|cell| cell + u64::from(cell >= own)).collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::vectors::support::Given;

    #[test]
    fn a_subset_that_would_be_drawn_too_often_is_drawn_again() {
        // Of 2**32 halves 4 are too many for 6 cells, so the half 0 is not used; 0 and 1 of the others are.
        let words = VecDeque::from([0xffff_ffff_0000_0000, 0x8000_0001_8000_0001]);
        let mut given = Given { words, secrets: VecDeque::new() };
        assert_eq!(other_cells(8, 2, 3, &mut given), [4, 7]);
        given.require_used();
    }
}
