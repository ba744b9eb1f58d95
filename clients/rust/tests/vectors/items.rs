//! Which strings may be items, and their fingerprints.

use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;
use serde_json::Value;

use super::support::{LONE, text, vectors_of_any_text};
use crate::values::items::{Fault, fault_of, fingerprint_of, normal};

const FAULTS: [(&str, Fault); 9] = [
    ("too_long", Fault::TooLong),
    ("empty", Fault::Empty),
    ("byte_order_mark", Fault::ByteOrderMark),
    ("control_character", Fault::ControlCharacter),
    ("line_separator", Fault::LineSeparator),
    ("paragraph_separator", Fault::ParagraphSeparator),
    ("direction_control", Fault::DirectionControl),
    ("invisible_character", Fault::InvisibleCharacter),
    ("not_normal_form", Fault::NotNormalForm),
];

fn entries(side: &str) -> Vec<Value> {
    vectors_of_any_text("items")[side].as_array().unwrap().clone()
}

fn whole(entry: &Value) -> String {
    text(entry, "text").repeat(entry["times"].as_u64().unwrap_or(1) as usize)
}

#[test]
fn strings_that_may_be_items_have_their_fingerprints() {
    let entries = entries("accept");
    assert!(entries.len() > 50);
    for entry in entries {
        assert_eq!(fault_of(&whole(&entry)), None, "{entry}");
        assert_eq!(fingerprint_of(&whole(&entry)).to_string(), text(&entry, "fingerprint"), "{entry}");
    }
}

#[test]
fn other_strings_are_refused_for_the_reason() {
    let entries = entries("refuse");
    assert!(entries.len() > 90);
    let (lone, given): (Vec<_>, Vec<_>) = entries.iter().partition(|entry| text(entry, "text").contains(LONE));
    // Lone surrogates are refused by the type: no &str has one.
    assert_eq!(lone.len(), 3);
    assert!(lone.iter().all(|entry| text(entry, "reason") == "lone_surrogate"));
    for entry in given {
        let (_, fault) = FAULTS.iter().find(|(reason, _)| *reason == text(entry, "reason")).unwrap();
        assert_eq!(fault_of(&whole(entry)), Some(*fault), "{entry}");
    }
}

fn unfit_lines(name: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/lists").join(format!("{name}.txt.gz"));
    let mut lines = String::new();
    GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_string(&mut lines).unwrap();
    assert!(lines.lines().count() > 5000);
    lines.lines().filter(|line| fault_of(&normal(line)).is_some()).map(str::to_owned).collect()
}

#[test]
fn every_emoji_and_real_word_may_be_an_item_except_those_with_a_space_of_no_width() {
    assert_eq!(unfit_lines("emoji"), [""; 0]);
    let mut words = unfit_lines("words");
    assert_eq!(words.len(), 50);
    words.retain(|word| !word.contains('\u{200b}'));
    assert_eq!(words, ["\u{d0e}\u{d38}\u{d4d}\u{d31}\u{d4d}\u{d31}\u{d4b}\u{d23}\u{d3f}\u{d2f}\u{200d}"]);
}
