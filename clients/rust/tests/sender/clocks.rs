//! Whatever the clocks show, a sender charges what counts, and is silent for a window at most.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use super::fake_collector::{DAY, HOUR, World, capped};
use crate::errors::Kind;
use crate::formats::times::parse_time;
use crate::sender::sending::Sender;

/// Return the table that all clients share.
fn table() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/hushcount/delivery/clocks.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Return an IMF-fixdate.
pub(super) fn dated(millis: i64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let text = crate::formats::times::time_text(millis);
    let month = MONTHS[text[5..7].parse::<usize>().unwrap() - 1];
    let day = DAYS[millis.div_euclid(DAY).rem_euclid(7) as usize];
    format!("{day}, {} {month} {} {} GMT", &text[8..10], &text[..4], &text[11..19])
}

/// Return the outcome of a step: `made`, `over_cap`, or the number of values that were sent.
fn done(one: &Sender, step: &Value) -> Value {
    if step["do"] == "deliver" {
        return json!(one.deliver(false).unwrap().sent / 2);
    }
    match one.try_report("one", &[]) {
        Ok(()) => json!("made"),
        Err(error) => {
            assert_eq!(error.kind(), Kind::OverCap, "{error}");
            json!("over_cap")
        }
    }
}

#[test]
fn what_is_charged_counts_whatever_the_clocks_show() {
    let table = table();
    let start = parse_time(table["start"].as_str().unwrap()).unwrap();
    let cases = table["cases"].as_array().unwrap();
    assert!(cases.len() >= 17);
    for case in cases {
        let cap = case["cap"].as_u64().unwrap();
        let world = World::new(&capped(cap));
        let (mut outcomes, mut wanted, mut arrived, mut charged) = (vec![], vec![], BTreeMap::<i64, u64>::new(), 0);
        for step in case["steps"].as_array().unwrap() {
            let hours = |field: &str| step[field].as_f64().map(|hours| (hours * HOUR as f64) as i64);
            let device = start + hours("device").unwrap();
            let at = hours("collector").map_or(device, |collector| start + collector);
            world.hands.set(device);
            let known = {
                let mut told = world.told();
                told.now = if step.get("date").is_some() { i64::MAX } else { at };
                told.date = match step.get("date") {
                    None => Some(dated(at)),
                    Some(Value::Null) => None,
                    Some(Value::String(text)) => Some(text.clone()),
                    Some(_) => Some(dated(start + hours("date").unwrap())),
                };
                told.always = match step["answer"].as_str() {
                    Some("fails") => Some((503, "queue_full", vec![])),
                    Some("page") => Some((200, "", vec![])),
                    _ => None,
                };
                told.received("reports").len()
            };
            // A step is a process of its own.
            let one = world.sender();
            outcomes.push(done(&one, step));
            wanted.push(step.get("is").unwrap_or(&step["sent"]).clone());
            let streams = one.spent().unwrap().streams;
            charged = streams.iter().map(|stream| stream.reports).max().unwrap_or_default();
            assert!(streams.iter().all(|stream| stream.reports == charged));
            *arrived.entry(at.div_euclid(DAY)).or_default() += (world.told().received("reports").len() - known) as u64;
        }
        assert_eq!((&outcomes, json!(charged)), (&wanted, case["charged"].clone()), "{}", case["name"]);
        assert!(arrived.values().all(|number| *number <= cap), "{}", case["name"]);
    }
}

#[test]
fn whatever_was_kept_while_the_clock_was_40_days_ahead_is_over_when_it_is_set_back() {
    let world = World::new(&json!({}));
    let one = world.sender();
    let now = world.hands_now();
    world.hands.pass(40 * DAY);
    one.try_report("one", &[]).unwrap();
    one.try_report("one", &[]).unwrap();
    world.told().always = Some((503, "queue_full", vec![("Retry-After", "86400".to_owned())]));
    assert!(one.deliver(false).unwrap().held_until.unwrap() > world.hands_now());
    world.told().always = None;
    world.told().publish(&json!({}));
    let both = world
        .told()
        .epochs
        .iter()
        .map(|file| crate::formats::bytes::hex(&super::fake_collector::read(file).fingerprint))
        .collect();
    world.told().accepted = Some(both);
    world.hands.set(now);
    let asked = world.told().gets.len();
    assert_eq!(one.deliver(false).unwrap().sent, 4, "what waited is sent at once");
    assert!(world.told().gets.len() > asked, "the file of that time is too old");
}
