//! A campaign file that was read and checked, and the facts that follow from it.

use super::keys::PublicKeys;
use super::noise::Noise;
use super::sample::Sample;
use super::sections::{DiscoveryTerms, Listed, Shuffle};
use super::windows::{ListedWindows, Starts};
use crate::errors::{Error, Result};
use crate::formats::bytes::hash;
use crate::oracles::mechanism::Mechanism;
use crate::passes::terms::PassTerms;
use crate::values::numbers::Numbers;
use crate::values::strata::Strata;
use crate::values::urls::Addresses;
use crate::wire::sealing::SEAL_BYTES;

/// The longest campaign file.
pub(crate) const CAMPAIGN_BYTES: usize = 1 << 20;
/// The name of the file in messages.
pub(crate) const NAME: &str = "the campaign file";
/// The length of a binding.
pub(crate) const BINDING_BYTES: usize = 16;
/// A report with noise names its window by so many bytes, openly and in its layer.
pub(crate) const WINDOW_BYTES: usize = 8;
const HASH_BYTES: usize = 32;
const LENGTH_BYTES: usize = 2;

/// The two streams of a campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stream {
    /// Frequency reports.
    Reports,
    /// Discovery reports.
    Discovery,
}

impl Stream {
    /// The stream's name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Reports => "reports",
            Self::Discovery => "discovery",
        }
    }
}

/// A campaign file that was read and checked; not yet whether its signature is right and its cost is allowed.
pub(crate) struct Campaign {
    pub(crate) id: String,
    pub(crate) epoch: u64,
    pub(crate) fingerprint: [u8; 32],
    pub(crate) terms: [u8; 32],
    pub(crate) previous: Option<[u8; 32]>,
    pub(crate) head: [u8; 32],
    /// None if there are no frequency reports; with noise of the mixes the mechanism that tells the item itself.
    pub(crate) mechanism: Option<Mechanism>,
    /// Local epsilon of one frequency report; 0 without frequency reports, and with noise.
    pub(crate) epsilon: f64,
    pub(crate) noise: Option<Noise>,
    /// Whether clients repeat their answer to a value throughout the epoch, and the number of values for which they do.
    pub(crate) memory: bool,
    pub(crate) memory_values: u64,
    pub(crate) discovery: Option<DiscoveryTerms>,
    /// None in the open domain.
    pub(crate) dictionary: Option<Listed>,
    pub(crate) shuffle: Shuffle,
    pub(crate) collectors: Vec<String>,
    pub(crate) keys: PublicKeys,
    pub(crate) passes: Option<PassTerms>,
    /// None: windows have the length that the app or the noise states.
    pub(crate) windows: Option<ListedWindows>,
    /// None: all clients are asked.
    pub(crate) sample: Option<Sample>,
    pub(crate) number: Option<Numbers>,
    pub(crate) url: Option<Addresses>,
    pub(crate) strata: Option<Strata>,
}

impl Campaign {
    /// The number of items that a mechanism counts, "other" included, or of cells; none in the open domain.
    pub(crate) fn domain(&self) -> Option<u64> {
        let cells = self.strata.as_ref().and_then(Strata::cells);
        self.dictionary.as_ref().map(|listed| cells.unwrap_or(listed.items + 1))
    }

    /// The streams that the campaign carries.
    pub(crate) fn streams(&self) -> Vec<Stream> {
        let carried = [(Stream::Reports, self.mechanism.is_some()), (Stream::Discovery, self.discovery.is_some())];
        carried.into_iter().filter_map(|(stream, is_carried)| is_carried.then_some(stream)).collect()
    }

    /// The length of every sealed report of a stream.
    pub(crate) fn sealed_bytes(&self, stream: Stream) -> usize {
        const BOUND: usize = BINDING_BYTES + SEAL_BYTES;
        let value = self.discovery.as_ref().map_or(0, |discovery| discovery.max_value_bytes);
        let layer = if self.noise.is_some() { WINDOW_BYTES + BOUND + WINDOW_BYTES } else { 0 };
        let stratum = self.strata.as_ref().map_or(0, Strata::stratum_bytes);
        match stream {
            Stream::Reports => stratum + BOUND + self.mechanism.as_ref().map_or(0, Mechanism::report_bytes) + layer,
            Stream::Discovery => 2 * BOUND + HASH_BYTES + LENGTH_BYTES + value,
        }
    }

    /// The first 16 bytes of every plain report of a stream.
    pub(crate) fn binding(&self, stream: Stream) -> [u8; BINDING_BYTES] {
        hash(&[&self.fingerprint], stream.name())
    }

    /// When windows begin; `given` is the length of those of a campaign that states none, in milliseconds.
    pub(crate) fn starts(&self, given: i64) -> Starts {
        Starts::new(self.noise_millis().unwrap_or(given), self.windows.as_ref())
    }

    /// Require that windows whose length the campaign states are no shorter than the app allows, in milliseconds.
    ///
    /// # Errors
    /// `Untrusted`: they are shorter.
    pub(crate) fn require_windows(&self, least: i64) -> Result<()> {
        let usual = self.windows.as_ref().map(|windows| windows.usual * 1000).or(self.noise_millis());
        let Some(length) = usual.filter(|&length| length < least) else { return Ok(()) };
        let (id, length, least) = (&self.id, length / 1000, least / 1000);
        Err(Error::untrusted(format!(
            "windows of campaign {id} are of {length} s, the app allows none below {least} s: \
             do not report to it, or give smaller window_seconds"
        )))
    }

    /// The length of windows that the noise states, in milliseconds.
    fn noise_millis(&self) -> Option<i64> {
        let seconds = self.noise.as_ref().and_then(|noise| noise.seconds)?;
        i64::try_from(seconds).ok()?.checked_mul(1000)
    }
}
