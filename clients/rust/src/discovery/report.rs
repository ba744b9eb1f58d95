//! Discovery reports: a hash of the value for the auxiliary server, and a box that the analyzer opens if the bin is
//! kept.

use crate::errors::{Error, Result};
use crate::formats::bytes::{Purpose, hash_for};
use crate::randomness::Randomness;
use crate::wire::sealing::{seal, seal_alike};

/// The length that stands for "nothing to discover".
const NOTHING: u16 = 0xffff;

/// The facts that all discovery reports of a campaign share.
#[derive(Clone)]
pub(crate) struct DiscoveryFormat {
    pub(crate) binding: [u8; 16],
    pub(crate) max_value_bytes: usize,
    pub(crate) analyzer: [u8; 32],
    pub(crate) aux_server: [u8; 32],
}

/// The name that all reports of one value share: the hash of its bin, and the key of its inner box.
pub(crate) struct Name {
    pub(crate) hash: [u8; 32],
    pub(crate) box_key: [u8; 32],
}

impl Name {
    /// Return the name of a value in a campaign with a hash key.
    pub(crate) fn keyed(format: &DiscoveryFormat, hash_key: &[u8; 32], value: &str) -> Self {
        let purpose = Purpose { key: hash_key, ..Purpose::default() };
        Self { hash: hash_for(&[&format.binding, value.as_bytes()], purpose), box_key: *hash_key }
    }

    /// Return the name of a report with nothing to discover, from 64 fresh random bytes.
    pub(crate) fn blank(fresh: &[u8; 64]) -> Self {
        let (mut hash, mut box_key) = ([0; 32], [0; 32]);
        hash.copy_from_slice(&fresh[..32]);
        box_key.copy_from_slice(&fresh[32..]);
        Self { hash, box_key }
    }
}

impl DiscoveryFormat {
    /// Make a sealed discovery report.
    ///
    /// `value`: none means "nothing to discover"; then no other report may have this name. `secret` is that of the
    /// outer box, 32 random bytes.
    ///
    /// # Errors
    /// `Format`: the value is too long, or a public key has small order.
    pub(crate) fn report(&self, value: Option<&str>, name: &Name, secret: &[u8; 32]) -> Result<Vec<u8>> {
        let inner = self.inner(value, name)?;
        seal(secret, &self.aux_server, &[&self.binding[..], &name.hash, &inner].concat())
    }

    /// Make a sealed report with nothing to discover.
    ///
    /// Randomness: 8 words for its name, then the secret.
    ///
    /// # Errors
    /// `Format`: a public key has small order.
    pub(crate) fn blank(&self, random: &mut dyn Randomness) -> Result<Vec<u8>> {
        let mut fresh = [0; 64];
        random.octets(&mut fresh);
        self.report(None, &Name::blank(&fresh), &random.secret())
    }

    /// Return the box for the analyzer, which all clients with this value and name make alike.
    ///
    /// # Errors
    /// `Format`: as `report`.
    pub(crate) fn inner(&self, value: Option<&str>, name: &Name) -> Result<Vec<u8>> {
        let plain = [&self.binding[..], &self.padded(value)?].concat();
        seal_alike(&name.box_key, &self.analyzer, &plain)
    }

    /// Pad a value to the common length.
    ///
    /// # Errors
    /// `Format`: the value is longer; the error does not repeat the value.
    pub(crate) fn padded(&self, value: Option<&str>) -> Result<Vec<u8>> {
        let (text, most) = (value.unwrap_or_default(), self.max_value_bytes);
        let long = u16::try_from(text.len()).ok().filter(|_| !self.is_too_long(text));
        let Some(long) = long else {
            return Err(Error::format(format!("a value has {} bytes, must have at most {most}", text.len())));
        };
        let length = value.map_or(NOTHING, |_| long);
        let mut whole = [&length.to_le_bytes()[..], text.as_bytes()].concat();
        whole.resize(2 + most, 0);
        Ok(whole)
    }

    /// Return whether a value is longer than discovery reports can hold.
    pub(crate) fn is_too_long(&self, value: &str) -> bool {
        value.len() > self.max_value_bytes
    }

    /// Require that a value is not longer than discovery reports can hold.
    ///
    /// # Errors
    /// `Usage`: the value is longer; the error does not repeat the value.
    pub(crate) fn require_short(&self, value: &str) -> Result<()> {
        if !self.is_too_long(value) {
            return Ok(());
        }
        let (long, most) = (value.len(), self.max_value_bytes);
        Err(Error::usage(format!("a value has {long} bytes, must have at most {most} bytes to be discovered")))
    }
}
