//! The table of answers that the clients in other languages are held to.

use serde_json::Value;

use super::support::{text, vectors};
use crate::formats::times::parse_time;
use crate::sender::verdict::{Answer, Fate};

fn header(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

fn name(fate: Fate) -> String {
    format!("{fate:?}").to_lowercase()
}

#[test]
fn every_answer_means_what_the_table_says() {
    let window = parse_time("2026-10-22T00:00:00Z").unwrap();
    let table = vectors("answers");
    let rows = ["accept", "refuse"].map(|side| table[side].as_array().unwrap().clone()).concat();
    let list = |row: &Value, field: &str| row[field].as_array().unwrap().clone();
    let mut cases = 0;
    for row in &rows {
        let wanted = (text(row, "fate"), row["reason"].as_str().unwrap_or(""), row["wait"].as_f64().unwrap());
        for (status, body) in pairs(&list(row, "status"), &list(row, "body")) {
            for (retry_after, date) in pairs(&list(row, "retry_after"), &list(row, "date")) {
                let answer = Answer {
                    status: u16::try_from(status.as_u64().unwrap()).unwrap(),
                    content_type: header(&body[0]),
                    retry_after: header(retry_after),
                    date: header(&date[0]),
                    age: header(&date[1]),
                    body: body[1].as_str().unwrap().into(),
                };
                for reports in list(row, "reports") {
                    let told = answer.verdict(usize::try_from(reports.as_u64().unwrap()).unwrap(), window);
                    let made = (&name(told.fate)[..], &told.reason[..], told.wait as f64 / 1000.0);
                    assert_eq!(made, wanted, "{answer:?}, {reports} reports");
                    cases += 1;
                }
            }
        }
    }
    assert!(cases > 17_000, "{cases} cases");
}

fn pairs<'a>(ones: &'a [Value], others: &'a [Value]) -> impl Iterator<Item = (&'a Value, &'a Value)> {
    ones.iter().flat_map(move |one| others.iter().map(move |other| (one, other)))
}

#[test]
fn a_time_is_an_imf_fixdate_that_no_cache_kept() {
    let time = |date: &str, age: Option<&str>| {
        Answer { date: Some(date.to_owned()), age: age.map(str::to_owned), ..Answer::default() }.time()
    };
    assert_eq!(time("Wed, 21 Oct 2026 07:28:00 GMT", None), parse_time("2026-10-21T07:28:00Z"));
    assert_eq!(time("Thu, 01 Jan 1970 00:00:00 GMT", None), Some(0));
    assert_eq!(time("Tue, 31 Dec 8999 23:59:59 GMT", None), parse_time("8999-12-31T23:59:59Z"));
    assert_eq!(time("Wed, 21 Oct 2026 07:28:00 GMT", Some("0")), None);
    for other in [
        "",
        "Thu, 21 Oct 2026 07:28:00 GMT",
        "wed, 21 Oct 2026 07:28:00 GMT",
        "Wed, 21 Oct 2026 07:28:00 UTC",
        "Wed, 21 oct 2026 07:28:00 GMT",
        "Wed, 1 Oct 2026 007:28:00 GMT",
        "Wed, 21 Oct 26 07:28:00.0 GMT",
        "Wednesday, 21-Oct-26 07:28:00",
        "Wed, 31 Dec 1969 23:59:59 GMT",
        "Mon, 01 Jan 9000 00:00:00 GMT",
        "Wed, 2\u{e9}Oct 2026 07:28:00 GMT",
        "Wed, 21 Oct 2026 07:28:60 GMT",
    ] {
        assert_eq!(time(other, None), None, "{other}");
    }
}
