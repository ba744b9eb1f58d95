//! The cells of items and coordinates, and the public strata.

use serde_json::{Map, Value, json};

use super::support::{entries, require_refused};
use crate::campaigns::sections::{Listed, MechanismTerms};
use crate::errors::Result;
use crate::values::strata::{Coordinates, Strata};

fn parse(axes: &Value, name: &str, items: u64) -> Result<Strata> {
    let terms = MechanismTerms { name: name.into(), epsilon: 1.0, parameters: Map::new() };
    Strata::parse(axes, Some(&terms), Some(&Listed { items, digest: [0; 32] }), false)
}

fn coordinates(by: &Value) -> Coordinates {
    let fields = by.as_object().unwrap().iter();
    fields.map(|(axis, value)| (axis.clone(), value.as_str().unwrap().to_owned())).collect()
}

#[test]
fn items_and_coordinates_have_their_cells() {
    let entries = entries("strata", "accept");
    assert_eq!(entries.len(), 70);
    for entry in entries {
        let strata = parse(&entry["axes"], "ais", entry["items"].as_u64().unwrap()).unwrap();
        let by = coordinates(&entry["by"]);
        assert_eq!(Some(strata.cell_of(entry["item"].as_u64().unwrap(), &by)), entry["cell"].as_u64(), "{entry}");
        let stratum = strata.stratum_of(&by).iter().rev().fold(0, |stratum, &byte| stratum << 8 | u64::from(byte));
        assert_eq!(Some(stratum), entry["stratum"].as_u64(), "{entry}");
        assert_eq!(strata.stratum_of(&by).len(), strata.stratum_bytes());
    }
}

#[test]
fn other_sections_are_refused() {
    let entries = entries("strata", "refuse");
    assert_eq!(entries.len(), 45);
    for entry in entries {
        require_refused(parse(&entry["axes"], "ais", 9), &entry, &[("axes", &["axes"])]);
    }
}

#[test]
fn each_cell_has_another_number_and_the_last_keeps_its_own() {
    let entries = entries("strata", "accept");
    let section = entries.iter().find(|entry| entry["axes"]["listed"].as_array().unwrap().len() == 3).unwrap();
    let strata = parse(&section["axes"], "ais", 100).unwrap();
    let mut clients = vec![Coordinates::new()];
    for axis in section["axes"]["listed"].as_array().unwrap() {
        let values = || axis["values"].as_array().unwrap().iter().chain([&Value::Null]);
        let placed = |by: &Coordinates, value: &Value| {
            let placed = value.as_str().map(|value| (axis["name"].as_str().unwrap().to_owned(), value.to_owned()));
            by.clone().into_iter().chain(placed).collect()
        };
        clients = clients.iter().flat_map(|by| values().map(move |value| placed(by, value))).collect();
    }
    let mut cells: Vec<u64> = (0..=100)
        .flat_map(|item| clients.iter().map(move |by| (item, by)))
        .map(|(item, by)| strata.cell_of(item, by))
        .collect();
    assert_eq!(cells.last().copied(), strata.cells().map(|cells| cells - 1));
    cells.sort_unstable();
    assert_eq!(cells, (0..strata.cells().unwrap()).collect::<Vec<_>>());
}

#[test]
fn axes_need_a_mechanism_that_counts_cells_and_private_ones_no_mean() {
    let section =
        |public| json!({"listed": [{"name": "os", "public": public, "values": ["linux"]}], "key": "ab".repeat(32)});
    let refused = |name| [false, true].map(|public| parse(&section(public), name, 9).is_err());
    for name in ["grr", "ss", "oue", "hr", "olh", "ocms", "ais", "wss"] {
        assert_eq!(refused(name), [false, false], "{name}");
    }
    for name in ["rappor", "apple-cms", "hcms", "gcms", "gcms-target"] {
        assert_eq!(refused(name), [true, true], "{name}");
    }
    assert_eq!(refused("line"), [true, false]);
    let of_noise = |noise| Strata::parse(&section(false), None, Some(&Listed { items: 9, digest: [0; 32] }), noise);
    assert_eq!(of_noise(true).unwrap().cells(), Some(20));
    assert!(of_noise(false).is_err() && parse(&section(false), "grr", u64::MAX).is_err());
    let told = parse(&section(true), "grr", 9).unwrap();
    assert_eq!(
        (told.cells(), told.public_strata(), told.stratum_bytes(), told.cell_of(3, &Coordinates::new())),
        (None, 2, 2, 3)
    );
}
