//! When windows begin, and lists of windows that are refused.

use serde_json::Value;

use super::support::{campaign, entries, require_refused};
use crate::campaigns::windows::{ListedWindows, Starts};
use crate::errors::Kind;

const DAY: i64 = 86_400_000;

fn millis(entry: &Value, field: &str) -> i64 {
    entry[field].as_i64().unwrap() * 1000
}

#[test]
fn a_moment_is_in_its_window() {
    for entry in entries("windows", "accept") {
        let listed = entry.get("windows").map(|windows| ListedWindows::parse(windows).unwrap());
        let length = if listed.is_some() { 1 } else { millis(&entry, "seconds") };
        let (starts, moment) = (Starts::new(length, listed.as_ref()), millis(&entry, "moment"));
        let found = [starts.at(moment), starts.after(moment)];
        assert_eq!(found, ["begins", "next"].map(|field| millis(&entry, field)), "{entry}");
    }
}

#[test]
fn a_list_of_other_windows_is_refused() {
    for entry in entries("windows", "refuse") {
        require_refused(ListedWindows::parse(&entry["windows"]), &entry, &[("windows", &[": windows"])]);
    }
}

#[test]
fn windows_of_any_clock_and_length_are_defined() {
    for (length, moment) in [(0, 5), (i64::MAX, i64::MAX), (DAY, i64::MIN), (-1, -1)] {
        let starts = Starts::new(length, None);
        assert!(starts.at(moment) >= 0 && starts.after(moment) > starts.at(moment));
    }
    let starts = campaign("windows").starts(1);
    assert_eq!(starts.least(), DAY);
}

#[test]
fn windows_are_no_shorter_than_the_app_allows() {
    for name in ["windows", "noise"] {
        let campaign = campaign(name);
        assert!(campaign.require_windows(DAY).is_ok());
        assert_eq!(campaign.require_windows(DAY + 1).unwrap_err().kind(), Kind::Untrusted);
    }
    let given = campaign("grr");
    assert!(given.require_windows(7 * DAY).is_ok());
    assert_eq!(given.starts(7 * DAY).least(), 7 * DAY);
    assert_eq!(campaign("noise").starts(7 * DAY).least(), DAY);
}
