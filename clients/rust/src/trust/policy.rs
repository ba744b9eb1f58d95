//! The demands on a campaign before a client reports to it: the app's limits, and the keys that the app trusts.

use std::collections::HashSet;

use super::delegation::{CampaignSignature, verify_campaign};
use super::log::CampaignLog;
use super::newest;
use super::policy_terms::{DICTIONARY_BYTES, PolicyTerms, TAKEN};
use crate::campaigns::campaign::Campaign;
use crate::errors::{Error, Result};
use crate::formats::canonical_json::number_text;
use crate::store::Store;
use crate::values::strata::Strata;

/// The campaign that a client reports to, the keys that must sign it, and limits on its cost.
///
/// Privacy: a policy limits the cost of a signed campaign. A policy cannot check whether the parties keep their promises.
#[derive(Clone, Debug)]
pub struct Policy {
    /// None: any campaign file is accepted.
    terms: Option<PolicyTerms>,
}

impl Policy {
    /// Read the bytes of `policy.json`.
    ///
    /// # Errors
    /// `Format`: the error names the field.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        Ok(Self { terms: Some(PolicyTerms::parse(bytes)?) })
    }

    /// Return a policy that accepts any campaign file: only for simulations and tests, without data of people.
    #[must_use]
    pub fn trusting() -> Self {
        Self { terms: None }
    }

    /// The campaign of this policy; none if it accepts any.
    #[must_use]
    pub fn campaign_id(&self) -> Option<&str> {
        self.terms.as_ref().map(|terms| terms.campaign_id.as_str())
    }

    /// The greatest length of a dictionary that is fetched, packed and unpacked.
    pub(crate) fn max_dictionary_bytes(&self) -> usize {
        self.terms.as_ref().map_or(DICTIONARY_BYTES, |terms| terms.max_dictionary_bytes)
    }

    /// Return the only hosts of which a campaign learns addresses; none if it learns those of all.
    pub(crate) fn hosts_for(&self, campaign: &Campaign) -> Option<HashSet<String>> {
        let takes_paths = campaign.url.as_ref().is_some_and(|url| url.take == "path");
        let hosts = self.terms.as_ref().map(|terms| &terms.hosts);
        hosts.filter(|hosts| takes_paths && !hosts.is_empty()).map(|hosts| hosts.iter().cloned().collect())
    }

    /// Check a campaign, before any file that it names is fetched; return when the first of the keys that vouch
    /// expires. This time and `now` are in milliseconds since 1970.
    ///
    /// # Errors
    /// `Untrusted`: the campaign breaks the policy, or is unsigned.
    pub(crate) fn check(&self, campaign: &Campaign, signature: Option<&CampaignSignature>, now: i64) -> Result<i64> {
        let Some(terms) = &self.terms else { return Ok(i64::MAX) };
        let until = vouched_until(terms, campaign, signature, now)?;
        require_cost(terms, campaign)?;
        require_batch(terms, campaign)?;
        require_sample(terms, campaign)?;
        require_taken(terms, campaign)?;
        require_axes(terms, campaign)?;
        let lengths = campaign.streams().into_iter().map(|stream| campaign.sealed_bytes(stream));
        let longest = lengths.max().unwrap_or(0) as f64;
        let most = terms.max_report_bytes as f64;
        require_at_most(campaign, "length of a report in bytes", longest, ("max_report_bytes", most))?;
        let strata = campaign.strata.as_ref().map_or(1, Strata::public_strata) as f64;
        let most = terms.public_strata as f64;
        require_at_most(campaign, "number of public strata", strata, ("public_strata", most))?;
        Ok(until)
    }

    /// Keep the head of a campaign that was checked, durably, as the newest.
    ///
    /// `log` is the campaign's log, which is needed if the client missed an epoch.
    ///
    /// # Errors
    /// `Untrusted`: the campaign does not continue the accepted epochs. `Store`, `Format`: the newest epoch cannot be
    /// read or kept.
    pub(crate) fn keep(
        &self,
        campaign: &Campaign,
        signature: Option<&CampaignSignature>,
        log: Option<&CampaignLog>,
        store: &Store,
    ) -> Result<()> {
        if self.terms.is_none() {
            return Ok(());
        }
        newest::keep(store, campaign, log, signature)
    }
}

/// Require the policy's campaign and its signature; return when the first of the keys that vouch expires.
fn vouched_until(
    terms: &PolicyTerms,
    campaign: &Campaign,
    signature: Option<&CampaignSignature>,
    now: i64,
) -> Result<i64> {
    let (id, wanted) = (&campaign.id, &terms.campaign_id);
    if id != wanted {
        return Err(Error::untrusted(format!(
            "campaign is {id}, the policy is for {wanted}: give the campaign's own policy"
        )));
    }
    let Some(signature) = signature else {
        return Err(Error::untrusted(format!(
            "campaign {id} is unsigned, must be signed by the operator: put its signature beside the file, with .sig \
             after its name"
        )));
    };
    let vouching = verify_campaign(&terms.operator_keys, campaign, signature, now);
    let vouching = vouching.map_err(|error| Error::untrusted(error.to_string()))?;
    Ok(vouching.iter().map(|key| key.not_after).min().unwrap_or(now))
}

