//! Primes: the sizes of the fields in which affine functions and pools compute.

/// 2**61 - 1, the size of the field of the fingerprints of strings.
pub(crate) const PRIME_61: u64 = (1 << 61) - 1;

/// Return the least prime that is not below a number, which is at most 2**31.
pub(crate) fn prime_at_least(least: u64) -> u64 {
    let mut candidate = least.max(2);
    while !is_prime(candidate) {
        candidate += 1;
    }
    candidate
}

/// Return whether a number is prime; the time grows with its square root.
pub(crate) fn is_prime(number: u64) -> bool {
    number > 1 && (2..=number.isqrt()).all(|factor| !number.is_multiple_of(factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primes_are_those_that_division_finds() {
        let found: Vec<u64> = (0..30).filter(|&number| is_prime(number)).collect();
        assert_eq!(found, [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]);
    }
}
