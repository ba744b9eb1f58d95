//! Who is asked, and what an installation keeps.

use serde_json::json;

use super::support::{campaign, entries, text};
use crate::campaigns::campaign::Campaign;
use crate::campaigns::sample::{BUCKETS, MOST_LAYERS, Sample};
use crate::errors::Kind;
use crate::store::Store;
use crate::trust::installation::require_asked;

const YEAR: i64 = 365 * 86_400_000;
const NOW: i64 = 1_795_737_600_000;

fn asking(id: &str, layer: &str, buckets: &[(u64, u64)]) -> Campaign {
    let mut made = campaign("grr");
    id.clone_into(&mut made.id);
    made.sample = Some(Sample { layer: layer.to_owned(), buckets: buckets.to_vec() });
    made
}

fn is_asked(store: &Store, campaign: &Campaign, now: i64) -> bool {
    let asked = require_asked(store, campaign, now);
    asked.map_err(|error| assert_eq!(error.kind(), Kind::NotAsked, "{error}")).is_ok()
}

#[test]
fn an_installation_is_asked_as_in_the_vectors_of_samples() {
    let sides = ["accept", "refuse"].map(|side| entries("samples", side));
    assert!(sides.iter().all(|entries| entries.len() >= 25));
    for entry in sides.concat() {
        let store = Store::in_memory().unwrap();
        let kept = json!({"id": text(&entry, "id"), "drawn": NOW, "layers": {}});
        store.change(|records| records.put("installation", &kept)).unwrap();
        let ranges = entry["buckets"].as_array().unwrap().iter();
        let ranges: Vec<_> = ranges.map(|span| (span[0].as_u64().unwrap(), span[1].as_u64().unwrap())).collect();
        let asked = is_asked(&store, &asking("c", text(&entry, "layer"), &ranges), NOW);
        assert_eq!(asked, entry.get("bucket").is_some(), "{entry}");
    }
}

#[test]
fn an_installation_is_asked_by_one_campaign_of_a_layer_and_stays_so() {
    let (first, second) = (asking("first", "shared", &[(0, 5000)]), asking("second", "shared", &[(5000, BUCKETS)]));
    let stores: Vec<_> = (0..40).map(|_| Store::in_memory().unwrap()).collect();
    let asked = |now| -> Vec<_> {
        stores.iter().map(|store| (is_asked(store, &first, now), is_asked(store, &second, now))).collect()
    };
    let begun = asked(NOW);
    assert!(begun.iter().all(|(one, other)| one != other));
    // All of 40 are in one half with probability 2e-12.
    assert!(begun.iter().any(|(one, _)| *one) && begun.iter().any(|(_, other)| *other));
    for now in [NOW, NOW + YEAR - 1, NOW - YEAR] {
        assert_eq!(asked(now), begun);
    }
    // After a year all ids are new: that none changes has probability 1e-12.
    assert_ne!(asked(NOW + YEAR), begun);
}

#[test]
fn an_installation_keeps_each_campaigns_layer_and_takes_part_in_few() {
    let store = Store::in_memory().unwrap();
    for number in 0..MOST_LAYERS {
        is_asked(&store, &asking(&format!("c{number}"), &format!("layer-{number}"), &[(0, 1)]), NOW);
    }
    is_asked(&store, &asking("another", "layer-0", &[(1, 2)]), NOW);
    // A new id after a year leaves the layers as they are.
    is_asked(&store, &asking("another", "layer-0", &[(1, 2)]), NOW + YEAR);
    let refused = |id, layer| {
        let error = require_asked(&store, &asking(id, layer, &[(0, BUCKETS)]), NOW + YEAR).unwrap_err();
        assert_eq!(error.kind(), Kind::Untrusted);
        error.to_string()
    };
    assert!(refused("more", "layer-3").contains("layer-0, layer-1, layer-2"));
    assert!(refused("c0", "layer-1").contains("is layer-1, was layer-0"));
}
