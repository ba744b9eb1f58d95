//! Addresses: the text that stands for a URL, as the vectors say, and hosts as the web platform's own tests have them.

use std::collections::HashSet;
use std::path::Path;

use serde_json::{Value, json};

use super::support::{LONE, any_text, require_refused, text, vectors_of_any_text};
use crate::values::urls::Addresses;

const SAID: &[(&str, &[&str])] = &[("url", &["url"])];

fn item(entry: &Value) -> Option<String> {
    let most = usize::try_from(entry["most"].as_u64().unwrap()).unwrap();
    let hosts: Option<HashSet<String>> = serde_json::from_value(entry["hosts"].clone()).unwrap();
    Addresses::parse(&entry["url"], most).unwrap().item_of(text(entry, "text"), hosts.as_ref())
}

#[test]
fn addresses_are_those_of_the_vectors() {
    let file = vectors_of_any_text("urls");
    let entries = |side: &str| file[side].as_array().unwrap().clone();
    let (mut made, mut others, mut sections, mut impossible) = (0, 0, 0, 0);
    for entry in entries("accept") {
        assert_eq!(item(&entry).as_deref(), Some(text(&entry, "item")), "{entry}");
        made += 1;
    }
    for entry in entries("refuse") {
        if text(&entry, "reason") != "other" {
            require_refused(Addresses::parse(&entry["url"], 4096), &entry, SAID);
            sections += 1;
        } else if text(&entry, "text").contains(LONE) {
            impossible += 1;
        } else {
            assert_eq!(item(&entry), None, "{entry}");
            others += 1;
        }
    }
    assert!(made >= 88 && others >= 78 && sections >= 38 && impossible == 1, "{made} {others} {sections} {impossible}");
}

#[test]
fn hosts_of_the_web_platform_s_tests_are_theirs_or_other() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/hushcount/wpt_urltestdata.json");
    // The tests have lone surrogates too, which no text of this client has.
    let cases = any_text(&std::fs::read_to_string(path).unwrap());
    let hosts = Addresses::parse(&json!({"take": "host"}), 4096).unwrap();
    let (mut web, mut told) = (0, 0);
    for case in cases.as_array().unwrap().iter().filter(|case| case.is_object() && case["base"].is_null()) {
        let input = text(case, "input");
        let found = hosts.item_of(input, None);
        if !["http:", "https:"].iter().any(|scheme| input.trim().to_lowercase().starts_with(scheme)) {
            let is_other = !["http:", "https:"].contains(&case["protocol"].as_str().unwrap_or("http:"));
            assert!(found.is_none() || !is_other, "{input}");
            continue;
        }
        web += 1;
        // A label in Punycode is taken as it is.
        if let Some(host) = found.filter(|host| !host.contains("xn--pokxncvks")) {
            assert_eq!(case["hostname"].as_str().unwrap_or("(refused)").trim_end_matches('.'), host, "{input}");
            told += 1;
        }
    }
    assert!(web > 200 && told > 60, "{told} of {web}");
}

#[test]
fn what_looks_like_an_id_is_not_told() {
    let paths = Addresses::parse(&json!({"take": "path", "segments": 1}), 4096).unwrap();
    for (segment, is_id) in [
        ("news", false),
        ("2026-11", false),
        ("2026-11-29", true),
        ("top-10-things-to-do-before-lunch", false),
        ("4f2a9c", false),
        ("nC8QJJoZ", true),
        ("a1b2c3d4", true),
        ("a1b2c3d", false),
        (&"z".repeat(40), false),
        ("v1.2.3", false),
        ("%2541", true),
        (&"\u{967}".repeat(8), true),
        ("\u{378}", true),
    ] {
        let told = paths.item_of(&format!("https://a.b/{segment}"), None);
        assert_eq!(told.unwrap(), format!("a.b/{}", if is_id { ":id" } else { segment }));
    }
}

#[test]
fn labels_that_no_vector_has_are_those_of_uts_46() {
    let hosts = Addresses::parse(&json!({"take": "host"}), 4096).unwrap();
    for (label, wanted) in [
        ("\u{231a}\u{fe0f}", Some("xn--dih")),
        ("\u{65e5}\u{180b}", Some("xn--wgv")),
        ("\u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}", None),
        ("\u{3f2}", Some("xn--4xa")),
        ("\u{3c2}", Some("xn--3xa")),
        ("\u{131}", Some("xn--cfa")),
        ("\u{1fb3}", Some("xn--mxaq")),
        ("\u{1680}a", None),
        ("\u{e000}", None),
    ] {
        let wanted = wanted.map(|label| format!("{label}.b"));
        assert_eq!(hosts.item_of(&format!("https://{label}.b"), None), wanted, "{label}");
    }
}
