//! Who is asked: an installation's bucket in a layer, and the ranges of buckets.

use serde_json::{Value, json};

use super::support::{entries, text};
use crate::campaigns::sample::{Sample, bucket_of};

fn sample_of(entry: &Value) -> Sample {
    Sample::parse(&json!({"layer": entry["layer"], "buckets": entry["buckets"]})).unwrap()
}

#[test]
fn an_installation_in_a_range_is_asked() {
    for entry in entries("samples", "accept") {
        let bucket = bucket_of(text(&entry, "id"), text(&entry, "layer"));
        assert_eq!(entry["bucket"], bucket, "{entry}");
        assert!(sample_of(&entry).has(bucket), "{entry}");
    }
}

#[test]
fn an_installation_out_of_all_ranges_is_not_asked() {
    for entry in entries("samples", "refuse") {
        assert_eq!(text(&entry, "reason"), "not_asked");
        assert!(!sample_of(&entry).has(bucket_of(text(&entry, "id"), text(&entry, "layer"))), "{entry}");
    }
}

#[test]
fn the_share_is_that_of_the_buckets() {
    let sample = sample_of(&json!({"layer": "a", "buckets": [[0, 500], [9000, 10000]]}));
    assert!((sample.share() - 0.15).abs() < 1e-12);
}
