//! Dictionary files: their items and digest, and the items of values.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

use super::support::{LONE, array, bytes, require_refused, text, vectors_of_any_text};
use crate::values::dictionary::{Dictionary, item_of, other_item};
use crate::values::items::normal;

const MOST: u64 = 1 << 24;
const SAID: [(&str, &[&str]); 9] = [
    ("no_items", &["is empty, must hold at least 1 item"]),
    ("empty", &["is empty: remove it"]),
    ("twice", &["is there twice"]),
    ("not_utf8", &["is not UTF-8"]),
    ("byte_order_mark", &["begins with a byte order mark"]),
    ("control_character", &["holds a control character"]),
    ("line_separator", &["holds a separator of lines"]),
    ("direction_control", &["holds a control of direction"]),
    ("invisible_character", &["holds an invisible character"]),
];

fn packed(file: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(file).unwrap();
    encoder.finish().unwrap()
}

fn entries(side: &str) -> Vec<Value> {
    vectors_of_any_text("dictionaries")[side].as_array().unwrap().clone()
}

#[test]
fn files_have_their_items_and_values_their_places() {
    let entries = entries("accept");
    assert_eq!(entries.len(), 12);
    for entry in entries {
        let file = bytes(&entry, "file");
        for dictionary in
            [Dictionary::parse(&file, MOST, MOST), Dictionary::parse(&packed(&file), MOST, MOST)].map(Result::unwrap)
        {
            let items = entry["items"].as_array().unwrap();
            assert_eq!(dictionary.len(), items.len() as u64);
            for (place, item) in items.iter().enumerate() {
                assert_eq!(dictionary.position(item.as_str().unwrap()), Some(place as u64), "{entry}");
            }
            assert_eq!(dictionary.digest(), array(&entry, "digest"), "{entry}");
            require_places(&dictionary, &entry);
        }
    }
}

fn require_places(dictionary: &Dictionary, entry: &Value) {
    let values = entry["values"].as_array().unwrap();
    assert!(values.len() >= 10);
    for value in values {
        // A &str has no lone surrogate: what stands for it is in no dictionary either.
        let text = normal(text(value, "value"));
        let domain = Some(dictionary.len() + 1);
        assert_eq!(Some(item_of(&text, Some(dictionary), domain)), value["position"].as_u64(), "{value}");
        assert_eq!(item_of(&text, Some(dictionary), None).to_string(), value["pool_item"].as_str().unwrap(), "{value}");
    }
    assert!(values.iter().any(|value| text(value, "value") == LONE));
}

#[test]
fn other_files_are_refused_for_the_reason() {
    let entries = entries("refuse");
    assert_eq!(entries.len(), 16);
    for entry in entries {
        let file = bytes(&entry, "file");
        require_refused(Dictionary::parse(&file, MOST, MOST), &entry, &SAID);
        require_refused(Dictionary::parse(&packed(&file), MOST, MOST), &entry, &SAID);
    }
}

#[test]
fn no_more_is_read_or_unpacked_than_allowed() {
    let said = |file: &[u8], items, most| Dictionary::parse(file, items, most).err().unwrap().to_string();
    assert!(said(b"a\nb\nc\n", 2, MOST).contains("more items than the 2"));
    assert!(said(&packed(&b"a\n".repeat(1 << 20)), MOST, 100).contains("more than 100 bytes unpacked"));
    assert!(
        said(&packed(&vec![b'a'; 1 << 20]), MOST, MOST).contains("line 1 of the dictionary has more than 4096 bytes")
    );
    let whole = packed(b"a\nb\n");
    assert!(said(&whole[..whole.len() - 1], MOST, MOST).contains("damaged"));
    assert!(said(&[0x1f, 0x8b, 0], MOST, MOST).contains("damaged"));
}

#[test]
fn many_items_are_found_and_a_late_repeat_is_refused() {
    let items: Vec<String> = (0..5000).map(|item| format!("item {item}\n")).collect();
    let mut file = items.concat();
    let dictionary = Dictionary::parse(file.as_bytes(), MOST, MOST).unwrap();
    assert!((0..5000).all(|item| dictionary.position(&format!("item {item}")) == Some(item)));
    assert_eq!([dictionary.position("item 5000"), dictionary.position("")], [None, None]);
    file += "item 77";
    let error = Dictionary::parse(file.as_bytes(), MOST, MOST).err().unwrap().to_string();
    assert!(error.contains("line 5001 of the dictionary is there twice"), "{error}");
}

#[test]
fn without_a_dictionary_a_value_that_may_be_no_item_is_other() {
    assert_eq!(item_of("a\u{202e}", None, None), other_item(None));
    assert_eq!(item_of("a", None, None), 1_931_423_897_400_987_839);
    assert_eq!(other_item(Some(10)), 9);
}
