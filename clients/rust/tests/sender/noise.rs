//! A sender of a campaign whose mixes add the noise: a report counts in the window in which it is due, or not at all.

use serde_json::{Value, json};

use super::fake_collector::{DAY, HOUR, NOON, World};
use super::sender::dropped;
use crate::errors::Kind;

const MIDNIGHT: i64 = NOON - 12 * HOUR;

fn noisy() -> Value {
    json!({"noise": {"epsilon": 1.0, "delta": 1e-8, "seconds": 86_400}, "mechanism": null, "discovery": null,
        "shuffle": {"cap": 1, "minimum_batch": 1, "delta": 1e-8}})
}

/// Return when the windows begin that the reports name which arrived.
fn windows(world: &World) -> Vec<i64> {
    let told = world.told();
    let named = told.received("reports").into_iter().map(|report| u64::from_le_bytes(report[..8].try_into().unwrap()));
    named.map(|seconds| 1000 * seconds.cast_signed()).collect()
}

#[test]
fn what_is_not_sent_in_its_window_is_dropped_and_counted_after_a_restart_too() {
    let world = World::new(&noisy());
    let one = world.sender();
    one.try_report("one", &[]).unwrap();
    assert_eq!(one.try_report("two", &[]).unwrap_err().kind(), Kind::OverCap);
    world.told().down = true;
    assert_eq!(one.deliver(false).unwrap().waiting, 1);
    world.told().down = false;
    world.hands.set(MIDNIGHT + DAY);
    let again = world.sender();
    again.try_report("two", &[]).unwrap();
    let done = again.deliver(false).unwrap();
    assert_eq!((done.sent, done.waiting, done.dropped), (1, 0, dropped("other_window", 1)));
    assert_eq!(windows(&world), [MIDNIGHT + DAY]);
    assert!(world.told().posts[0].url.ends_with("&window=20261127T000000Z&until=20261128T000000Z"));
    assert!((again.spent().unwrap().epsilon - 2.0).abs() < 1e-9);
}

#[test]
fn a_report_that_is_due_in_the_next_window_waits_for_it() {
    let world = World::new(&noisy());
    // Of a delay of up to a day, all but a part of 1.2e-8 ends in the next window.
    world.hands.set(MIDNIGHT - 1);
    let one = world.sender_with(|options| options.delay_seconds = 86_400);
    one.try_report("one", &[]).unwrap();
    assert_eq!(one.deliver(true).unwrap().waiting, 1);
    world.hands.set(MIDNIGHT + 1000);
    assert_eq!(one.deliver(true).unwrap().sent, 1);
    assert_eq!(windows(&world), [MIDNIGHT]);
}

#[test]
fn a_clock_that_is_behind_learns_that_the_window_is_over() {
    let world = World::new(&noisy());
    world.hands.set(MIDNIGHT - 1000);
    let one = world.sender();
    one.try_report("one", &[]).unwrap();
    world.told().date = Some("Thu, 26 Nov 2026 00:00:01 GMT".to_owned());
    world.told().answers.push_back((409, "window_over", vec![]));
    assert_eq!(one.deliver(false).unwrap().waiting, 1);
    world.hands.pass(HOUR);
    assert_eq!(one.deliver(false).unwrap().dropped, dropped("other_window", 1));
    assert!(world.told().posts.is_empty());
}
