//! Reads a campaign file: each section by itself, then whether the sections fit each other.

use std::collections::BTreeSet;

use serde_json::Value;

use super::campaign::{CAMPAIGN_BYTES, Campaign, NAME};
use super::fingerprint::{fingerprint_of, fixed, terms_of};
use super::keys::PublicKeys;
use super::noise::Noise;
use super::sample::Sample;
use super::sections::{DiscoveryTerms, Listed, MechanismTerms, Shuffle};
use super::windows::ListedWindows;
use crate::errors::{Error, Kind, Result};
use crate::formats::fields::{Fields, Form, IDENTIFIER, whole_of};
use crate::formats::json;
use crate::oracles::design::Design;
use crate::oracles::mechanism::Mechanism;
use crate::passes::terms::PassTerms;
use crate::trust::log::head_of;
use crate::values::items::MOST_ITEM_BYTES;
use crate::values::numbers::Numbers;
use crate::values::strata::Strata;
use crate::values::urls::Addresses;

const MOST_COLLECTORS: usize = 16;
const NEEDED: [&str; 9] =
    ["format", "id", "epoch", "memory", "memory_values", "shuffle", "collectors", "keys", "unicode"];
const OPTIONAL: [&str; 11] = [
    "previous",
    "mechanism",
    "dictionary",
    "discovery",
    "sample",
    "passes",
    "number",
    "windows",
    "url",
    "axes",
    "noise",
];
const UNICODE: Form = Form::new("13.0", |text| text == "13.0");

impl Campaign {
    /// Read the bytes of a campaign file.
    ///
    /// `designs` are the app's, for mechanism `wss`.
    ///
    /// # Errors
    /// `Format`: the file is no campaign file, or of another format; the error names the field.
    pub(crate) fn parse(bytes: &[u8], designs: &[Design]) -> Result<Self> {
        let file = json::parse(bytes, CAMPAIGN_BYTES, NAME)?;
        if file.get("format").is_some_and(|format| whole_of(format) != Some(2)) {
            let cure = "update this client, or ask the operator for a new campaign";
            return Err(Error::format(format!("{NAME}: format must be 2: {cure}")));
        }
        let fields = Fields::of(&file, NAME, &NEEDED, &OPTIONAL)?;
        let terms = section(&fields, "mechanism", MechanismTerms::parse)?;
        let mut campaign = Self::read(&file, &fields, terms.as_ref())?;
        campaign.require_fit(terms.as_ref())?;
        campaign.mechanism = campaign.built(terms.as_ref(), designs)?;
        Ok(campaign)
    }

    /// Read all sections, but do not build the mechanism.
    fn read(file: &Value, fields: &Fields<'_>, terms: Option<&MechanismTerms>) -> Result<Self> {
        let discovery = section(fields, "discovery", DiscoveryTerms::parse)?;
        let dictionary = section(fields, "dictionary", Listed::parse)?;
        let noise = section(fields, "noise", Noise::parse)?;
        let is_oblivious = discovery.as_ref().is_some_and(|discovery| discovery.is_oblivious);
        let most = discovery.as_ref().map_or(MOST_ITEM_BYTES, |discovery| discovery.max_value_bytes);
        let listed = dictionary.as_ref();
        fields.text("unicode", &UNICODE)?;
        let previous = section(fields, "previous", |_| fields.bytes("previous"))?;
        let fixed = fixed(file, discovery.as_ref().and_then(|discovery| discovery.hash_key.as_ref()));
        let fingerprint = fingerprint_of(&fixed);
        Ok(Self {
            id: fields.text("id", &IDENTIFIER)?.to_owned(),
            epoch: fields.whole("epoch", 1, (1 << 31) - 1)?,
            fingerprint,
            terms: terms_of(fixed),
            previous,
            head: head_of(previous.as_ref(), &fingerprint),
            mechanism: None,
            epsilon: terms.map_or(0.0, |terms| terms.epsilon),
            memory: fields.boolean("memory")?,
            memory_values: fields.whole("memory_values", 1, 1000)?,
            shuffle: Shuffle::parse(needed(fields, "shuffle"))?,
            collectors: collectors_of(fields)?,
            keys: PublicKeys::parse(needed(fields, "keys"), discovery.is_some(), is_oblivious)?,
            passes: section(fields, "passes", |data| PassTerms::parse(data, is_oblivious))?,
            windows: section(fields, "windows", ListedWindows::parse)?,
            sample: section(fields, "sample", Sample::parse)?,
            number: section(fields, "number", |data| Numbers::parse(data, terms, listed, discovery.is_some()))?,
            url: section(fields, "url", |data| Addresses::parse(data, most))?,
            strata: section(fields, "axes", |data| Strata::parse(data, terms, listed, noise.is_some()))?,
            noise,
            discovery,
            dictionary,
        })
    }

    /// Require that the sections fit each other.
    fn require_fit(&self, terms: Option<&MechanismTerms>) -> Result<()> {
        let is_keyed = self.discovery.as_ref().is_some_and(|discovery| !discovery.is_oblivious);
        let wrong = if terms.is_none() && self.noise.is_none() && self.discovery.is_none() {
            "mechanism, noise or discovery is missing"
        } else if terms.is_none() && self.memory {
            "memory is of no use without a mechanism"
        } else if self.memory_values > 1 && !self.memory {
            "memory_values must be 1 if memory is false"
        } else if self.number.is_none() && terms.is_some_and(|terms| terms.name == "line") {
            "mechanism line needs number"
        } else if self.passes.is_some() && self.windows.is_some() {
            "windows must have no passes beside them"
        } else if self.number.is_some() && self.url.is_some() {
            "url must be left out if values are numbers"
        } else if is_keyed && self.url.as_ref().is_some_and(|url| url.segments > 0) {
            "url: paths can be guessed, so their discovery must have the hash oblivious"
        } else {
            let noise = self.noise.as_ref();
            return noise.map_or(Ok(()), |noise| noise.require_fit(self, terms.is_some()));
        };
        Err(Error::format(format!("{NAME}: {wrong}")))
    }

    /// Build the mechanism of the frequency reports, if there are any.
    fn built(&self, terms: Option<&MechanismTerms>, designs: &[Design]) -> Result<Option<Mechanism>> {
        let domain = self.domain();
        let built = match (&self.noise, terms) {
            (Some(_), _) => Mechanism::truthful(domain.unwrap_or_default()),
            (None, Some(terms)) => Mechanism::build(terms, domain, designs),
            (None, None) => return Ok(None),
        };
        built.map(Some).map_err(|error| match error.kind() {
            Kind::Format => Error::format(format!("{NAME}: mechanism: {error}")),
            _ => error,
        })
    }
}

/// Read a section of a campaign file that may be absent.
fn section<'a, T>(fields: &Fields<'a>, name: &str, parse: impl FnOnce(&'a Value) -> Result<T>) -> Result<Option<T>> {
    fields.get(name).map(parse).transpose()
}

/// Return a section of which `Fields::of` checked that it is there.
fn needed<'a>(fields: &Fields<'a>, name: &str) -> &'a Value {
    fields.get(name).unwrap_or(&Value::Null)
}

fn collectors_of(fields: &Fields<'_>) -> Result<Vec<String>> {
    let named = fields.texts("collectors", MOST_COLLECTORS, &IDENTIFIER)?;
    let different: BTreeSet<_> = named.iter().collect();
    if named.is_empty() || different.len() < named.len() {
        return Err(fields.wrong("collectors", "one name or several different names"));
    }
    Ok(named)
}
