//! Epsilon to the integer threshold of each rule.

use serde_json::{Value, json};

use super::mechanisms::{SAID, built};
use super::support::{entries, require_refused, text};
use crate::errors::Result;
use crate::maths::thresholds::{probability_threshold, spending_flip, spending_threshold, symmetric_threshold};

fn threshold(entry: &Value) -> Result<i128> {
    let integer = |field| text(entry, field).parse::<i128>().unwrap();
    let epsilon = || entry["epsilon"].as_f64().unwrap();
    match text(entry, "rule") {
        "spending" => {
            let keep = spending_threshold(epsilon(), integer("width"), integer("size"))?;
            if entry["reason"] == "says_nothing" {
                let parameters = json!({ "s": integer("size") as u64 });
                let terms = json!({ "name": "ais", "epsilon": epsilon(), "parameters": parameters });
                built(&json!({ "mechanism": terms }), &[])?;
            }
            Ok(keep)
        }
        "symmetric" => symmetric_threshold(epsilon()),
        "flip" => spending_flip(epsilon(), integer("keep")),
        "probability" => probability_threshold(entry["probability"].as_f64().unwrap(), "probability"),
        rule => panic!("{rule} is not known"),
    }
}

#[test]
fn accepts() {
    let entries = entries("thresholds", "accept");
    assert!(entries.len() >= 93);
    for entry in &entries {
        assert_eq!(threshold(entry).unwrap().to_string(), text(entry, "threshold"), "{entry}");
    }
}

#[test]
fn refuses() {
    let entries = entries("thresholds", "refuse");
    assert!(entries.len() >= 89);
    for entry in &entries {
        require_refused(threshold(entry), entry, SAID);
    }
}
