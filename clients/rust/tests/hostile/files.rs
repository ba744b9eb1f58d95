//! Files of operators and apps: JSON, campaigns, signatures, policies, logs, dictionaries and designs.

use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use super::{attack, require_fit};
use crate::campaigns::campaign::{Campaign, Stream};
use crate::client::{Client, ClientOptions};
use crate::clock::Clock;
use crate::errors::{Kind, Result};
use crate::formats::bytes::{hash, hex, unhex};
use crate::formats::canonical_json::canonical_json;
use crate::formats::{json, times::parse_time};
use crate::oracles::design::Design;
use crate::store::Store;
use crate::trust::delegation::{CampaignSignature, verify_campaign};
use crate::trust::log::CampaignLog;
use crate::trust::policy::Policy;
use crate::trust::signatures::{VerifyKey, is_signature};
use crate::values::dictionary::Dictionary;
use crate::vectors::support::{campaign, text, vectors_of_any_text};

/// The longest reports that are made: those that a policy allows by default.
const MOST_REPORT_BYTES: usize = 16_384;
/// What making a report of an accepted campaign may say.
const REPORTING: [Kind; 4] = [Kind::Format, Kind::NotAsked, Kind::NoValidKey, Kind::Untrusted];

/// A moment at which the keys of the vectors are valid.
struct June;

impl Clock for June {
    fn now(&self) -> i64 {
        parse_time("2026-06-01T00:00:00Z").unwrap()
    }
}

/// Return the accepted entries of a subject.
fn accepted(subject: &str) -> Vec<Value> {
    vectors_of_any_text(subject)["accept"].as_array().unwrap().clone()
}

/// Return the texts of a field of the accepted entries of a subject, those that have it.
fn seeds(subject: &str, field: &str) -> Vec<Vec<u8>> {
    accepted(subject).iter().filter_map(|entry| entry.get(field)).map(|data| data.to_string().into_bytes()).collect()
}

#[test]
fn json_has_one_canonical_text() {
    let seeds: Vec<_> = accepted("canonical_json").iter().filter_map(|one| unhex(one["bytes"].as_str()?)).collect();
    attack("canonical_json", (3000, 30..=70), &seeds, &[Kind::Format], |bytes| {
        let made = canonical_json(&json::parse(bytes, 1 << 12, "the file")?);
        assert_eq!(canonical_json(&json::parse(&made, 1 << 20, "the file")?), made);
        Ok(())
    });
}

/// Return the dictionaries of the vectors' clients, by digest.
fn dictionaries() -> HashMap<[u8; 32], Vec<u8>> {
    let files = accepted("clients").into_iter().filter_map(|entry| {
        let items = entry.get("items")?.as_array()?.iter().map(|item| format!("{}\n", item.as_str().unwrap()));
        Some(items.collect::<String>().into_bytes())
    });
    files.map(|file| (Dictionary::parse(&file, 100, 1 << 20).unwrap().digest(), file)).collect()
}

/// Make one report of each stream with a campaign that was accepted.
fn report(bytes: &[u8], campaign: &Campaign, dictionaries: &HashMap<[u8; 32], Vec<u8>>, designs: &[Design]) {
    let lengths = campaign.streams().into_iter().map(|stream| campaign.sealed_bytes(stream));
    if lengths.max().unwrap_or(0) > MOST_REPORT_BYTES {
        return;
    }
    let mut options = ClientOptions::new(bytes.to_vec(), Policy::trusting());
    options.dictionary = campaign.dictionary.as_ref().and_then(|listed| dictionaries.get(&listed.digest)).cloned();
    options.designs = designs.to_vec();
    (options.store, options.clock, options.window_seconds) = (Some(Store::in_memory().unwrap()), Arc::new(June), 1);
    let client = match Client::open(options) {
        Ok(client) => client,
        Err(error) => return require_fit(&error, &REPORTING),
    };
    for stream in campaign.streams() {
        let is_oblivious = campaign.discovery.as_ref().is_some_and(|terms| terms.is_oblivious);
        let made = match stream {
            Stream::Reports => client.report_with("two", &[("platform", "linux".into())], Some(i64::MAX)),
            Stream::Discovery if is_oblivious => client.pending_discovery(Some("x".into())).map(|one| one.blank),
            Stream::Discovery => client.discovery_report(Some("x".into())),
        };
        match made {
            Ok(report) => assert_eq!(report.len(), client.sealed_bytes(stream)),
            Err(error) => require_fit(&error, &REPORTING),
        }
    }
    assert!(client.spent().unwrap().words().iter().all(|sentence| sentence.len() < 1000));
}

