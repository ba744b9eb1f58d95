//! One length whatever the value, and nothing in an error that repeats a value (tests/hushcount/test_client.py).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use hushcount::{Client, Kind, Policy, Stream, Value};
use serde_json::json;

use super::support::*;

/// Values that are listed, new, too long for an item, or no items.
const VALUES: [&str; 11] = [
    "",
    "one",
    "three",
    "four",
    "aaaaaaaaaaaaaaaaaaaaaaaa",
    "üüüüüüüüüüüü",
    "\0",
    "one\n",
    "ONE",
    "\u{feff}one",
    "\u{202e}g",
];

#[test]
fn every_value_gives_a_report_of_one_length() {
    for name in ["grr", "both", "open-domain", "sketch", "last-epoch", "axes", "public-axes", "hosts", "sites"] {
        let client = open(&file(name, &json!({"shuffle": cap(1000)})));
        let length = client.sealed_bytes(Stream::Reports);
        for value in VALUES {
            assert_eq!(client.report(value).unwrap().len(), length, "{name}: {value}");
        }
        let numbers = [0.0, -1.5, f64::NAN, f64::INFINITY, 1e300].map(|number| client.report(number));
        let long = client.report(&"x".repeat(100_000));
        for report in numbers.into_iter().chain([long]) {
            assert_eq!(report.unwrap().len(), length, "{name}");
        }
    }
}

#[test]
fn every_value_gives_a_discovery_report_of_one_length() {
    let client = open(&certain(0));
    let mut hashes = BTreeSet::new();
    for value in VALUES {
        let report = client.discovery_report(Some(value.into())).unwrap();
        assert_eq!(report.len(), client.sealed_bytes(Stream::Discovery));
        let (hash, told) = found(&report);
        let is_new = ["four", "ONE"].contains(&value) || value.len() > 20;
        assert_eq!(told.as_deref(), is_new.then_some(value));
        hashes.insert(hash);
    }
    assert_eq!(hashes.len(), VALUES.len());
    assert_eq!(found(&client.discovery_report(None).unwrap()).1, None);
}

#[test]
fn two_spellings_of_a_value_are_one_value_of_every_client() {
    let client = open(&certain(0));
    for spelling in ["gr\u{f6}\u{df}er", "gro\u{308}\u{df}er"] {
        assert_eq!(shown(&client.report(spelling).unwrap()), "größer");
    }
    let spellings = ["Vie\u{323}\u{302}t", "Vi\u{1ec7}t", "Vie\u{302}\u{323}t"];
    let seen: BTreeSet<_> =
        spellings.iter().map(|&value| found(&client.discovery_report(Some(value.into())).unwrap())).collect();
    assert_eq!(seen.len(), 1);
}

#[test]
fn a_value_is_measured_in_its_one_spelling() {
    let client = open(&certain(0));
    // The first shrinks from 36 bytes to 24, the second grows from 12 to 36.
    client.discovery_report(Some("e\u{301}".repeat(12).as_str().into())).unwrap();
    let grown = "\u{1d160}".repeat(3);
    let error = client.discovery_report(Some(grown.as_str().into())).unwrap_err();
    assert!(error.to_string().contains(" 36 bytes, must have at most 24 bytes"), "{error}");
    assert_eq!(client.report(&grown).unwrap().len(), client.sealed_bytes(Stream::Reports));
}

#[test]
fn listed_values_share_no_bin() {
    let client = open(&certain(0));
    let hash = |_| found(&client.discovery_report(Some("one".into())).unwrap()).0;
    assert_eq!((0..50).map(hash).collect::<BTreeSet<_>>().len(), 50);
}

#[test]
fn a_value_too_long_for_discovery_is_refused_and_not_named() {
    let client = open(&certain(0));
    for value in ["a".repeat(25), "ü".repeat(12) + "b", "x".repeat(100_000)] {
        let error = client.discovery_report(Some(value.as_str().into())).unwrap_err();
        assert_eq!(error.kind(), Kind::Usage);
        assert!(error.to_string().contains(" 24 bytes") && !error.to_string().contains(&value[..20]), "{error}");
    }
    assert_eq!(client.spent().unwrap().epsilon.to_bits(), 0);
}

#[test]
fn no_two_reports_are_equal() {
    let client = open(&certain(0));
    let reports: BTreeSet<_> = (0..200).map(|_| client.report("one").unwrap()).collect();
    assert_eq!(reports.len(), 200);
    let reports: BTreeSet<_> = (0..50).map(|_| client.discovery_report(Some("four".into())).unwrap()).collect();
    assert_eq!(reports.len(), 50);
}

#[test]
fn outside_the_dictionary_is_the_reserved_item() {
    let client = open(&certain(0));
    for (value, item) in [("two", "two"), ("four", "other"), ("", "other"), ("one ", "other"), ("ONE", "other")] {
        assert_eq!(shown(&client.report(value).unwrap()), item);
    }
}

