//! Makes the reports of one checked campaign file: it turns a value into a sealed report; all reports of a stream have
//! one length.

use std::collections::HashSet;

use curve25519_dalek::RistrettoPoint;

use crate::campaigns::campaign::{Campaign, Stream};
use crate::campaigns::keys::PublicKey;
use crate::discovery::oblivious::{PendingDiscovery, public_key_of};
use crate::discovery::report::{DiscoveryFormat, Name};
use crate::errors::{Error, Kind, Result};
use crate::formats::times::time_text;
use crate::memory::{has_answer, remembered};
use crate::oracles::mechanism::Mechanism;
use crate::randomness::Randomness;
use crate::store::Store;
use crate::trust::delegation::CampaignSignature;
use crate::trust::log::CampaignLog;
use crate::trust::policy::Policy;
use crate::values::dictionary::{Dictionary, item_of, other_item};
use crate::values::items::{fault_of_text, normal};
use crate::values::numbers::Bin;
use crate::values::strata::Coordinates;
use crate::wire::sealing::{seal, x25519};

/// A campaign file with the files that came with it; no file is verified yet.
pub(crate) struct Offer {
    pub(crate) campaign: Campaign,
    pub(crate) signature: Option<CampaignSignature>,
    pub(crate) log: Option<CampaignLog>,
    /// The bytes of the dictionary, one item a line, text or gzip.
    pub(crate) dictionary: Option<Vec<u8>>,
}

/// Makes reports of one campaign file. The caller charges each report before it is made.
pub(crate) struct ReportMaker {
    pub(crate) campaign: Campaign,
    /// Keeps the memory's answers.
    store: Store,
    dictionary: Option<Dictionary>,
    /// When the first of the keys that vouch expires, in milliseconds since 1970.
    vouched_until: i64,
    discovery: Option<DiscoveryFormat>,
    evaluator: Option<RistrettoPoint>,
    /// The only hosts of which addresses are told; none: those of all.
    hosts: Option<HashSet<String>>,
}

impl ReportMaker {
    /// Check an offered campaign with the policy, and return the maker of its reports.
    ///
    /// # Errors
    /// `Untrusted`: the policy refuses it. `Format`: the dictionary is missing or wrong, the hash key is withheld, or a
    /// public key is no such key.
    pub(crate) fn open(offer: Offer, policy: &Policy, store: &Store, now: i64) -> Result<Self> {
        let Offer { campaign, signature, log, dictionary } = offer;
        // The policy is checked first, so that no long file is read for a campaign that the policy refuses.
        let vouched_until = policy.check(&campaign, signature.as_ref(), now)?;
        let dictionary = dictionary_of(&campaign, dictionary.as_deref(), policy.max_dictionary_bytes())?;
        // An invalid public key is detected before any report is charged.
        let keys = &campaign.keys;
        for party in [Some(&keys.analyzer), keys.aux_server.as_ref()].into_iter().flatten() {
            x25519(&[1; 32], &party.key)?;
        }
        let evaluator = keys.evaluator.as_ref().map(|party| public_key_of(&party.key)).transpose()?;
        let discovery = discovery_format_of(&campaign)?;
        // Kept last: a client that kept an epoch which it cannot report under could not go back to the one before.
        policy.keep(&campaign, signature.as_ref(), log.as_ref(), store)?;
        let (store, hosts) = (store.clone(), policy.hosts_for(&campaign));
        Ok(Self { campaign, store, dictionary, vouched_until, discovery, evaluator, hosts })
    }

    /// Require that the keys which vouch, and those of these streams, are valid now.
    ///
    /// # Errors
    /// `NoValidKey`, `Untrusted`.
    pub(crate) fn require_valid(&self, streams: &[Stream], now: i64) -> Result<()> {
        let id = &self.campaign.id;
        let mut keys = streams.iter().flat_map(|&stream| keys_of(&self.campaign, stream));
        if keys.any(|key| now < key.not_before || key.not_after <= now) {
            let cure = "fetch the newest campaign, or set the device's clock";
            return Err(Error::new(Kind::NoValidKey, format!("a key of campaign {id} is not valid now: {cure}")));
        }
        if now < self.vouched_until {
            return Ok(());
        }
        let until = time_text(self.vouched_until);
        Err(Error::untrusted(format!(
            "the keys that vouch for campaign {id} were valid until {until}: fetch the newest campaign and its signature"
        )))
    }

