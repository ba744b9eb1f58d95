//! Draws many events of one probability together.

use crate::randomness::Randomness;

const DIGITS: u32 = 8;

/// Draw `lanes` times 64 bits, each set with probability exactly threshold / 2**64.
///
/// All bits are drawn in parallel. For each bit, its own random number is compared with the threshold, from the highest
/// binary digit down. After eight digits one bit in 256 is undecided, and its other digits are drawn separately.
pub(crate) fn event_bits(threshold: u64, lanes: usize, random: &mut dyn Randomness) -> Vec<u64> {
    // The bits of each lane, and which of them are undecided.
    let mut drawn = vec![(0u64, u64::MAX); lanes];
    for digit in 0..DIGITS {
        let one = threshold << digit >> 63 == 1;
        for (bits, undecided) in &mut drawn {
            let word = random.word();
            if one {
                *bits |= *undecided & !word;
                *undecided &= word;
            } else {
                *undecided &= !word;
            }
        }
    }
    let rest = threshold & (u64::MAX >> DIGITS);
    for (bits, undecided) in &mut drawn {
        while *undecided != 0 {
            let bit = *undecided & undecided.wrapping_neg();
            if random.word() >> DIGITS < rest {
                *bits |= bit;
            }
            *undecided ^= bit;
        }
    }
    drawn.into_iter().map(|(bits, _)| bits).collect()
}
