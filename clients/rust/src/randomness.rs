//! The only source of randomness, and exact draws from it.

use chacha20::cipher::{KeyIvInit, StreamCipher};
use chacha20::{ChaCha20, Key, Nonce};

use crate::errors::{Error, Result};

/// The randomness of one report: independent, uniform words, and the ephemeral secrets of its boxes.
///
/// It is an argument of all functions that draw, so that test vectors can state it.
pub(crate) trait Randomness {
    /// Draw a word of 64 bits.
    fn word(&mut self) -> u64;

    /// Draw the ephemeral secret of one box.
    fn secret(&mut self) -> [u8; 32];

    /// Draw bytes: words in order, little-endian; the length is a multiple of 8.
    fn octets(&mut self, bytes: &mut [u8]) {
        for part in bytes.chunks_exact_mut(8) {
            part.copy_from_slice(&self.word().to_le_bytes());
        }
    }
}

/// Randomness for one report: `ChaCha20` under a key that the operating system's generator draws for it.
///
/// So a failing generator stops a report before anything is charged, and a report costs one system call.
pub(crate) struct Fresh(ChaCha20);

impl Fresh {
    /// Draw a fresh key.
    ///
    /// # Errors
    /// `Store`: the operating system has no randomness.
    pub(crate) fn new() -> Result<Self> {
        let key = Key::from(fresh::<32>()?);
        Ok(Self(ChaCha20::new(&key, &Nonce::default())))
    }
}

impl Randomness for Fresh {
    fn word(&mut self) -> u64 {
        let mut word = [0; 8];
        self.0.apply_keystream(&mut word);
        u64::from_le_bytes(word)
    }

    fn secret(&mut self) -> [u8; 32] {
        let mut secret = [0; 32];
        self.0.apply_keystream(&mut secret);
        secret
    }
}

/// Draw bytes by the operating system's generator.
///
/// # Errors
/// `Store`: the operating system has no randomness.
pub(crate) fn fresh<const LENGTH: usize>() -> Result<[u8; LENGTH]> {
    let mut bytes = [0; LENGTH];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::store(format!("the system's random generator failed: {error}; no report was made")))?;
    Ok(bytes)
}

/// Draw an event of probability exactly threshold / 2**64.
pub(crate) fn event(threshold: u64, random: &mut dyn Randomness) -> bool {
    random.word() < threshold
}

/// Draw an integer that is exactly uniform on 0..bound; a word in the incomplete last interval is drawn again.
pub(crate) fn uniform(bound: u64, random: &mut dyn Randomness) -> u64 {
    let rest = (u64::MAX % bound + 1) % bound;
    loop {
        let word = random.word();
        if word <= u64::MAX - rest {
            return word % bound;
        }
    }
}
