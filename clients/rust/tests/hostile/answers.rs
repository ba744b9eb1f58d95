//! Answers of collectors, evaluators and issuers, each by itself; tests/sender/mutated.rs has them in a sender.

use serde_json::Value;

use super::{Draws, attack, number};
use crate::discovery::oblivious::{Evaluations, public_key_of};
use crate::errors::{Error, Kind};
use crate::formats::bytes::{hash, unhex};
use crate::formats::times::parse_time;
use crate::passes::asking::{Issue, Pending, headers_of, octets_of};
use crate::passes::blind::Modulus;
use crate::passes::slots::{Role, Slot};
use crate::passes::terms::PassTerms;
use crate::sender::verdict::{Answer, LONGEST_WAIT};
use crate::vectors::support::{Given, array, bytes, entries, text, vectors};

/// Return all texts of the table of answers, by field.
fn texts(field: &str, place: Option<usize>) -> Vec<Vec<u8>> {
    let table = vectors("answers");
    let rows = ["accept", "refuse"].map(|side| table[side].as_array().unwrap().clone()).concat();
    let of = |value: &Value| place.map_or(value, |place| &value[place]).as_str().map(|text| text.as_bytes().to_vec());
    rows.iter().flat_map(|row| row[field].as_array().unwrap().iter().filter_map(of).collect::<Vec<_>>()).collect()
}

#[test]
fn every_answer_has_a_meaning() {
    let fields = [texts("body", Some(0)), texts("retry_after", None), texts("date", Some(0)), texts("date", Some(1))];
    let (bodies, mut draws) = (texts("body", Some(1)), Draws::new("answers"));
    let mut named = 0;
    for _ in 0..number(2500) {
        let mut seed_of = |seeds: &[Vec<u8>]| {
            let is_whole = draws.below(3) > 0;
            if is_whole { draws.one(seeds).clone() } else { draws.mutated(seeds) }
        };
        let body = seed_of(&bodies);
        let [content_type, retry_after, date, age] = [0, 1, 2, 3].map(|place| {
            let text: &[Vec<u8>] = &fields[place];
            Some(String::from_utf8_lossy(&seed_of(text)).into_owned()).filter(|text| !text.is_empty())
        });
        let status = *draws.one(&[0, 200, 202, 302, 400, 408, 409, 413, 425, 429, 503, 999, u16::MAX]);
        let answer = Answer { status, content_type, retry_after, date, age, body };
        let verdict = answer.verdict(draws.below(3), *draws.one(&[i64::MIN, 0, i64::MAX]));
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        assert!((0..=LONGEST_WAIT).contains(&verdict.wait) && verdict.at.is_none_or(|at| at >= 0), "{verdict:?}");
        assert!(verdict.reason.len() <= 40 && verdict.reason.bytes().all(fits), "{verdict:?}");
        if let Err(verdict) = octets_of(&answer, Some(draws.below(2))) {
            assert!(verdict.reason.len() <= 40 && (0..=LONGEST_WAIT).contains(&verdict.wait));
        }
        named += usize::from(verdict.reason.starts_with("epoch"));
    }
    assert!(named > 0);
}

#[test]
fn passes_are_refused_or_kept() {
    let entry = entries("passes", "accept").swap_remove(0);
    let (campaign, name, modulus) = (text(&entry, "campaign"), text(&entry, "name"), bytes(&entry, "modulus"));
    let slot = Slot { role: Role::Collector, campaign, name, begins: entry["begins"].as_i64().unwrap() };
    let pending = [Pending::new(&array(&entry, "secret"), slot, Modulus::parse(&modulus).unwrap())];
    attack("passes", (100, 0..=10), &[bytes(&entry, "answer")], &[Kind::Delivery], |answer| {
        headers_of(&pending, answer).map(drop)
    });
    let digest = hash(&[&modulus], "pass keys");
    let terms = PassTerms { seconds: 86_400, first: "2026-11-27".to_owned(), days: vec![digest] };
    let collectors = [name.to_owned()];
    let issue = Issue { campaign, collectors: &collectors, has_evaluator: false, terms: &terms };
    let day = parse_time("2026-11-27T00:00:00Z").unwrap() / 1000;
    attack("keys of passes", (200, 0..=10), std::slice::from_ref(&modulus), &[Kind::Delivery], |keys| {
        for wrong in [i64::MIN, 0, i64::MAX] {
            assert!(issue.pending(&[1; 32], name, wrong, keys).is_err());
        }
        issue.pending(&[1; 32], name, day, keys).map(|made| assert_eq!(made.len(), 1))
    });
    // Whatever keys a signed file names, a request can be made with them.
    attack("any keys", (60, 2..=40), &[modulus], &[Kind::Delivery], |key| {
        let modulus = Modulus::parse(key).ok_or_else(|| Error::new(Kind::Delivery, "no"))?;
        let made = Pending::new(&[1; 32], Slot { role: Role::Collector, campaign, name, begins: 0 }, modulus);
        assert!(made.finished(key).is_err());
        Ok(())
    });
}

#[test]
fn an_evaluation_is_refused_or_a_name() {
    let entries = entries("oblivious", "accept");
    let entry = entries.iter().find(|entry| entry["rule"] == "ask").unwrap();
    let key = public_key_of(&array(entry, "public_key")).unwrap();
    let mut given = Given::words(&Value::Null, "words");
    let octets = [vec![0; 32], unhex(entry["blinds"][0].as_str().unwrap()).unwrap(), vec![0; 32]];
    given.words.extend(octets.concat().chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())));
    let input = unhex(entry["inputs"][0].as_str().unwrap());
    let evaluations = Evaluations::of(&[input], &mut given).unwrap();
    attack("evaluations", (200, 0..=10), &[bytes(entry, "answer")], &[Kind::Unanswered], |answer| {
        evaluations.finish(answer, &key).map(drop)
    });
    attack("keys of evaluators", (400, 0..=30), &[bytes(entry, "public_key")], &[Kind::Format], |key| {
        public_key_of(&key.try_into().map_err(|_| Error::format("no"))?).map(drop)
    });
}