fn require_cost(terms: &PolicyTerms, campaign: &Campaign) -> Result<()> {
    let (times, name) = if campaign.memory {
        (campaign.memory_values, "epsilon of a client's frequency reports in an epoch")
    } else {
        (campaign.shuffle.cap, "epsilon of a client's frequency reports in a window")
    };
    let (noise, noise_delta) = campaign.noise.as_ref().map_or((0.0, 0.0), |noise| (noise.epsilon, noise.delta));
    let (epsilon, delta) = campaign.discovery.as_ref().map_or((0.0, 0.0), |rule| {
        let sides = rule.sides as f64;
        (sides * rule.epsilon, sides * rule.delta)
    });
    let delta = delta.max(campaign.shuffle.delta).max(noise_delta);
    let local = times as f64 * campaign.epsilon;
    require_at_most(campaign, name, local, ("max_epsilon", terms.max_epsilon))?;
    let most = ("max_noise_epsilon", terms.max_noise_epsilon);
    require_at_most(campaign, "epsilon of noise of the mixes", noise, most)?;
    let most = ("max_discovery_epsilon", terms.max_discovery_epsilon);
    require_at_most(campaign, "epsilon of discovery", epsilon, most)?;
    require_at_most(campaign, "delta", delta, ("max_delta", terms.max_delta))
}

/// Require a batch that is large enough, and names that no party can guess alone.
fn require_batch(terms: &PolicyTerms, campaign: &Campaign) -> Result<()> {
    let (id, batch, least) = (&campaign.id, campaign.shuffle.minimum_batch, terms.min_batch);
    if batch < least {
        return Err(Error::untrusted(format!(
            "minimum batch of campaign {id} is {batch}, the policy demands at least {least}: do not report to it, or \
             lower min_batch in the policy"
        )));
    }
    if terms.oblivious && campaign.discovery.as_ref().is_some_and(|discovery| !discovery.is_oblivious) {
        return Err(Error::untrusted(format!(
            "names of campaign {id} are keyed, the policy demands oblivious ones: do not report to it, or set oblivious \
             to false in the policy"
        )));
    }
    Ok(())
}

fn require_sample(terms: &PolicyTerms, campaign: &Campaign) -> Result<()> {
    let (id, Some(sample)) = (&campaign.id, &campaign.sample) else { return Ok(()) };
    let layer = &sample.layer;
    if !terms.layers.contains(layer) {
        let allowed = joined(&terms.layers, "no sample");
        return Err(Error::untrusted(format!(
            "campaign {id} asks a sample in layer {layer}, the policy allows {allowed}: do not report to it, or add the \
             layer to the policy"
        )));
    }
    if sample.share() < terms.least_share {
        let (share, least) = (sample.share(), terms.least_share);
        return Err(Error::untrusted(format!(
            "campaign {id} asks {share} of all clients, the policy demands at least {least}: do not report to it, or \
             lower least_share in the policy"
        )));
    }
    Ok(())
}

/// Require that a campaign learns no more of an address than the policy allows; numbers tell no more than a site.
fn require_taken(terms: &PolicyTerms, campaign: &Campaign) -> Result<()> {
    let text = if campaign.number.is_some() { "site" } else { "text" };
    let (id, taken, most) = (&campaign.id, campaign.url.as_ref().map_or(text, |url| &url.take), &terms.take);
    let rank = |take| TAKEN.iter().position(|known| *known == take).unwrap_or(TAKEN.len());
    if rank(taken) > rank(most) {
        return Err(Error::untrusted(format!(
            "campaign {id} takes the {taken} of a value, the policy allows at most the {most}: do not report to it, or \
             change take in the policy"
        )));
    }
    if campaign.url.as_ref().is_some_and(|url| url.segments > 1) && terms.hosts.is_empty() {
        return Err(Error::untrusted(format!(
            "campaign {id} takes several segments of the path of addresses, the policy names no hosts: do not report to \
             it, or add to hosts those of which it may learn paths"
        )));
    }
    Ok(())
}

/// Require that a campaign breaks reports down by no other axes than the policy names.
fn require_axes(terms: &PolicyTerms, campaign: &Campaign) -> Result<()> {
    for (axis, is_public) in campaign.strata.as_ref().map(Strata::axes).unwrap_or_default() {
        let (allowed, told, field) =
            if is_public { (&terms.public_axes, "openly by", "public_axes") } else { (&terms.axes, "by", "axes") };
        if !allowed.contains(&axis) {
            let (id, allowed) = (&campaign.id, joined(allowed, "no axis"));
            return Err(Error::untrusted(format!(
                "campaign {id} breaks reports down {told} {axis}, the policy allows {allowed}: do not report to it, or \
                 add the axis to {field} in the policy"
            )));
        }
    }
    Ok(())
}

/// Require that a value is at most the limit of a field of the policy.
fn require_at_most(campaign: &Campaign, name: &str, value: f64, (field, limit): (&str, f64)) -> Result<()> {
    // The test is not `value > limit`, which is false for NaN.
    if value <= limit {
        return Ok(());
    }
    let (id, [value, limit]) = (&campaign.id, [value, limit].map(number_text));
    Err(Error::untrusted(format!(
        "{name} of campaign {id} is {value}, the policy allows at most {limit}: do not report to it, or raise {field} in \
         the policy if that is what you promise your users"
    )))
}

fn joined(names: &[String], none: &str) -> String {
    if names.is_empty() { none.to_owned() } else { names.join(" and ") }
}
