//! Policies, and whether a client reports to a campaign.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;

use serde_json::Value;

use super::signatures::SAID as SIGNED;
use super::support::{campaign, entries, require_refused, text};
use crate::errors::{Kind, Result};
use crate::formats::bytes::hex;
use crate::formats::times::parse_time;
use crate::store::Store;
use crate::trust::delegation::CampaignSignature;
use crate::trust::policy::Policy;

/// What a refusal says, by the reason in the vectors, besides the reasons of signatures.
const SAID: &[(&str, &[&str])] = &[
    ("malformed", &["the policy"]),
    ("another_campaign", &["the policy is for"]),
    ("epsilon", &["epsilon of a client's frequency reports"]),
    ("discovery_epsilon", &["epsilon of discovery"]),
    ("noise_epsilon", &["epsilon of noise of the mixes"]),
    ("keyed", &["are keyed, the policy demands oblivious"]),
    ("delta", &["delta of campaign"]),
    ("min_batch", &["minimum batch of"]),
    ("layer", &["asks a sample in layer"]),
    ("hosts", &["names no hosts"]),
    ("axes", &["breaks reports down"]),
    ("public_strata", &["number of public strata"]),
    ("take", &["allows at most the"]),
    ("least_share", &["of all clients, the policy demands"]),
    ("report_bytes", &["length of a report"]),
    ("unsigned", &["is unsigned"]),
];

fn policy(entry: &Value) -> Result<Policy> {
    Policy::parse(entry["policy"].to_string().as_bytes())
}

fn signature(entry: &Value) -> Result<Option<CampaignSignature>> {
    entry.get("signature").map(|said| CampaignSignature::of(said, "the signature")).transpose()
}

/// Accept the entry's campaign with this signature, and return when the first of the keys that vouch expires.
fn accept(entry: &Value, signature: Option<&CampaignSignature>, store: &Store) -> Result<i64> {
    let (policy, now) = (policy(entry)?, parse_time(text(entry, "at")).unwrap());
    let campaign = campaign(text(entry, "campaign"));
    let until = policy.check(&campaign, signature, now)?;
    policy.keep(&campaign, signature, None, store).map(|()| until)
}

fn check(entry: &Value, store: &Store) -> Result<i64> {
    policy(entry)?;
    accept(entry, signature(entry)?.as_ref(), store)
}

#[test]
fn what_keeps_the_limits_is_accepted() {
    let entries = entries("policies", "accept");
    assert!(entries.len() >= 28);
    for entry in entries {
        let until = check(&entry, &Store::in_memory().unwrap()).unwrap();
        assert!(parse_time(text(&entry, "at")).unwrap() < until);
    }
}

#[test]
fn what_breaks_a_limit_is_refused_and_not_kept_as_the_newest() {
    let entries = entries("policies", "refuse");
    assert!(entries.len() >= 116);
    for entry in entries {
        let store = Store::in_memory().unwrap();
        let made = check(&entry, &store);
        let kind = if entry["reason"] == "malformed" { Kind::Format } else { Kind::Untrusted };
        assert_eq!(made.as_ref().unwrap_err().kind(), kind, "{entry}");
        require_refused(made, &entry, &[SAID, SIGNED].concat());
        assert_eq!(store.change(|records| records.count("")).unwrap(), 0);
    }
}

#[test]
fn delta_of_noise_is_limited_too() {
    let entry = entries("policies", "accept").into_iter().find(|entry| {
        let most = &entry["policy"]["max_noise_epsilon"];
        most.as_f64().is_some_and(|most| most > 0.0) && campaign(text(entry, "campaign")).noise.is_some()
    });
    let entry = entry.unwrap();
    let (policy, now) = (policy(&entry).unwrap(), parse_time(text(&entry, "at")).unwrap());
    let (signature, mut asking) = (signature(&entry).unwrap(), campaign(text(&entry, "campaign")));
    policy.check(&asking, signature.as_ref(), now).unwrap();
    asking.noise.as_mut().unwrap().delta = 0.5;
    let error = policy.check(&asking, signature.as_ref(), now).unwrap_err();
    assert!(error.to_string().starts_with("delta of campaign"), "{error}");
}

#[test]
fn a_policy_that_trusts_accepts_what_is_unsigned_and_names_no_campaign() {
    let (policy, store) = (Policy::trusting(), Store::in_memory().unwrap());
    assert_eq!(policy.check(&campaign("grr"), None, 0).unwrap(), i64::MAX);
    policy.keep(&campaign("grr"), None, None, &store).unwrap();
    assert_eq!(policy.campaign_id(), None);
    assert_eq!(policy.max_dictionary_bytes(), 1 << 25);
}

#[test]
fn a_restart_that_the_operator_signed_leads_out_of_a_history_that_was_kept_once() {
    let of = |side: &str| {
        entries(side, "accept").into_iter().filter(|entry| entry.get("campaign").is_some_and(|it| it == "second-epoch"))
    };
    let own = of("policies").find(|entry| entry["signature"].get("delegation").is_none()).unwrap();
    let restarted = of("signatures").find(|entry| entry["signature"]["restart"]["serial"] == 2).unwrap();
    let [by_operator, by_restart] = [&own, &restarted].map(|entry| signature(entry).unwrap());
    let folder = std::env::temp_dir().join(format!("hushcount-restart-{}", std::process::id()));
    DirBuilder::new().mode(0o700).create(&folder).unwrap();
    let path = folder.join("client.db");
    let deceive = |serial: u64| {
        let head = serde_json::json!({"epoch": 1000, "head": hex(&[0; 32]), "serial": serial});
        Store::open(&path).unwrap().change(|records| records.put("newest/vectors.second-epoch", &head)).unwrap();
    };
    // Each time the store is opened anew.
    let accepts = |signature: &Option<CampaignSignature>| {
        let made = accept(&own, signature.as_ref(), &Store::open(&path).unwrap());
        made.map_err(|error| assert_eq!(error.kind(), Kind::Untrusted)).is_ok()
    };
    deceive(1);
    assert!(!accepts(&by_operator));
    assert!(accepts(&by_restart));
    assert!(accepts(&by_operator));
    deceive(2);
    assert!(!accepts(&by_restart));
    std::fs::remove_dir_all(&folder).unwrap();
}
