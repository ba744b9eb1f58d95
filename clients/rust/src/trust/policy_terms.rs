//! The content of `policy.json`, which an app ships; clients in all languages read the same format.

use serde_json::{Value, json};

use super::signatures::VerifyKey;
use crate::campaigns::sample::MOST_LAYERS;
use crate::errors::{Error, Result};
use crate::formats::fields::{Fields, Form, IDENTIFIER};
use crate::formats::json;

/// What a campaign may learn of an address, from the least to the most.
pub(super) const TAKEN: [&str; 4] = ["site", "host", "path", "text"];
/// The greatest length of a dictionary, unless the policy states another.
pub(super) const DICTIONARY_BYTES: usize = 1 << 25;
const NAME: &str = "the policy";
const POLICY_BYTES: usize = 1 << 18;
const MOST_KEYS: usize = 100;
const LEAST_SHARE: f64 = 0.01;
const MOST_AXES: usize = 8;
const MOST_HOSTS: usize = 1000;
const HOST: Form = Form::new("LABEL.LABEL, 2 to 10 labels of [a-z0-9_-]{1,63}", |host| {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
    let labels = host.split('.');
    (2..=10).contains(&labels.clone().count())
        && labels.into_iter().all(|label| (1..=63).contains(&label.len()) && label.bytes().all(fits))
});

/// The limits of a policy, and the keys that it trusts.
#[derive(Clone, Debug)]
pub(super) struct PolicyTerms {
    /// The id of the only allowed campaign.
    pub(super) campaign_id: String,
    /// The keys that may sign the campaign, or delegate it to a publisher.
    pub(super) operator_keys: Vec<VerifyKey>,
    /// Limits the cost of a window's frequency reports, cap times epsilon; with memory, that of an epoch.
    pub(super) max_epsilon: f64,
    /// Limits the keep rule's epsilon, replace-one: twice the epsilon of add-remove.
    pub(super) max_discovery_epsilon: f64,
    /// Limits epsilon of a window with noise of the mixes; 0 refuses such campaigns, whose reports are not randomised.
    pub(super) max_noise_epsilon: f64,
    /// Refuses discovery with keyed names, with which the auxiliary server and a client together can test guesses.
    pub(super) oblivious: bool,
    /// Limits discovery's delta, replace-one, and the deltas of noise and of statements about shuffling.
    pub(super) max_delta: f64,
    /// The least allowed minimum batch.
    pub(super) min_batch: u64,
    /// The names of the app's layers: a campaign may ask a sample in these layers only.
    pub(super) layers: Vec<String>,
    /// The least share of all clients that a sample may ask.
    pub(super) least_share: f64,
    /// The most that a campaign may learn of an address, one of `TAKEN`.
    pub(super) take: String,
    /// The hosts of which a campaign may learn paths; other addresses count as "other".
    pub(super) hosts: Vec<String>,
    /// The names of the only private axes by which a campaign may break reports down.
    pub(super) axes: Vec<String>,
    /// The names of the only axes whose coordinates are told openly.
    pub(super) public_axes: Vec<String>,
    /// The most combinations of these coordinates.
    pub(super) public_strata: u64,
    /// The greatest length of a sealed report of either stream.
    pub(super) max_report_bytes: u64,
    /// The greatest length of a dictionary that a sender fetches and keeps, packed and unpacked.
    pub(super) max_dictionary_bytes: usize,
}

impl PolicyTerms {
    /// Read the bytes of `policy.json`.
    ///
    /// # Errors
    /// `Format`: the error names the field.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self> {
        let data = with_defaults(&json::parse(bytes, POLICY_BYTES, NAME)?)?;
        let known: Vec<_> = data.as_object().into_iter().flat_map(|fields| fields.keys().map(String::as_str)).collect();
        let fields = Fields::of(&data, NAME, &[], &known)?;
        fields.whole("format", 1, 1)?;
        let keys = fields.list("operator_keys", MOST_KEYS)?;
        if keys.is_empty() {
            return Err(Error::format(format!("{NAME}: operator_keys must hold at least 1")));
        }
        let keys = keys.iter().map(|key| VerifyKey::of(key, &format!("{NAME}: operator_keys")));
        Ok(Self {
            campaign_id: fields.text("campaign_id", &IDENTIFIER)?.to_owned(),
            operator_keys: keys.collect::<Result<_>>()?,
            max_epsilon: fields.number("max_epsilon", 0.0, f64::MAX)?,
            max_discovery_epsilon: fields.number("max_discovery_epsilon", 0.0, f64::MAX)?,
            max_noise_epsilon: fields.number("max_noise_epsilon", 0.0, f64::MAX)?,
            oblivious: fields.boolean("oblivious")?,
            max_delta: fields.number("max_delta", 0.0, 1.0_f64.next_down())?,
            min_batch: fields.whole("min_batch", 1, 1_000_000_000_000)?,
            layers: fields.texts("layers", MOST_LAYERS, &IDENTIFIER)?,
            least_share: fields.number("least_share", LEAST_SHARE, 1.0)?,
            take: fields.one_of("take", &TAKEN)?.to_owned(),
            hosts: fields.texts("hosts", MOST_HOSTS, &HOST)?,
            axes: fields.texts("axes", MOST_AXES, &IDENTIFIER)?,
            public_axes: fields.texts("public_axes", MOST_AXES, &IDENTIFIER)?,
            public_strata: fields.whole("public_strata", 1, 4096)?,
            max_report_bytes: fields.whole("max_report_bytes", 1, 1 << 30)?,
            max_dictionary_bytes: fields.whole("max_dictionary_bytes", 1, 1 << 28)? as usize,
        })
    }
}

/// Require the fields of a policy, and return them with the defaults of those that are absent.
fn with_defaults(data: &Value) -> Result<Value> {
    let mut all = json!({
        "format": 1, "max_discovery_epsilon": 0, "max_noise_epsilon": 0, "oblivious": false, "max_delta": 1e-6,
        "min_batch": 1000, "layers": [], "least_share": LEAST_SHARE, "take": "text", "hosts": [], "axes": [],
        "public_axes": [], "public_strata": 64, "max_report_bytes": 16384, "max_dictionary_bytes": DICTIONARY_BYTES
    });
    let optional: Vec<_> = all.as_object().into_iter().flat_map(|fields| fields.keys().map(String::as_str)).collect();
    Fields::of(data, NAME, &["campaign_id", "operator_keys", "max_epsilon"], &optional)?;
    if let (Some(all), Some(given)) = (all.as_object_mut(), data.as_object()) {
        all.extend(given.iter().map(|(field, value)| (field.clone(), value.clone())));
    }
    Ok(all)
}
