//! Sealed boxes: libsodium's `crypto_box_seal`, which only the owner of the private key can open, and not the sealer.

use crypto_secretbox::aead::Aead;
use crypto_secretbox::{Key, KeyInit, Nonce, XSalsa20Poly1305};
use curve25519_dalek::MontgomeryPoint;
use salsa20::cipher::consts::U10;
use salsa20::hsalsa;
use sha2::{Digest, Sha512};

use crate::errors::{Error, Result};
use crate::formats::bytes::{Purpose, hash, hash_for};

/// The bytes by which a sealed box is longer than its content.
pub(crate) const SEAL_BYTES: usize = 48;

/// Seal bytes to a public key; `secret` is the box's own, 32 random bytes that are used once.
///
/// # Errors
/// `Format`: the public key has small order.
pub(crate) fn seal(secret: &[u8; 32], to: &[u8; 32], plain: &[u8]) -> Result<Vec<u8>> {
    let ephemeral = MontgomeryPoint::mul_base_clamped(*secret).to_bytes();
    let key = Key::from(hsalsa::<U10>(&x25519(secret, to)?.into(), &[0; 16].into()));
    let nonce = Nonce::from(hash::<24>(&[&ephemeral, to], ""));
    let sealed = XSalsa20Poly1305::new(&key).encrypt(&nonce, plain);
    let sealed = sealed.map_err(|_| Error::usage("a report is too long to be sealed: shorten it"))?;
    Ok([&ephemeral[..], &sealed].concat())
}

/// Seal so that every client with this key and content makes the same box.
///
/// Privacy: a holder of the key can test guesses of the content against the box.
///
/// # Errors
/// `Format`: the public key has small order.
pub(crate) fn seal_alike(key: &[u8; 32], to: &[u8; 32], plain: &[u8]) -> Result<Vec<u8>> {
    let seed: [u8; 32] = hash_for(&[to, plain], Purpose { person: "seal alike", key, salt: &[] });
    let mut secret = [0; 32];
    secret.copy_from_slice(&Sha512::digest(seed)[..32]);
    seal(&secret, to, plain)
}

/// Return the shared secret of X25519 (RFC 7748).
///
/// The scalar is not reduced modulo the order of the group, because a product with a point of another order would
/// differ.
///
/// # Errors
/// `Format`: the public key has small order, so that anybody knows the product.
pub(crate) fn x25519(secret: &[u8; 32], point: &[u8; 32]) -> Result<[u8; 32]> {
    let shared = MontgomeryPoint(*point).mul_clamped(*secret).to_bytes();
    if shared == [0; 32] {
        return Err(Error::format("a key to seal to is not a valid X25519 public key: fetch the campaign file again"));
    }
    Ok(shared)
}