#[test]
fn a_campaign_is_refused_or_makes_reports() {
    let (dictionaries, policies) = (dictionaries(), seeds("policies", "policy"));
    let policies: Vec<_> = policies.iter().map(|policy| Policy::parse(policy).unwrap()).collect();
    let signatures = seeds("signatures", "signature");
    let signature = CampaignSignature::parse(&signatures[0], "the signature").unwrap();
    let mut turn = 0;
    attack("campaigns", (1200, 5..=60), &seeds("campaigns", "file"), &[Kind::Format], |bytes| {
        let campaign = Campaign::parse(bytes, &[])?;
        turn += 1;
        if let Err(error) = policies[turn % policies.len()].check(&campaign, Some(&signature), June.now()) {
            require_fit(&error, &[Kind::Untrusted]);
        }
        for moment in [i64::MIN, -1, 0, June.now(), i64::MAX] {
            let starts = campaign.starts(moment.saturating_abs());
            assert!(starts.least() > 0 && starts.at(moment) <= starts.after(moment));
        }
        report(bytes, &campaign, &dictionaries, &[]);
        Ok(())
    });
}

#[test]
fn a_signature_is_refused_or_checked() {
    let accept = accepted("signatures");
    let entry = accept.iter().find(|entry| entry["signature"].get("restart").is_some()).unwrap();
    let keys = entry["keys"].as_array().unwrap().iter();
    let keys: Vec<_> = keys.map(|key| VerifyKey::of(key, "the key").unwrap()).collect();
    let campaign = campaign(text(entry, "campaign"));
    let mut signed = 0;
    attack("signatures", (1500, 5..=30), &seeds("signatures", "signature"), &[Kind::Format], |bytes| {
        let signature = CampaignSignature::parse(bytes, "the signature")?;
        match verify_campaign(&keys, &campaign, &signature, June.now()) {
            Ok(_) => signed += 1,
            Err(error) => require_fit(&error, &[Kind::Signature]),
        }
        Ok(())
    });
    assert!(signed > 0);
    let bytes = |entry: &&Value| entry["rule"] == "bytes";
    let parts = |entry: &Value| {
        [text(&entry["keys"][0], "key"), text(&entry["signature"], "signature"), text(entry, "signed_bytes")].concat()
    };
    let seeds: Vec<_> = accept.iter().filter(bytes).map(|entry| unhex(&parts(entry)).unwrap()).collect();
    attack("bytes that are signed", (200, 0..=5), &seeds, &[Kind::Signature], |bytes| {
        let whole = bytes.split_at_checked(32).zip(bytes.get(32..).and_then(|rest| rest.split_at_checked(64)));
        let is_right = whole.is_some_and(|((key, _), (signature, message))| {
            is_signature(key.try_into().unwrap(), message, signature.try_into().unwrap())
        });
        if is_right { Ok(()) } else { Err(crate::errors::Error::new(Kind::Signature, "no")) }
    });
}

#[test]
fn a_policy_is_refused_or_followed() {
    let campaigns = ["grr", "both", "oblivious", "sample", "paths", "noise"].map(campaign);
    attack("policies", (1500, 8..=40), &seeds("policies", "policy"), &[Kind::Format], |bytes| {
        let policy = Policy::parse(bytes)?;
        for campaign in &campaigns {
            if let Err(error) = policy.check(campaign, None, 0) {
                require_fit(&error, &[Kind::Untrusted]);
            }
            let _ = policy.hosts_for(campaign);
        }
        Ok(())
    });
}

