//! The fields of a report to its bytes.

use num_bigint::BigUint;
use serde_json::Value;

use super::mechanisms::{Layout, fault};
use super::support::{bytes, entries, text, vectors};
use crate::formats::bytes::{hex, unhex};
use crate::wire::packing::{NumberField, answers, pack, report_bytes};
use crate::wire::subsets::{Form, SubsetField};

/// The number fields of a layout, and what reports it has.
fn layout_of(name: &str) -> (Vec<NumberField>, Layout) {
    let layouts = vectors("packing")["layouts"].as_array().unwrap().clone();
    let layout = layouts.iter().find(|layout| layout["name"] == name).unwrap();
    let fields = layout["fields"].as_array().unwrap();
    let numbers = fields.iter().filter(|field| field["kind"] == "number");
    let numbers: Vec<NumberField> = numbers
        .map(|field| NumberField { bound: large(&field["bound"]), least: field["least"].as_u64().unwrap() })
        .collect();
    let last = fields.last().unwrap();
    let count = last["count"].as_u64().unwrap_or_default();
    let subset = (last["kind"] == "subset").then(|| SubsetField::new(large(&last["bound"]), count));
    if let Some(SubsetField { form, .. }) = subset {
        let name = match form {
            Form::Rank => "rank",
            Form::List => "list",
            Form::Bitmap => "bitmap",
        };
        assert_eq!(name, text(last, "form"));
    }
    let bits = if last["kind"] == "bits" { count } else { 0 };
    let codes = subset.map_or(BigUint::from(1u32) << bits, SubsetField::codes);
    let answers = answers(&numbers, codes.clone());
    let below = BigUint::parse_bytes(text(layout, "integers_below").as_bytes(), 16);
    assert_eq!(Some(&answers), below.as_ref(), "{name}");
    let length = report_bytes(answers.clone());
    assert_eq!(length as u64, layout["report_bytes"].as_u64().unwrap());
    (numbers, Layout { answers, length, codes, subset })
}

fn large(value: &Value) -> u64 {
    value.as_str().unwrap().parse().unwrap()
}

#[test]
fn accepts() {
    let entries = entries("packing", "accept");
    assert!(entries.len() >= 63);
    for entry in &entries {
        let (fields, layout) = layout_of(text(entry, "layout"));
        let values = entry["values"].as_array().unwrap();
        let (numbers, last) = values.split_at(fields.len());
        let numbers: Vec<u64> = numbers.iter().map(large).collect();
        let code = match (last.first(), layout.subset) {
            (None, _) => Vec::new(),
            (Some(cells), Some(subset)) => {
                let cells = cells.as_array().unwrap().iter().map(|cell| cell.as_u64().unwrap());
                subset.code(&cells.collect::<Vec<_>>())
            }
            (Some(bits), None) => BigUint::from_bytes_le(&unhex(bits.as_str().unwrap()).unwrap()).to_u64_digits(),
        };
        let packed = pack(&fields, &numbers, code, layout.length);
        assert_eq!(hex(&packed), text(entry, "packed"), "{entry}");
        assert_eq!(fault(&packed, &layout), None, "{entry}");
    }
}

#[test]
fn what_is_refused_is_no_report_of_the_layout() {
    let entries = entries("packing", "refuse");
    assert!(entries.len() >= 81);
    for entry in &entries {
        let (_, layout) = layout_of(text(entry, "layout"));
        assert_eq!(fault(&bytes(entry, "packed"), &layout), Some(text(entry, "reason")), "{entry}");
    }
}
