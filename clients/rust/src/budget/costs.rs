//! What a report costs, whatever its value is.

use super::units::{DELTA_DIGITS, EPSILON_DIGITS, cost_units};
use crate::campaigns::campaign::{Campaign, Stream};
use crate::errors::{Error, Result};

/// The cost of one charge, replace-one, in units, rounded up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cost {
    /// Never 0.
    pub(crate) epsilon: u64,
    pub(crate) delta: u64,
    /// The charge pays for all reports of the epoch, because they repeat answers.
    pub(crate) lasting: bool,
}

impl Cost {
    /// Return the cost of a report of the stream.
    ///
    /// A frequency report costs its epsilon; with memory, all frequency reports of an epoch together cost
    /// `memory_values` times this epsilon. With noise, all frequency reports of a window cost the noise's (epsilon,
    /// delta), so each costs that divided by the cap. A discovery report costs the (epsilon, delta) of the keep rule,
    /// replace-one.
    ///
    /// # Errors
    /// `Usage`: the campaign has no such reports.
    pub(crate) fn of(campaign: &Campaign, stream: Stream) -> Result<Self> {
        let cost = |(epsilon, delta), times, parts| Self {
            epsilon: cost_units(epsilon, EPSILON_DIGITS, times, parts),
            delta: cost_units(delta, DELTA_DIGITS, times, parts),
            lasting: stream == Stream::Reports && campaign.noise.is_none() && campaign.memory,
        };
        let cost = match (stream, &campaign.noise, &campaign.discovery) {
            (Stream::Reports, Some(noise), _) => cost((noise.epsilon, noise.delta), 1, campaign.shuffle.cap),
            (Stream::Reports, None, _) => cost((campaign.epsilon, 0.0), campaign.memory_values, 1),
            (Stream::Discovery, _, rule) => {
                rule.as_ref().map_or(cost((0.0, 0.0), 1, 1), |rule| cost((rule.epsilon, rule.delta), rule.sides, 1))
            }
        };
        if cost.epsilon > 0 {
            return Ok(cost);
        }
        Err(Error::usage(format!("campaign {} has no {}: leave this stream out", campaign.id, stream.name())))
    }
}
