//! The section of a campaign file on noise of the mixes.

use serde_json::Value;

use super::campaign::{Campaign, NAME};
use super::sections::{EPSILON, INSIDE};
use crate::errors::{Error, Result};
use crate::formats::fields::Fields;

const MOST_SECONDS: u64 = 366 * 86_400;
const LEAST_STEP: f64 = 1e-4;
/// The most dummies that a mix adds to a batch, but for a chance of 1e-15.
const MOST_DUMMIES: f64 = (1 << 25) as f64;
/// The shares of epsilon of an item that loses reports, and of one that gains them.
const SHARES: [f64; 2] = [0.6, 0.4];

/// Noise of the mixes: a client's budget for one window, and the length of windows unless they are listed.
#[derive(Clone, Debug)]
pub(crate) struct Noise {
    pub(crate) epsilon: f64,
    pub(crate) delta: f64,
    pub(crate) seconds: Option<u64>,
}

impl Noise {
    /// Read the section of a campaign file.
    ///
    /// # Errors
    /// `Format`: epsilon, delta or seconds is missing or out of range.
    pub(crate) fn parse(data: &Value) -> Result<Self> {
        let name = format!("{NAME}: noise");
        let fields = Fields::of(data, &name, &["epsilon", "delta"], &["seconds"])?;
        let seconds = fields.get("seconds").map(|_| fields.whole("seconds", 1, MOST_SECONDS)).transpose()?;
        Ok(Self {
            epsilon: fields.number("epsilon", EPSILON.0, EPSILON.1)?,
            delta: fields.number("delta", INSIDE.0, INSIDE.1)?,
            seconds,
        })
    }

    /// Require that the section fits the others; `has_mechanism` is whether the file has a mechanism too.
    ///
    /// # Errors
    /// `Format`: another section does not go with noise, or the mixes would add too many dummies.
    pub(crate) fn require_fit(&self, campaign: &Campaign, has_mechanism: bool) -> Result<()> {
        if self.seconds.is_some() == campaign.windows.is_some() {
            return Err(Error::format(format!("{NAME}: noise must have seconds unless windows are listed")));
        }
        let is_alone = !has_mechanism && !campaign.memory && campaign.shuffle.minimum_batch == 1;
        let is_private = campaign.strata.as_ref().is_none_or(|strata| strata.public_strata() == 1);
        let items = campaign.domain().filter(|_| is_alone && is_private && campaign.keys.aux_server.is_some());
        let Some(items) = items else {
            return Err(Error::format(format!(
                "{NAME}: noise needs a dictionary, the auxiliary server's key and minimum_batch 1, and no mechanism, \
                 memory or public axes"
            )));
        };
        let cap = campaign.shuffle.cap;
        if most_dummies(self.epsilon, self.delta, cap as f64, items as f64).is_some_and(|most| most <= MOST_DUMMIES) {
            return Ok(());
        }
        let small = format!("noise: epsilon or delta is too small for a cap of {cap} and {items} items");
        Err(Error::format(format!("{NAME}: {small}")))
    }
}

/// Return the most dummies that a mix adds to so many items: 8 standard deviations above the mean.
///
/// None: epsilon or delta is too small for the cap. The law of the dummies is in docs/wire-format.md.
fn most_dummies(epsilon: f64, delta: f64, cap: f64, items: f64) -> Option<f64> {
    let [loss, gain] = SHARES.map(|share| share * epsilon / cap);
    let step = delta / ((cap * loss).exp_m1() / loss.exp_m1());
    if step * 64f64.exp2() < 1.0 || epsilon / (2.0 * cap) < LEAST_STEP {
        return None;
    }
    let (near, far) = (tail(loss, 0.0), tail(gain, 1.0));
    let power = step * (far[0] + near[0]) / (1.0 + step * (-loss).exp() * near[0]);
    let most = (cap - 1.0).max((-power.ln() / loss).ceil());
    let cut = tail(loss, most + 1.0);
    let mass = near[0] - cut[0] + far[0];
    let mean = (near[1] - cut[1] - far[1]) / mass;
    let variance = (near[2] - cut[2] + far[2]) / mass - mean * mean;
    Some((items * (most - mean) + 8.0 * (items * variance).sqrt()).ceil())
}

/// Return the sums of j**i exp(-j rate) over j >= start, for i = 0, 1, 2.
fn tail(rate: f64, start: f64) -> [f64; 3] {
    let rest = -(-rate).exp_m1();
    let (mass, mean) = ((-rate * start).exp() / rest, (1.0 - rest) / rest);
    let second = start * start + 2.0 * start * mean + (1.0 - rest) * (2.0 - rest) / (rest * rest);
    [mass, mass * (start + mean), mass * second]
}
