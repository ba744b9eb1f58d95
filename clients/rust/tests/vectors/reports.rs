//! An item and 64-bit words to the packed report, for every mechanism.

use std::collections::BTreeMap;

use num_bigint::BigUint;

use super::mechanisms::{Layout, built, fault, shipped};
use super::support::{Given, bytes, entries, text, vectors};
use crate::formats::bytes::hex;
use crate::oracles::design::Design;
use crate::oracles::mechanism::Mechanism;
use crate::oracles::responder::Responder;

fn mechanisms() -> BTreeMap<String, Mechanism> {
    let designs = Design::parse(&shipped()).unwrap();
    let file = vectors("reports");
    let listed = file["mechanisms"].as_array().unwrap().iter();
    let mechanisms: BTreeMap<_, _> = listed
        .map(|entry| {
            let mechanism = built(entry, &designs).unwrap();
            assert_eq!(mechanism.report_bytes() as u64, entry["report_bytes"].as_u64().unwrap(), "{entry}");
            (text(entry, "name").to_owned(), mechanism)
        })
        .collect();
    assert!(mechanisms.len() >= 73);
    mechanisms
}

fn layout_of(mechanism: &Mechanism) -> Layout {
    let (answers, length) = (mechanism.answers(), mechanism.report_bytes());
    let subset = match mechanism.responder {
        Responder::Subset { field, .. } => Some(field),
        _ => None,
    };
    let codes = subset.map_or(BigUint::from(1u32), crate::wire::subsets::SubsetField::codes);
    Layout { answers, length, codes, subset }
}

#[test]
fn accepts() {
    let entries = entries("reports", "accept");
    assert!(entries.len() >= 288);
    let mechanisms = mechanisms();
    for entry in &entries {
        let mechanism = &mechanisms[text(entry, "mechanism")];
        let mut given = Given::words(entry, "words");
        let report = mechanism.report(text(entry, "item").parse().unwrap(), &mut given);
        assert_eq!(hex(&report), text(entry, "report"), "{entry}");
        given.require_used();
        assert_eq!(fault(&report, &layout_of(mechanism)), None, "{entry}");
    }
}

#[test]
fn what_is_refused_is_no_report_of_the_mechanism() {
    let entries = entries("reports", "refuse");
    assert!(entries.len() >= 455);
    let mechanisms = mechanisms();
    for entry in &entries {
        let layout = layout_of(&mechanisms[text(entry, "mechanism")]);
        assert_eq!(fault(&bytes(entry, "report"), &layout), Some(text(entry, "reason")), "{entry}");
    }
}

#[test]
fn with_noise_of_the_mixes_a_report_is_the_item_and_draws_nothing() {
    let mechanism = Mechanism::truthful(1000).unwrap();
    let mut nothing = Given { words: [].into(), secrets: [].into() };
    assert_eq!(mechanism.report(999, &mut nothing), [0xe7, 0x03]);
    assert!(Mechanism::truthful(1).unwrap_err().to_string().contains("domain is 1"));
}
