//! Discovery reports: `discovery.json`.

use serde_json::Value;

use super::support::{array, bytes, entries, require_refused, text};
use crate::discovery::report::{DiscoveryFormat, Name};

/// Return the facts that an entry states of its campaign.
pub(super) fn format_of(entry: &Value) -> DiscoveryFormat {
    DiscoveryFormat {
        binding: array(entry, "binding"),
        max_value_bytes: usize::try_from(entry["max_value_bytes"].as_u64().unwrap()).unwrap(),
        analyzer: array(entry, "analyzer"),
        aux_server: array(entry, "aux_server"),
    }
}

#[test]
fn accept() {
    let all = entries("discovery", "accept");
    assert!(all.len() > 5);
    for entry in all {
        let (format, value) = (format_of(&entry), entry["value"].as_str());
        let name = match value {
            Some(value) => Name::keyed(&format, &array(&entry, "hash_key"), value),
            None => Name::blank(&array(&entry, "fresh")),
        };
        assert_eq!(name.hash.to_vec(), bytes(&entry, "hash"), "{entry}");
        let report = format.report(value, &name, &array(&entry, "ephemeral_secret")).unwrap();
        assert_eq!(report, bytes(&entry, "report"), "{entry}");
        // Entries with long values leave these out.
        if entry["padded"].is_string() {
            assert_eq!(format.padded(value).unwrap(), bytes(&entry, "padded"), "{entry}");
        }
        if entry["inner"].is_string() {
            assert_eq!(format.inner(value, &name).unwrap(), bytes(&entry, "inner"), "{entry}");
        }
    }
}

#[test]
fn refuse() {
    let mut number = 0;
    // The other reasons are those of the analyzer, which reads what is padded.
    for entry in entries("discovery", "refuse").iter().filter(|entry| text(entry, "reason") == "value_too_long") {
        let (format, value) = (format_of(entry), text(entry, "value"));
        let name = Name::keyed(&format, &array(entry, "hash_key"), value);
        let refused = [format.report(Some(value), &name, &[1; 32]).map(drop), format.require_short(value)];
        for made in refused {
            assert!(!made.as_ref().unwrap_err().to_string().contains(value));
            require_refused(made, entry, &[("value_too_long", &["must have at most"])]);
        }
        number += 1;
    }
    assert!(number > 1);
}
