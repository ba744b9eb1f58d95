//! Subsets in a report: as their rank among all subsets, as a list or as a bitmap.

use num_bigint::BigUint;

const TABLE_LIMIT: u64 = 1 << 26;

/// The form of a subset on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// The place among all subsets.
    Rank,
    /// The cells, each in the same number of bits.
    List,
    /// One bit for each cell.
    Bitmap,
}

/// A strictly ascending list of `count` integers below `bound`, and its form on the wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SubsetField {
    pub(crate) form: Form,
    pub(crate) bound: u64,
    pub(crate) count: u64,
}

impl SubsetField {
    /// Return the field of subsets: a rank if its table is small, else the shorter of a list and a bitmap.
    ///
    /// `bound` is at most 2**31, and `count` at most 2**16 and below `bound`.
    pub(crate) fn new(bound: u64, count: u64) -> Self {
        let steps = 4 * count * (bound - count + 1);
        let has_table = steps <= TABLE_LIMIT && {
            let limbs = (binomial(bound, count) - 1u32).bits().div_ceil(32).max(1);
            steps * limbs <= TABLE_LIMIT
        };
        let is_list = count * u64::from(value_bits(bound)) < bound;
        let form = if has_table { Form::Rank } else { [Form::Bitmap, Form::List][usize::from(is_list)] };
        Self { form, bound, count }
    }

    /// Return the number of codes; each code of a report is below it.
    pub(crate) fn codes(self) -> BigUint {
        match self.form {
            Form::Rank => binomial(self.bound, self.count),
            Form::List => BigUint::from(1u32) << (self.count * u64::from(value_bits(self.bound))),
            Form::Bitmap => BigUint::from(1u32) << self.bound,
        }
    }

    /// Return the integer of a subset, given as ascending cells, with its low 64 bits first.
    pub(crate) fn code(self, cells: &[u64]) -> Vec<u64> {
        let step = u64::from(value_bits(self.bound));
        match self.form {
            Form::Rank => rank(cells).to_u64_digits(),
            Form::List => bits((0..).step_by(step as usize).zip(cells.iter().copied()), self.count * step),
            Form::Bitmap => bits(cells.iter().map(|&cell| (cell, 1)), self.bound),
        }
    }
}

/// Return the integer of values below 2**32 at their bits, in so many bits.
fn bits(values: impl Iterator<Item = (u64, u64)>, length: u64) -> Vec<u64> {
    let mut code = vec![0; length.div_ceil(64) as usize];
    for (bit, value) in values {
        let window = u128::from(value) << (bit % 64);
        for (limb, half) in code.iter_mut().skip((bit / 64) as usize).zip([window as u64, (window >> 64) as u64]) {
            *limb |= half;
        }
    }
    code
}

/// Return the sum of `C(c_i, i+1)` over the ascending cells.
fn rank(cells: &[u64]) -> BigUint {
    // The value is C(n, k), where k cells are below n. As C(n, k+1) = C(n+1, k+1) - C(n, k), the sum is what the value
    // grows by in the steps over cells.
    let (mut growing, mut n) = (Growing::default(), 0);
    for (k, &cell) in (0..).zip(cells) {
        if cell - n > k.min(cell - k) {
            growing.settle();
            (growing.value, n) = (binomial(cell, k), cell);
        }
        for next in n + 1..=cell {
            growing.times(next, next - k);
        }
        growing.times_counted(cell + 1, k + 1);
        n = cell + 1;
    }
    growing.settle();
    growing.sum
}

fn binomial(of: u64, size: u64) -> BigUint {
    let mut growing = Growing::default();
    let steps = size.min(of - size);
    for step in 1..=steps {
        growing.times(of - steps + step, step);
    }
    growing.settle();
    growing.value
}

/// An integer that grows by fractions, and the sum of what it grew by in some steps.
///
/// The long integers are changed only when the fractions of several steps fill a word, because this takes most of the
/// time. Until then the value is `value * above / below`, and the sum is `sum + value * counted / below`.
struct Growing {
    sum: BigUint,
    value: BigUint,
    above: u64,
    below: u64,
    counted: u64,
}

impl Default for Growing {
    fn default() -> Self {
        Self { sum: BigUint::ZERO, value: BigUint::from(1u32), above: 1, below: 1, counted: 0 }
    }
}

impl Growing {
    /// Multiply the value by above / below, which is at least 1 and gives an integer; both are below 2**32.
    fn times(&mut self, above: u64, below: u64) {
        if self.above.checked_mul(above).is_none() {
            self.settle();
        }
        // `below` and `counted` never exceed `above`, because the value never falls.
        self.counted *= below;
        self.above *= above;
        self.below *= below;
    }

    /// Multiply as `times`, and add to the sum what the value grows by.
    fn times_counted(&mut self, above: u64, below: u64) {
        self.times(above, below);
        self.counted += self.above / above * (above - below);
    }

    fn settle(&mut self) {
        self.sum += &self.value * self.counted / self.below;
        self.value = &self.value * self.above / self.below;
        (self.above, self.below, self.counted) = (1, 1, 0);
    }
}

fn value_bits(bound: u64) -> u32 {
    (bound - 1).max(1).ilog2() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_sums_of_binomials() {
        // Cells that follow each other, near cells, and cells so far from each other that binomials are computed anew.
        for cells in [&[0, 1, 2, 3][..], &[3, 4, 9, 11, 30], &[5, 4_000_000, 16_000_000], &[1 << 31]] {
            let plain =
                (1..).zip(cells).map(|(size, &cell)| if cell < size { BigUint::ZERO } else { plain(cell, size) });
            assert_eq!(rank(cells), plain.sum(), "{cells:?}");
        }
        assert_eq!(binomial(1000, 269).bits(), 835);
    }

    fn plain(of: u64, size: u64) -> BigUint {
        let above: BigUint = (of - size + 1..=of).map(BigUint::from).product();
        above / (1..=size).map(BigUint::from).product::<BigUint>()
    }
}