    /// Require that the campaign carries a stream.
    ///
    /// # Errors
    /// `Usage`: it does not.
    pub(crate) fn require_stream(&self, stream: Stream) -> Result<()> {
        match stream {
            Stream::Reports => self.require_mechanism().map(drop),
            Stream::Discovery => self.require_discovery().map(drop),
        }
    }

    /// Return the format of discovery reports.
    ///
    /// # Errors
    /// `Usage`: the campaign has none.
    pub(crate) fn require_discovery(&self) -> Result<&DiscoveryFormat> {
        let none = || Error::usage(format!("campaign {} carries no discovery reports", self.campaign.id));
        self.discovery.as_ref().ok_or_else(none)
    }

    /// Return whether the client repeats an answer of this epoch, which was charged when it was drawn.
    ///
    /// # Errors
    /// `Store`, `Format`: the store cannot be read, or has no room for a first answer; so nothing is charged for it.
    pub(crate) fn repeats(&self) -> Result<bool> {
        Ok(self.campaign.memory && has_answer(&self.store, &self.campaign)?)
    }

    /// Return a sealed frequency report; no value gives one of "other", drawn without the memory.
    ///
    /// `due` is when it is sent, in milliseconds since 1970: with noise of the mixes it names the window of this
    /// moment.
    ///
    /// Randomness: the words of the number and of the answer, then the secret of each box, the inner one first.
    ///
    /// # Errors
    /// `Usage`: the campaign carries no frequency reports. With a memory also those of `remembered`.
    pub(crate) fn report(
        &self,
        value: Option<&str>,
        by: &Coordinates,
        due: i64,
        random: &mut dyn Randomness,
    ) -> Result<Vec<u8>> {
        let (campaign, mechanism) = (&self.campaign, self.require_mechanism()?);
        let item =
            value.map_or_else(|| other_item(mechanism.domain()), |value| self.item_of(value, by, mechanism, random));
        let mut draw = || mechanism.report(item, random);
        let remembers = campaign.memory && value.is_some();
        let packed = if remembers { remembered(&self.store, campaign, item, draw)? } else { draw() };
        if packed.len() != mechanism.report_bytes() {
            return Err(Error::format("an answer in the memory has another length than reports: restore the store"));
        }
        let binding = campaign.binding(Stream::Reports);
        let sealed = seal(&random.secret(), &campaign.keys.analyzer.key, &[&binding[..], &packed].concat())?;
        let (Some(_), Some(aux_server)) = (&campaign.noise, &campaign.keys.aux_server) else {
            let stratum = campaign.strata.as_ref().map(|strata| strata.stratum_of(by));
            return Ok([stratum.unwrap_or_default(), sealed].concat());
        };
        let window = (campaign.starts(0).at(due) / 1000).to_le_bytes();
        let layer = seal(&random.secret(), &aux_server.key, &[&binding[..], &window, &sealed].concat())?;
        Ok([&window[..], &layer].concat())
    }

    /// Return a sealed discovery report of a campaign with a hash key.
    ///
    /// The report is a blank without a value, for a value that is too long, and in an oblivious campaign.
    ///
    /// Randomness: a secret; before it 8 words for a blank.
    ///
    /// # Errors
    /// `Usage`: the campaign carries no discovery reports.
    pub(crate) fn discovery_report(&self, value: Option<&str>, random: &mut dyn Randomness) -> Result<Vec<u8>> {
        let format = self.require_discovery()?;
        let hash_key = self.campaign.discovery.as_ref().and_then(|terms| terms.hash_key.as_ref());
        match (self.told_of(value, format), hash_key) {
            (Some(told), Some(key)) => format.report(Some(&told), &Name::keyed(format, key, &told), &random.secret()),
            _ => format.blank(random),
        }
    }

