//! Names from an evaluator: `oblivious.json`, and the vectors of RFC 9497.

use std::path::Path;

use serde_json::Value;

use super::discovery::format_of;
use super::support::{Given, array, bytes, entries, require_refused, text};
use crate::discovery::oblivious::{Evaluations, PendingDiscovery, name_of, public_key_of};
use crate::errors::Kind;
use crate::formats::bytes::unhex;
use crate::randomness::Fresh;

const WRONG: &[&str] = &["the evaluator's answer is wrong"];
const SAID: &[(&str, &[&str])] = &[
    ("wrong_length", &["bytes, must have"]),
    ("not_an_element", WRONG),
    ("wrong_proof", WRONG),
    ("not_a_key", &["is not a valid ristretto255 public key"]),
];

/// Return the evaluations of inputs with these blinds.
fn asked(inputs: &[&str], blinds: &[&str]) -> Evaluations {
    let mut given = Given::words(&Value::Null, "words");
    for blind in blinds {
        // Words in place of a missing input, then the blind, which is drawn with twice as many bits.
        let octets = [vec![0; 32], unhex(blind).unwrap(), vec![0; 32]].concat();
        given.words.extend(octets.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())));
    }
    let inputs: Vec<_> = inputs.iter().map(|input| unhex(input)).collect();
    let evaluations = Evaluations::of(&inputs, &mut given).unwrap();
    given.require_used();
    evaluations
}

fn texts<'a>(entry: &'a Value, field: &str) -> Vec<&'a str> {
    entry[field].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

#[test]
fn accept() {
    let mut rules = [0, 0];
    for entry in entries("oblivious", "accept") {
        let is_report = text(&entry, "rule") == "report";
        if is_report {
            accept_report(&entry);
        } else {
            accept_answer(&entry);
        }
        rules[usize::from(is_report)] += 1;
    }
    assert!(rules.into_iter().all(|number| number > 2));
}

fn accept_answer(entry: &Value) {
    let evaluations = asked(&texts(entry, "inputs"), &texts(entry, "blinds"));
    assert_eq!(evaluations.blinded, bytes(entry, "blinded"));
    let key = public_key_of(&array(entry, "public_key")).unwrap();
    let outputs = evaluations.finish(&bytes(entry, "answer"), &key).unwrap();
    let wanted: Vec<[u8; 64]> =
        texts(entry, "outputs").into_iter().map(|text| unhex(text).unwrap().try_into().unwrap()).collect();
    assert_eq!(outputs, wanted);
}

fn accept_report(entry: &Value) {
    let (format, value, name) = (format_of(entry), entry["value"].as_str(), name_of(&array(entry, "output")));
    assert_eq!((name.hash, name.box_key), (array(entry, "hash"), array(entry, "box_key")));
    assert_eq!(format.inner(value, &name).unwrap(), bytes(entry, "inner"));
    let report = format.report(value, &name, &array(entry, "ephemeral_secret")).unwrap();
    assert_eq!(report, bytes(entry, "report"));
}

#[test]
fn refuse() {
    let mut number = 0;
    // The other rule is the evaluator's.
    for entry in entries("oblivious", "refuse").iter().filter(|entry| text(entry, "rule") == "ask") {
        let evaluations = asked(&texts(entry, "inputs"), &texts(entry, "blinds"));
        assert_eq!(evaluations.blinded, bytes(entry, "blinded"));
        let key = public_key_of(&array(entry, "public_key"));
        let made = key.and_then(|key| evaluations.finish(&bytes(entry, "answer"), &key));
        let is_key = text(entry, "reason") == "not_a_key";
        assert_eq!(made.as_ref().unwrap_err().kind(), if is_key { Kind::Format } else { Kind::Unanswered });
        require_refused(made, entry, SAID);
        number += 1;
    }
    assert!(number > 20);
}

#[test]
fn outputs_are_those_of_rfc_9497() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/evaluator/rfc9497_voprf.json");
    let file: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let suite = &file["suite"];
    let key = public_key_of(&array(suite, "pkSm")).unwrap();
    let all = suite["vectors"].as_array().unwrap();
    assert_eq!(all.len(), 3);
    for entry in all {
        let split = |field| text(entry, field).split(',').collect::<Vec<_>>();
        let joined = |field| unhex(&split(field).concat()).unwrap();
        let evaluations = asked(&split("Input"), &split("Blind"));
        assert_eq!(evaluations.blinded, joined("BlindedElement"));
        let answer = [joined("EvaluationElement"), bytes(&entry["Proof"], "proof")].concat();
        assert_eq!(evaluations.finish(&answer, &key).unwrap().concat(), joined("Output"));
    }
}

#[test]
fn evaluations_of_one_value_differ_and_a_blank_asks_too() {
    let mut random = Fresh::new().unwrap();
    let entry = &entries("oblivious", "accept")[0];
    let key = public_key_of(&array(entry, "public_key")).unwrap();
    let format = format_of(entries("oblivious", "accept").iter().find(|entry| entry["value"].is_string()).unwrap());
    let mut seen = std::collections::BTreeSet::new();
    for value in [Some("one"), Some("one"), None, None] {
        let pending = PendingDiscovery::begin(&format, key, value.map(String::from), &mut random).unwrap();
        assert_eq!(pending.evaluation.len(), 32);
        assert!(pending.finish(&pending.blank).is_err());
        seen.insert(pending.evaluation);
    }
    assert_eq!(seen.len(), 4);
}
