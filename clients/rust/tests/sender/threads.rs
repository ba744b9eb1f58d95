//! The thread of a sender delivers, wakes for what is due, and ends.

use std::time::{Duration, Instant};

use serde_json::json;

use super::fake_collector::World;
use super::queue::Folder;
use crate::clock::SystemClock;
use crate::sender::options::SenderOptions;
use crate::sender::reported::Reported;
use crate::store::Store;

/// Wait until what a thread does makes a condition hold, a minute at most.
fn wait_for(condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn by_the_systems_clock(options: &mut SenderOptions) {
    options.clock = std::sync::Arc::new(SystemClock);
}

#[test]
fn a_thread_delivers_and_its_stop_ends_it() {
    let folder = Folder::new("thread");
    let world = World { store: Store::open(folder.path("store.sqlite")).unwrap(), ..World::new(&json!({})) };
    let one = world.sender_with(|options| {
        by_the_systems_clock(options);
        options.delay_seconds = 1;
    });
    one.start();
    one.start();
    for _ in 0..3 {
        wait_for(|| one.waiting() == Some(0));
        assert_eq!(one.report("one"), Reported::Queued);
    }
    wait_for(|| one.waiting() == Some(0));
    one.stop();
    assert_eq!(world.told().received("reports").len(), 3);
    // What waits is sent by the first round of the next process, however early it ends.
    assert_eq!(one.report("one"), Reported::Queued);
    std::thread::sleep(Duration::from_millis(1100));
    let next = world.sender_with(by_the_systems_clock);
    next.start();
    next.stop();
    assert_eq!(world.told().received("reports").len(), 4);
}

#[test]
fn the_first_file_comes_when_the_thread_starts_and_no_report_asks_for_it() {
    let world = World::new(&json!({}));
    world.told().down = true;
    let one = world.sender();
    one.start();
    wait_for(|| !one.log().is_empty());
    assert_eq!([(); 3].map(|()| one.report("one")), [Reported::NotYet; 3]);
    world.hands.pass(60_000);
    assert_eq!(one.report("one"), Reported::NotYet);
    assert_eq!(world.told().gets.len(), 1, "the thread asks again, and no report does");
    one.stop();
}

#[test]
fn without_a_file_the_stop_sends_what_waits_and_a_drop_does_not() {
    let world = World::new(&json!({}));
    let one = world.sender_with(|options| options.delay_seconds = 3600);
    one.start();
    wait_for(|| one.report("one") == Reported::Queued);
    one.stop();
    assert_eq!(world.told().posts.len(), 2);
    let other = world.sender_with(|options| options.delay_seconds = 3600);
    assert_eq!(other.report("one"), Reported::Queued);
    other.start();
    drop(other);
    assert_eq!(world.told().posts.len(), 2);
}

#[test]
fn a_thread_rests_while_a_value_waits_for_a_campaign() {
    let world = World::new(&json!({}));
    world.told().down = true;
    let one = world.sender_with(|options| {
        by_the_systems_clock(options);
        options.keep_values = true;
    });
    one.start();
    assert_eq!(one.report("one"), Reported::Queued);
    std::thread::sleep(Duration::from_millis(200));
    assert!(world.told().gets.len() <= 1);
    one.stop();
}