    /// Begin a discovery report whose name the evaluator makes; this is possible only in an oblivious campaign.
    ///
    /// # Errors
    /// `Usage`: the campaign has no evaluator.
    pub(crate) fn pending_discovery(
        &self,
        value: Option<&str>,
        random: &mut dyn Randomness,
    ) -> Result<PendingDiscovery> {
        let none = || Error::usage(format!("campaign {} has no evaluator: use discovery_report", self.campaign.id));
        let (format, evaluator) = (self.require_discovery()?, self.evaluator.ok_or_else(none)?);
        PendingDiscovery::begin(format, evaluator, self.told_of(value, format), random)
    }

    /// Return the text of a value; none if the text is in the dictionary, or may be no item whatever its length.
    pub(crate) fn new_of(&self, value: &str) -> Option<String> {
        let text = self.text_of(value);
        let is_listed = self.dictionary.as_ref().is_some_and(|dictionary| dictionary.position(&text).is_some());
        (!is_listed && fault_of_text(&text).is_none()).then_some(text)
    }

    /// Return the text to discover in a value; none if there is no such text, or if the text is too long.
    fn told_of(&self, value: Option<&str>, format: &DiscoveryFormat) -> Option<String> {
        value.and_then(|value| self.new_of(value)).filter(|text| !format.is_too_long(text))
    }

    fn require_mechanism(&self) -> Result<&Mechanism> {
        let id = &self.campaign.id;
        let none = || Error::usage(format!("campaign {id} carries no frequency reports, only discovery"));
        self.campaign.mechanism.as_ref().ok_or_else(none)
    }

    fn item_of(&self, value: &str, by: &Coordinates, mechanism: &Mechanism, random: &mut dyn Randomness) -> u64 {
        let listed = |text: &str| item_of(text, self.dictionary.as_ref(), mechanism.domain());
        let item = match self.campaign.number.as_ref().map(|numbers| numbers.bin_of(value, random)) {
            Some(Bin::Item(item)) => item,
            Some(Bin::Name(name)) => listed(&name),
            None => listed(&self.text_of(value)),
        };
        self.campaign.strata.as_ref().map_or(item, |strata| strata.cell_of(item, by))
    }

    /// Return the normal spelling of a value, or the part of an address that is told; empty if it is no address.
    fn text_of(&self, value: &str) -> String {
        match &self.campaign.url {
            Some(addresses) => addresses.item_of(value, self.hosts.as_ref()).unwrap_or_default(),
            None => normal(value),
        }
    }
}

/// Read the dictionary that the campaign names, if it names one, of at most `most` bytes, packed and unpacked.
fn dictionary_of(campaign: &Campaign, bytes: Option<&[u8]>, most: usize) -> Result<Option<Dictionary>> {
    let Some(listed) = &campaign.dictionary else { return Ok(None) };
    let missing = || Error::format(format!("the dictionary of campaign {} is missing: give its file", campaign.id));
    let dictionary = Dictionary::parse(bytes.ok_or_else(missing)?, listed.items, most as u64)?;
    if dictionary.len() == listed.items && dictionary.digest() == listed.digest {
        return Ok(Some(dictionary));
    }
    Err(Error::format("the dictionary is not the campaign's: give the one that came with the file"))
}

fn discovery_format_of(campaign: &Campaign) -> Result<Option<DiscoveryFormat>> {
    let (Some(terms), Some(aux_server)) = (&campaign.discovery, &campaign.keys.aux_server) else { return Ok(None) };
    if terms.hash_key.is_none() && !terms.is_oblivious {
        let id = &campaign.id;
        return Err(Error::format(format!(
            "this file of campaign {id} is redacted and holds no hash key: give the file that is not redacted"
        )));
    }
    Ok(Some(DiscoveryFormat {
        binding: campaign.binding(Stream::Discovery),
        max_value_bytes: terms.max_value_bytes,
        analyzer: campaign.keys.analyzer.key,
        aux_server: aux_server.key,
    }))
}

/// Return the public keys that reports of a stream need.
fn keys_of(campaign: &Campaign, stream: Stream) -> impl Iterator<Item = &PublicKey> {
    let (keys, discovers) = (&campaign.keys, stream == Stream::Discovery);
    let aux_server = keys.aux_server.as_ref().filter(|_| discovers || campaign.noise.is_some());
    let evaluator = keys.evaluator.as_ref().filter(|_| discovers);
    [Some(&keys.analyzer), aux_server, evaluator].into_iter().flatten()
}
