//! Blind RSA signatures: RSABSSA-SHA384-PSS-Deterministic of RFC 9474, with a modulus of 2048 bits and exponent 65537.
//!
//! This arithmetic is not constant in time. It hides the message from the issuer, and not from other programs of the
//! device.

use num_bigint::BigUint;
use sha2::{Digest, Sha384};

/// Bytes of a modulus, a blinded message and a signature.
pub(crate) const KEY_BYTES: usize = 256;
/// Bytes of the salt of a message.
pub(crate) const SALT_BYTES: usize = 48;
/// Bytes of a blinding: 128 bits above the modulus, so that it is uniform up to 2^-128.
pub(crate) const BLIND_BYTES: usize = KEY_BYTES + 16;
const HASH_BYTES: usize = 48;
const BLOCK_BYTES: usize = KEY_BYTES - HASH_BYTES - 1;
const EXPONENT: u32 = 65537;

/// An issuer's public key.
#[derive(Clone, Debug)]
pub(crate) struct Modulus {
    octets: [u8; KEY_BYTES],
    number: BigUint,
}

impl Modulus {
    /// Return the modulus of big-endian bytes; none unless it has 2048 bits and is odd.
    pub(crate) fn parse(octets: &[u8]) -> Option<Self> {
        let octets: [u8; KEY_BYTES] = octets.try_into().ok()?;
        // An even modulus has no inverse of some blindings.
        let fits = octets[0] > 127 && octets[KEY_BYTES - 1] % 2 == 1;
        fits.then(|| Self { octets, number: BigUint::from_bytes_be(&octets) })
    }

    /// The big-endian bytes.
    pub(crate) fn octets(&self) -> &[u8; KEY_BYTES] {
        &self.octets
    }

    /// Return the blinded message (RFC 9474, section 4.2); `blinding` has uniform bytes, which the caller keeps.
    pub(crate) fn blinded(&self, message: &BigUint, blinding: &[u8; BLIND_BYTES]) -> [u8; KEY_BYTES] {
        let factor = BigUint::from_bytes_be(blinding) % &self.number;
        bytes_of(&(message * self.raised(&factor) % &self.number))
    }

    /// Return the signature of the message (RFC 9474, section 4.4); none if the issuer's answer is no signature.
    pub(crate) fn unblinded(
        &self,
        message: &BigUint,
        blinding: &[u8; BLIND_BYTES],
        answer: &[u8],
    ) -> Option<[u8; KEY_BYTES]> {
        if answer.len() != KEY_BYTES {
            return None;
        }
        let inverse = (BigUint::from_bytes_be(blinding) % &self.number).modinv(&self.number)?;
        let signature = BigUint::from_bytes_be(answer) * inverse % &self.number;
        (self.raised(&signature) == *message).then(|| bytes_of(&signature))
    }

    fn raised(&self, number: &BigUint) -> BigUint {
        number.modpow(&BigUint::from(EXPONENT), &self.number)
    }
}

/// Return EMSA-PSS with SHA-384 and MGF1 (RFC 8017, section 9.1.1), as a number below 2^2047.
pub(crate) fn encoded(message: &[u8], salt: &[u8; SALT_BYTES]) -> BigUint {
    let hash = Sha384::new().chain_update([0; 8]).chain_update(Sha384::digest(message)).chain_update(salt).finalize();
    let mut whole = [0; KEY_BYTES];
    whole[BLOCK_BYTES - SALT_BYTES - 1] = 1;
    whole[BLOCK_BYTES - SALT_BYTES..BLOCK_BYTES].copy_from_slice(salt);
    for (counter, block) in whole[..BLOCK_BYTES].chunks_mut(HASH_BYTES).enumerate() {
        let mask = Sha384::new().chain_update(hash).chain_update((counter as u32).to_be_bytes()).finalize();
        block.iter_mut().zip(mask).for_each(|(byte, mask)| *byte ^= mask);
    }
    whole[BLOCK_BYTES..KEY_BYTES - 1].copy_from_slice(&hash);
    whole[KEY_BYTES - 1] = 0xbc;
    whole[0] &= 0x7f;
    BigUint::from_bytes_be(&whole)
}

/// Return the big-endian bytes of a number below a modulus.
fn bytes_of(number: &BigUint) -> [u8; KEY_BYTES] {
    let mut bytes = [0; KEY_BYTES];
    for (byte, digit) in bytes.iter_mut().rev().zip(number.to_bytes_le()) {
        *byte = digit;
    }
    bytes
}
