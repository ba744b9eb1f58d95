//! Texts: times, and values of a person, which are items, addresses or numbers.

use serde_json::Value;

use super::{Draws, attack};
use crate::errors::{Error, Kind, Result};
use crate::formats::times::{parse_time, time_text};
use crate::randomness::Fresh;
use crate::sender::verdict::Answer;
use crate::values::items::{MOST_ITEM_BYTES, OTHER, fault_of, fingerprint_of, normal};
use crate::values::urls::Addresses;
use crate::vectors::support::{campaign, vectors_of_any_text};

fn refused<T>(made: Option<T>) -> Result<T> {
    made.ok_or_else(|| Error::format("no"))
}

#[test]
fn a_time_is_refused_or_written_again() {
    let times = ["2026-12-01T00:00:00Z", "0001-01-01T00:00:00.5+23:59", "9999-12-31T23:59:59.999999-23:59"];
    attack("times", (4000, 1..=20), &times.map(|time| time.as_bytes().to_vec()), &[Kind::Format], |bytes| {
        let time = refused(std::str::from_utf8(bytes).ok().and_then(parse_time))?;
        assert_eq!(parse_time(&time_text(time)).unwrap_or(time), time);
        Ok(())
    });
    let dates = ["Wed, 21 Oct 2026 07:28:00 GMT", "Thu, 01 Jan 1970 00:00:00 GMT"];
    attack("dates", (4000, 0..=20), &dates.map(|date| date.as_bytes().to_vec()), &[Kind::Format], |bytes| {
        let date = Some(String::from_utf8_lossy(bytes).into_owned());
        refused(Answer { date, ..Answer::default() }.time()).map(|time| assert!(time >= 0))
    });
}

/// Characters on which normal forms, items and hosts depend.
const LETTERS: &str = "aA\u{df}\u{3c2}\u{131}\u{130}e\u{301}\u{1100}\u{1161}\u{fb01}\u{fe0f}\u{20e3}\u{200d}\u{1f3f4}\
    \u{e0067}\u{e007f}\u{94d}\u{180e}\u{2028}\u{202e}\u{feff}\u{378}\u{13a0}\u{ab70}\u{5d0}\u{627}\u{10ffff}\u{fdfa}\
    \u{1e9e}\u{3002}\u{ff0e}%2f%00.:/@#?\\\u{0}\t 0123456789xn--";

/// Return texts of the vectors, mutated as bytes and as characters.
fn texts(subject: &str, fields: &[&str], cases: usize, mut use_of: impl FnMut(&str)) {
    let file = vectors_of_any_text(subject);
    let all = ["accept", "refuse"].map(|side| file[side].as_array().unwrap().clone()).concat();
    let texts = all.iter().flat_map(|entry| fields.iter().filter_map(|field| entry[*field].as_str()));
    let seeds: Vec<_> = texts.map(|text| text.as_bytes().to_vec()).collect();
    let letters: Vec<char> = LETTERS.chars().collect();
    let mut draws = Draws::new(&format!("letters of {subject}"));
    let seen = |bytes: &[u8]| {
        let mut text: Vec<char> = String::from_utf8_lossy(bytes).chars().collect();
        for _ in 0..draws.below(4) {
            let at = draws.below(text.len() + 1);
            text.splice(at..at, vec![*draws.one(&letters); draws.length()]);
        }
        if draws.below(100) == 0 {
            text = text.repeat(draws.below(10_000) / text.len().max(1));
        }
        use_of(&text.into_iter().collect::<String>());
        // A text that cannot be told counts as another one.
        Ok(())
    };
    attack(subject, (cases, 100..=100), &seeds, &[], seen);
}

#[test]
fn every_text_is_an_item_or_none() {
    let axes = campaign("axes").strata.unwrap();
    texts("items", &["text"], 3000, |text| {
        let item = normal(text);
        assert_eq!(normal(&item), item);
        assert!(fault_of(&item).is_some() || (1..=MOST_ITEM_BYTES).contains(&item.len()));
        assert!(fingerprint_of(&item) < OTHER);
        for (name, _) in axes.axes() {
            let by = [(name, text.to_owned())].into();
            assert!(
                axes.cells().is_none_or(|cells| axes.cell_of(u64::MAX, &by) < cells && axes.cell_of(0, &by) < cells)
            );
        }
    });
}

#[test]
fn every_text_is_an_address_or_none() {
    let rules = |entry: &Value| Addresses::parse(&entry["url"], entry["most"].as_u64().unwrap() as usize).unwrap();
    let accept = vectors_of_any_text("urls")["accept"].as_array().unwrap().clone();
    let addresses: Vec<_> = accept.iter().map(rules).collect();
    let limits: Vec<_> = accept.iter().map(|entry| entry["most"].as_u64().unwrap() as usize).collect();
    let mut draws = Draws::new("addresses");
    let mut told = 0;
    texts("urls", &["text"], 3000, |text| {
        let place = draws.below(addresses.len());
        if let Some(item) = addresses[place].item_of(text, None) {
            assert!(item.len() <= limits[place] && fault_of(&item).is_none(), "{item:?}");
            assert_eq!(normal(&item), item);
            told += 1;
        }
    });
    assert!(told > 100, "{told}");
}

#[test]
fn every_text_is_in_a_bin_or_in_none() {
    let numbers = ["number", "count", "mean"].map(|name| campaign(name).number.unwrap());
    texts("numbers", &["text"], 1500, |text| {
        for each in &numbers {
            let _ = each.bin_of(text, &mut Fresh::new().unwrap());
        }
    });
}
