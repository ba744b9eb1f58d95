//! The texts of doubles, and the bins and points of texts.

use serde_json::{Map, Value, json};

use super::support::{Given, entries, text};
use crate::campaigns::sections::{Listed, MechanismTerms};
use crate::errors::Result;
use crate::formats::bytes::hash;
use crate::formats::canonical_json::number_text;
use crate::values::dictionary::Dictionary;
use crate::values::numbers::{Bin, Numbers, names_of};

fn of(rule: &str) -> Vec<Value> {
    let entries: Vec<Value> = entries("numbers", "accept").into_iter().filter(|entry| entry["rule"] == rule).collect();
    assert!(entries.len() >= 5, "{rule}");
    entries
}

/// Return the dictionary of names, in random order.
fn listed(names: &[String]) -> Listed {
    let mut names = names.to_vec();
    names.sort_by_key(|name| hash::<16>(&[name.as_bytes()], "hushcount order"));
    let digest = Dictionary::parse(names.join("\n").as_bytes(), names.len() as u64, 1 << 20).unwrap().digest();
    Listed { items: names.len() as u64, digest }
}

fn terms(name: &str, m: u64) -> MechanismTerms {
    MechanismTerms { name: name.into(), epsilon: 1.0, parameters: Map::from_iter([("m".into(), json!(m))]) }
}

fn parse(section: &Value, mechanism: &MechanismTerms, names: &[String]) -> Result<Numbers> {
    Numbers::parse(section, Some(mechanism), Some(&listed(names)), false)
}

fn names(entry: &Value, mean: bool) -> Vec<String> {
    let edges = entry["edges"].as_array().unwrap().iter();
    names_of(&edges.map(|edge| edge.as_str().unwrap()).collect::<Vec<_>>(), entry["unit"].as_str().unwrap_or(""), mean)
}

fn bin(entry: &Value, value: &str) -> Bin {
    let section = json!({"edges": entry["edges"], "unit": entry["unit"], "mean": false});
    parse(&section, &terms("grr", 2), &names(entry, false)).unwrap().bin_of(value, &mut Given::words(entry, "word"))
}

#[test]
fn doubles_have_the_texts_that_ecmascript_writes() {
    for entry in of("text") {
        let number = f64::from_bits(u64::from_str_radix(text(&entry, "double"), 16).unwrap());
        assert_eq!(number_text(number), text(&entry, "text"), "{entry}");
    }
}

#[test]
fn bins_have_their_names() {
    for entry in of("names") {
        assert_eq!(json!(names(&entry, false)), entry["names"], "{entry}");
        let edges = entry["edges"].as_array().unwrap().iter().map(|edge| edge.as_str().unwrap());
        let found: Vec<Bin> = ["-1e300"].into_iter().chain(edges).map(|edge| bin(&entry, edge)).collect();
        assert_eq!(found, names(&entry, false).into_iter().map(Bin::Name).collect::<Vec<_>>());
    }
}

#[test]
fn texts_have_their_bins_and_the_others_none() {
    for entry in of("bin") {
        assert_eq!(bin(&entry, text(&entry, "text")), Bin::Name(text(&entry, "bin").into()), "{entry}");
    }
    let refused = entries("numbers", "refuse");
    assert_eq!(refused.len(), 51);
    for entry in refused {
        assert_eq!(text(&entry, "reason"), "no_number");
        assert_eq!(bin(&entry, text(&entry, "text")), Bin::Name(String::new()), "{entry}");
    }
}

#[test]
fn texts_have_their_points_of_a_line() {
    for entry in of("point") {
        let section = json!({"edges": entry["edges"], "unit": "", "mean": true});
        let line = terms("line", entry["points"].as_u64().unwrap());
        let numbers = parse(&section, &line, &names(&entry, true)).unwrap();
        let word = json!({"words": [entry["word"]]});
        let mut random = Given::words(&word, "words");
        let item = entry["item"].as_u64().unwrap();
        assert_eq!(numbers.bin_of(text(&entry, "text"), &mut random), Bin::Item(item), "{entry}");
        random.require_used();
    }
}

#[test]
fn a_section_that_is_wrong_or_lacks_what_it_needs_is_refused() {
    let edges = |edges: &[&str], mean| json!({"edges": edges, "unit": "ms", "mean": mean});
    let wrong = [
        Value::Null,
        json!({"edges": ["2"], "unit": "ms", "mean": false, "more": 1}),
        json!({"edges": ["2"], "unit": "a b", "mean": false}),
        json!({"edges": [2], "unit": "ms", "mean": false}),
        json!({"edges": vec!["1"; 1024], "unit": "ms", "mean": false}),
        edges(&[], false),
        edges(&["2"], true),
        edges(&["2", "2"], false),
        edges(&["2", "1"], true),
    ];
    let texts =
        ["", "-", "-0", "02", "+1", "1.0", "1.", ".5", "00.5", "1e3", "Infinity", "1234567890123456789012", "1 "];
    let texts = texts.iter().map(|text| edges(&[text], false));
    for section in wrong.into_iter().chain(texts) {
        let error = parse(&section, &terms("grr", 2), &["2 ms".into()]).unwrap_err().to_string();
        assert!(error.contains("number must have"), "{section}: {error}");
    }
    let (bins, mean) = (edges(&["2", "3"], false), edges(&["2", "3"], true));
    let (many, one) = (names_of(&["2", "3"], "ms", false), names_of(&["2", "3"], "ms", true));
    let (grr, line, dictionary) = (terms("grr", 2), terms("line", 2), listed(&many));
    let lacking = [
        Numbers::parse(&bins, Some(&grr), None, false),
        Numbers::parse(&bins, Some(&grr), Some(&dictionary), true),
        Numbers::parse(&bins, Some(&grr), Some(&Listed { items: 4, ..dictionary }), false),
        parse(&bins, &grr, &one),
        parse(&bins, &line, &many),
        parse(&mean, &grr, &one),
        Numbers::parse(&mean, None, Some(&listed(&one)), false),
    ];
    assert!(lacking.into_iter().all(|made| made.unwrap_err().to_string().contains("number needs")));
    let short = parse(&mean, &terms("line", 1), &one).unwrap_err().to_string();
    assert!(short.contains(": mechanism: m must be"), "{short}");
    assert!(Numbers::parse(&bins, None, Some(&dictionary), false).is_ok());
}
