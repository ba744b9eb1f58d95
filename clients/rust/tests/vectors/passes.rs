//! Passes: the bytes of the vectors, and of RFC 9578, appendix B.

use std::path::Path;

use serde_json::Value;

use super::support::{array, bytes, entries, require_refused, text};
use super::tokens::role_of;
use crate::formats::bytes::{hash, hex};
use crate::passes::asking::{Issue, Pending, asking_second, body_of, headers_of, octets_of};
use crate::passes::blind::{BLIND_BYTES, Modulus, encoded};
use crate::passes::slots::Slot;
use crate::passes::terms::PassTerms;
use crate::sender::verdict::Answer;

const DAY: i64 = 1_795_824_000;

fn pending(entry: &Value) -> Pending<'_> {
    let (campaign, name) = (text(entry, "campaign"), text(entry, "name"));
    let slot = Slot { role: role_of(entry), campaign, name, begins: entry["begins"].as_i64().unwrap() };
    Pending::new(&array(entry, "secret"), slot, Modulus::parse(&bytes(entry, "modulus")).unwrap())
}

#[test]
fn requests_and_passes_are_those_of_the_vectors() {
    let (accept, refuse) = (entries("passes", "accept"), entries("passes", "refuse"));
    assert!(accept.len() >= 4 && refuse.len() >= 3);
    for entry in accept.iter().chain(&refuse) {
        let one = pending(entry);
        assert_eq!(hex(&one.request), text(entry, "request"));
        assert_eq!(hex(&one.slot.challenge_digest()), text(entry, "challenge_digest"));
        assert_eq!(Some(asking_second(&array(entry, "secret"), one.slot.begins)), entry["second"].as_i64());
        let header = one.finished(&bytes(entry, "answer"));
        if entry.get("reason").is_some() {
            require_refused(header, entry, &[("wrong_signature", &["is no signature"])]);
        } else {
            assert_eq!(header.unwrap(), text(entry, "header"));
        }
    }
}

#[test]
fn requests_and_signatures_are_those_of_rfc_9578() {
    let mut number = 0;
    for name in ["go", "rust"] {
        let file = format!("../../tests/hushcount/passes/rfc9578_type2_{name}.json");
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        let official: Vec<Value> = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        for entry in &official {
            let (key, token, blinding) = (bytes(entry, "pkS"), bytes(entry, "token"), bytes(entry, "blind"));
            let blinding = [vec![0; BLIND_BYTES - blinding.len()], blinding].concat().try_into().unwrap();
            let modulus = Modulus::parse(&key[key.len() - 261..key.len() - 5]).unwrap();
            let message = encoded(&token[..98], &array(entry, "salt"));
            assert_eq!(hex(&modulus.blinded(&message, &blinding)), text(entry, "token_request")[6..]);
            let answer = bytes(entry, "token_response");
            assert_eq!(modulus.unblinded(&message, &blinding, &answer).unwrap(), token[98..]);
            let wrong = [&answer[..255], &[0; 256], &[&[answer[0] ^ 1], &answer[1..]].concat()].map(<[u8]>::to_vec);
            assert!(wrong.iter().all(|answer| modulus.unblinded(&message, &blinding, answer).is_none()));
            number += 1;
        }
    }
    assert!(number >= 10, "{number} entries");
}

/// Keys of two days of two collectors and an evaluator, with two periods: odd numbers that are no products of primes.
fn keys(day: u8) -> Vec<u8> {
    (0..6).flat_map(|place| [&[255 - day, place][..], &[7; 254]].concat()).collect()
}

#[test]
fn a_day_s_request_has_the_own_slots_and_only_the_campaign_s_keys() {
    let days = [0, 1].map(|day| hash(&[&keys(day)], "pass keys")).to_vec();
    let terms = PassTerms { seconds: 43_200, first: "2026-11-28".to_owned(), days };
    let collectors = ["one", "two"].map(str::to_owned);
    let issue = Issue { campaign: "features", collectors: &collectors, has_evaluator: true, terms: &terms };
    let asked = issue.pending(&[1; 32], "two", DAY + 86_400, &keys(1)).unwrap();
    let slots: Vec<_> = asked.iter().map(|one| (one.slot.name, one.slot.begins - DAY)).collect();
    assert_eq!(slots, [("two", 86_400), ("two", 129_600), ("evaluator", 86_400), ("evaluator", 129_600)]);
    assert_eq!(body_of(&asked).len(), 4 * 259);
    // The keys of the slots are the third to the sixth of the day.
    let wanted = Modulus::parse(&keys(1)[512..768]).unwrap();
    assert_eq!(asked[0].request, Pending::new(&[1; 32], asked[0].slot, wanted).request);
    assert!(headers_of(&asked, &[0; 4 * 256]).unwrap_err().to_string().contains("no signature"));
    assert!(headers_of(&asked, &[]).unwrap_err().to_string().contains("no signature"));
    for (day, served, said) in [
        (DAY, keys(1), "not those of campaign features"),
        (DAY, keys(0)[1..].to_vec(), "not those of campaign features"),
        (DAY - 86_400, keys(0), "no passes for this day"),
        (DAY + 2 * 86_400, keys(0), "no passes for this day"),
        (i64::MIN, keys(0), "no passes for this day"),
    ] {
        let refused = issue.pending(&[1; 32], "two", day, &served).err().unwrap();
        assert!(refused.to_string().contains(said), "{refused}");
    }
    assert_eq!([DAY - 1, DAY + 43_199, DAY + 43_200].map(|moment| issue.period(moment) - DAY), [-43_200, 0, 43_200]);
}

#[test]
fn an_answer_that_is_not_the_issuer_s_is_asked_again() {
    let answer = |status, content_type: &str| Answer {
        status,
        content_type: Some(content_type.to_owned()),
        retry_after: Some("120".to_owned()),
        body: br#"{"type": "urn:hushcount:problem:rule_failing"}"#.to_vec(),
        ..Answer::default()
    };
    let octets = "application/octet-stream";
    assert_eq!(octets_of(&answer(200, octets), None).unwrap().len(), 46);
    for (status, media, wanted, reason, wait) in [
        (200, octets, Some(45), "wrong_length", 0),
        (200, "text/html", None, "no_issuer", 0),
        (202, octets, None, "no_issuer", 0),
        (404, "text/html", None, "no_issuer", 0),
        (503, "application/problem+json", None, "rule_failing", 120_000),
        (409, "application/problem+json", None, "rule_failing", 0),
    ] {
        let told = octets_of(&answer(status, media), wanted).unwrap_err();
        assert_eq!((&told.reason[..], told.wait), (reason, wait));
    }
}
