//! The normal form of every code point and of drawn texts, by the tables of Unicode 13.0.

use blake2b_simd::Params;
use serde_json::Value;

use super::support::{LONE, text, vectors_of_any_text};
use crate::formats::bytes::hex;
use crate::values::items::{fault_of, normal};

fn vectors() -> Value {
    vectors_of_any_text("normal_form")
}

#[test]
fn values_have_their_normal_form() {
    let vectors = vectors();
    let entries = vectors["values"].as_array().unwrap();
    assert!(entries.len() > 60);
    for entry in entries {
        let (value, form) = (text(entry, "value"), text(entry, "canonical"));
        // A &str has no lone surrogate; what stands for it leaves the text around it alone.
        assert_eq!(normal(value), form, "{entry}");
        let may_be_item = fault_of(form).is_none() && !form.contains(LONE);
        assert_eq!(Value::Bool(may_be_item), entry["item"], "{entry}");
    }
}

#[test]
fn drawn_texts_have_their_normal_form() {
    let vectors = vectors();
    let drawn = vectors["drawn"].as_array().unwrap();
    assert_eq!(drawn.len(), 400);
    for entry in drawn {
        let (value, form) = (entry[0].as_str().unwrap(), entry[1].as_str().unwrap());
        assert!(!value.contains(LONE), "{entry}");
        assert_eq!(normal(value), form, "{entry}");
    }
}

#[test]
fn every_code_point_has_its_normal_form() {
    let mut state = Params::new().hash_length(32).to_state();
    for character in '\0'..=char::MAX {
        state.update(format!("{}\n", normal(character.encode_utf8(&mut [0; 4]))).as_bytes());
    }
    assert_eq!(hex(state.finalize().as_bytes()), text(&vectors()["every_code_point"], "digest"));
}

#[test]
fn no_item_holds_what_items_of_other_clients_do_not_hold() {
    let vectors = vectors();
    let ranges: Vec<(u32, u32)> = vectors["unfit"]["ranges"].as_array().unwrap().iter().map(ends).collect();
    assert!(ranges.contains(&(0xd800, 0xdfff)) && ranges.len() > 20);
    for character in '\0'..=char::MAX {
        let code = u32::from(character);
        let is_unfit = fault_of(&normal(&format!("a{character}b"))).is_some();
        assert_eq!(is_unfit, ranges.iter().any(|&(first, last)| (first..=last).contains(&code)), "{code:x}");
    }
}

fn ends(range: &Value) -> (u32, u32) {
    let (first, last) = range.as_str().unwrap().split_once("..").unwrap();
    (u32::from_str_radix(first, 16).unwrap(), u32::from_str_radix(last, 16).unwrap())
}