#[test]
fn a_log_is_refused_or_followed() {
    let (first, later) = (campaign("grr"), campaign("last-epoch"));
    let policy = Policy::parse(&seeds("policies", "policy")[0]).unwrap();
    attack("logs", (1000, 5..=40), &seeds("logs", "log"), &[Kind::Format], |bytes| {
        let log = CampaignLog::parse(bytes)?;
        let store = Store::in_memory()?;
        for campaign in [&first, &later] {
            if let Err(error) = policy.keep(campaign, None, Some(&log), &store) {
                require_fit(&error, &[Kind::Untrusted]);
            }
        }
        Ok(())
    });
}

fn packed(file: &[u8]) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    packer.write_all(file).unwrap();
    packer.finish().unwrap()
}

#[test]
fn a_dictionary_is_refused_or_searched() {
    let accept = accepted("dictionaries");
    let plain: Vec<_> = accept.iter().map(|entry| unhex(text(entry, "file")).unwrap()).collect();
    let gzip: Vec<_> = plain.iter().map(|file| packed(file)).collect();
    let read = |bytes: &[u8]| -> Result<()> {
        let dictionary = Dictionary::parse(bytes, 1000, 1 << 16)?;
        for (items, most) in [(dictionary.len() - 1, 1 << 16), (1000, 0)] {
            require_fit(&Dictionary::parse(bytes, items, most).err().unwrap(), &[Kind::Format]);
        }
        assert!((1..=1000).contains(&dictionary.len()));
        for text in ["", "a", "größer", super::MARK] {
            assert!(dictionary.position(text).is_none_or(|place| place < dictionary.len()));
        }
        Ok(())
    };
    attack("dictionaries", (1200, 40..=80), &plain, &[Kind::Format], |bytes| {
        read(bytes).and_then(|()| read(&packed(bytes)))
    });
    attack("packed dictionaries", (1500, 1..=10), &gzip, &[Kind::Format], read);
}

/// Return a file of designs whose digests are those of its designs, if it has the form of one.
fn named(bytes: &[u8]) -> Option<(Vec<u8>, String)> {
    let mut file: Value = serde_json::from_slice(bytes).ok()?;
    let design = file.get_mut("designs")?.get_mut(0)?;
    let cells = |block: &Value| -> Option<Vec<usize>> {
        let bitmap = unhex(block.as_str()?)?;
        Some((0..8 * bitmap.len()).filter(|cell| bitmap[cell / 8] >> (cell % 8) & 1 == 1).collect())
    };
    let blocks: Vec<_> = design["blocks"].as_array()?.iter().map(cells).collect::<Option<_>>()?;
    let text = json!([design["width"], design["size"], design["turns"], blocks, design["weights"]]).to_string();
    let digest = hex(&hash::<32>(&[text.as_bytes()], "hushcount design"));
    let name = format!("{}-{}-{digest}", design["width"], design["size"]);
    design.as_object_mut()?.insert("digest".to_owned(), digest.into());
    Some((serde_json::to_vec(&file).ok()?, name))
}

#[test]
fn a_design_is_refused_or_makes_reports() {
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/../../hushcount/designs/designs.json");
    let shipped: Value = serde_json::from_slice(&std::fs::read(shipped).unwrap()).unwrap();
    let small = shipped["designs"].as_array().unwrap().iter().filter(|design| design.to_string().len() < 3000);
    let seeds: Vec<_> = small.map(|one| json!({"format": 1, "designs": [one]}).to_string().into_bytes()).collect();
    let (dictionaries, mut file) = (dictionaries(), accepted("campaigns")[0]["file"].take());
    attack("designs", (500, 5..=40), &seeds, &[Kind::Format], |bytes| {
        let (bytes, name) = named(bytes).unwrap_or((bytes.to_vec(), String::new()));
        let designs = Design::parse(&bytes)?;
        file["mechanism"] = json!({"name": "wss", "epsilon": 1.0, "parameters": {"design": name}});
        let bytes = serde_json::to_vec(&file).unwrap();
        match Campaign::parse(&bytes, &designs) {
            Ok(campaign) => report(&bytes, &campaign, &dictionaries, &designs),
            Err(error) => require_fit(&error, &[Kind::Format]),
        }
        Ok(())
    });
}