#[test]
fn a_number_is_its_text_or_its_bin() {
    let changes = json!({"shuffle": cap(9), "mechanism": {"name": "grr", "epsilon": CERTAIN, "parameters": {}}});
    let mut options = options(&file("number", &changes));
    options.dictionary = Some(b"300 ms or more\n10.5 to 300 ms\n2 to 10.5 ms\nbelow 2 ms\n".to_vec());
    let client = Client::open(options).unwrap();
    for (number, bin) in [(-1.0, 3), (2.0, 2), (10.5, 1), (1e9, 0), (f64::INFINITY, 0), (f64::NAN, 4)] {
        assert_eq!(answer(&client.report(number).unwrap()), [bin], "{number}");
    }
    assert_eq!(answer(&client.report(Value::Text("2.5")).unwrap()), [2]);
}

#[test]
fn a_dictionary_must_be_the_campaigns() {
    let mut other = options(&certain(0));
    other.dictionary = Some(b"one\ntwo\nfour\nfive\n".to_vec());
    let error = Client::open(other).unwrap_err();
    assert!(error.to_string().contains("not the campaign's"), "{error}");
    let mut none = options(&certain(0));
    none.dictionary = None;
    assert_eq!(Client::open(none).unwrap_err().kind(), Kind::Format);
}

#[test]
fn a_key_that_nothing_can_be_sealed_to_is_refused_before_anything_is_charged() {
    let mut file = certain(0);
    file["keys"]["analyzer"] = json!([key_section(&[0; 32], "")]);
    let error = Client::open(options(&file)).unwrap_err();
    assert!(error.to_string().contains("not a valid X25519 public key"), "{error}");
}

#[test]
fn windows_of_no_length_are_refused() {
    for seconds in [0, u64::MAX] {
        let mut options = options(&certain(0));
        options.window_seconds = seconds;
        assert!(Client::open(options).unwrap_err().to_string().starts_with("window_seconds is "));
    }
}

#[test]
fn with_a_key_that_is_not_valid_now_nothing_is_charged() {
    let clock = Arc::new(Stopped(AtomicI64::new(NOON)));
    let mut options = options(&certain(0));
    options.clock = clock.clone();
    let client = Client::open(options).unwrap();
    clock.set(4_765_132_800_000);
    for made in [client.report("one"), client.discovery_report(None)] {
        assert_eq!(made.unwrap_err().kind(), Kind::NoValidKey);
    }
    clock.set(NOON);
    assert_eq!(client.spent().unwrap().epsilon.to_bits(), 0);
}

#[test]
fn nothing_is_made_once_the_keys_that_vouch_have_expired() {
    let entry = &vectors("policies")["accept"][0];
    let all = vectors("campaigns");
    let named = all["accept"].as_array().unwrap().iter().find(|each| each["name"] == entry["campaign"]);
    let mut options = options(&named.unwrap()["file"]);
    options.policy = Policy::parse(&serde_json::to_vec(&entry["policy"]).unwrap()).unwrap();
    // June 2026, within the time of the operator's key.
    let clock = Stopped::at(1_780_272_000_000);
    options.clock = clock.clone();
    options.signature = Some(serde_json::to_vec(&entry["signature"]).unwrap());
    let client = Client::open(options).unwrap();
    client.report("one").unwrap();
    clock.set(1_798_761_600_000);
    let error = client.report("one").unwrap_err();
    assert_eq!(error.kind(), Kind::Untrusted);
    assert!(error.to_string().contains("were valid until 2027-01-01T00:00:00.000Z"), "{error}");
}

#[test]
fn a_client_shows_no_value_and_no_key() {
    let client = open(&certain(0));
    let text = format!("{client:?}");
    assert!(text.contains("vectors.both") && text.contains(&client.fingerprint()) && text.len() < 200, "{text}");
}

#[test]
fn who_is_not_asked_reports_and_pays_nothing() {
    let folder = Folder::new();
    let store = folder.store();
    // The vectors' installation is in bucket 8065 of this layer.
    let record = json!({"id": "523d30919990d99908c69ba589e3be5d", "drawn": NOON, "layers": {}});
    folder.sql(&format!("INSERT INTO records VALUES ('installation', '{record}')"));
    for (buckets, asked) in [(json!([[8065, 8066]]), true), (json!([[0, 8065], [8066, 10000]]), false)] {
        let sample = json!({"layer": "settings-2026", "buckets": buckets});
        let mut options = options(&file("sample", &json!({"sample": sample, "shuffle": cap(9)})));
        (options.store, options.clock) = (Some(store.clone()), Stopped::at(NOON));
        let client = Client::open(options).unwrap();
        let made = client.report("one").map_err(|error| error.kind());
        assert_eq!(made.is_ok(), asked);
        assert!(asked || made == Err(Kind::NotAsked));
        assert_eq!(client.spent().unwrap().epsilon.to_bits(), 1.0f64.to_bits(), "only the one that was asked");
    }
}
