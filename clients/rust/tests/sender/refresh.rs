//! A report causes no request: when the campaign file is fetched again does not tell when a value was used.

use serde_json::json;

use super::fake_collector::{DAY, HOUR, STRANGER, World, policy};
use crate::errors::Kind;
use crate::sender::options::SenderOptions;

const DELAY: i64 = 600_000;

fn delayed(options: &mut SenderOptions) {
    options.delay_seconds = 600;
}

fn requests(world: &World) -> usize {
    let told = world.told();
    told.gets.len() + told.posts.len()
}

#[test]
fn no_use_causes_a_request_while_rounds_go_on() {
    for max_age in [0, 600] {
        let world = World::new(&json!({}));
        world.told().max_age = max_age;
        let one = world.sender_with(delayed);
        one.deliver(false).unwrap();
        let (first, mut caused) = (requests(&world), 0);
        for gap in (0..20).map(|use_| (300_000 + 150_000 * (7 * use_ % 20)) / 4) {
            // What a thread does meanwhile, which wakes at least once a minute.
            for _ in 0..4 {
                world.hands.pass(gap);
                one.deliver(false).unwrap();
            }
            let before = requests(&world);
            one.try_report("one", &[]).unwrap();
            one.deliver(false).unwrap();
            caused += requests(&world) - before;
        }
        assert_eq!(caused, 0);
        let asked = world.told().gets.len() - first;
        // In ten hours; each waits from one to one and a half, the next round and the delay.
        assert!((4..=10).contains(&asked), "{asked}");
    }
}

#[test]
fn an_overdue_file_waits_a_random_time_from_the_start_of_a_process() {
    let world = World::new(&json!({}));
    world.sender_with(delayed).deliver(false).unwrap();
    world.hands.pass(3 * DAY);
    let (before, now) = (requests(&world), world.hands_now());
    let mut waits = Vec::new();
    let mut last = None;
    for _ in 0..24 {
        let one = world.sender_with(delayed);
        one.deliver(false).unwrap();
        waits.push(one.deliverer.present.next_due().unwrap() - now);
        last = Some(one);
    }
    assert_eq!(requests(&world), before);
    // 24 uniform draws fall into one half with probability 1.2e-7.
    assert!(waits.iter().all(|wait| (0..=DELAY).contains(wait)));
    assert!(waits.iter().min().unwrap() < &(DELAY / 2) && waits.iter().max().unwrap() > &(DELAY / 2));
    let (one, wait) = (last.unwrap(), waits[23]);
    assert_eq!(one.deliverer.time_to_wait(now).unwrap(), wait);
    world.hands.pass(wait);
    one.deliver(false).unwrap();
    assert_eq!(requests(&world), before + 1);
    // The next process knows of it.
    let other = world.sender_with(delayed);
    for later in [3_599_000, DELAY] {
        world.hands.pass(later);
        other.deliver(false).unwrap();
    }
    assert_eq!(requests(&world), before + 1);
}

#[test]
fn a_process_that_slept_past_its_random_time_does_not_ask_as_it_wakes() {
    let world = World::new(&json!({}));
    let one = world.sender_with(delayed);
    one.deliver(false).unwrap();
    let before = requests(&world);
    for later in [3 * DAY, 3 * HOUR] {
        world.hands.pass(later);
        one.deliver(false).unwrap();
        assert_eq!(requests(&world), before);
    }
    world.hands.set(one.deliverer.present.next_due().unwrap());
    one.deliver(false).unwrap();
    assert_eq!(requests(&world), before + 1);
}

#[test]
fn a_process_that_lives_too_short_asks_where_it_sends() {
    let world = World::new(&json!({}));
    let one = world.sender_with(delayed);
    one.try_report("one", &[]).unwrap();
    let asked = world.told().gets.len();
    world.hands.pass(DAY);
    assert_eq!(world.sender_with(delayed).deliver(false).unwrap().sent, 2);
    assert_eq!(world.told().gets.len(), asked + 1);
    // Once is enough.
    world.sender_with(delayed).try_report("one", &[]).unwrap();
    world.hands.pass(DELAY);
    assert_eq!(world.sender_with(delayed).deliver(false).unwrap().sent, 2);
    assert_eq!(world.told().gets.len(), asked + 1);
}

#[test]
fn a_clock_that_is_set_back_stops_no_refresh() {
    let world = World::new(&json!({}));
    let one = world.sender_with(delayed);
    world.hands.pass(40 * DAY);
    one.deliver(false).unwrap();
    let asked = world.told().gets.len();
    world.hands.pass(-40 * DAY);
    for _ in 0..11 {
        one.deliver(false).unwrap();
        world.hands.pass(DELAY / 10);
    }
    assert_eq!(world.told().gets.len(), asked + 1);
}

#[test]
fn no_use_causes_a_request_in_processes_without_a_thread() {
    let world = World::new(&json!({}));
    world.told().max_age = 0;
    let mut one = world.sender_with(delayed);
    one.deliver(false).unwrap();
    let before = requests(&world);
    for use_ in 0..20 {
        world.hands.pass(300_000 + 150_000 * (7 * use_ % 20));
        // Every other use is of a new process.
        if use_ % 2 == 0 {
            one = world.sender_with(delayed);
        }
        one.try_report("one", &[]).unwrap();
    }
    assert_eq!(requests(&world), before);
}

#[test]
fn a_kept_file_that_cannot_be_used_is_said_and_fetched_anew_by_a_round() {
    let world = World::new(&json!({}));
    world.sender().deliver(false).unwrap();
    let before = requests(&world);
    world.told().signer = STRANGER;
    let one = world.sender_with(|options| options.policy = policy(STRANGER, &json!({})));
    for _ in 0..2 {
        assert_eq!(one.try_report("one", &[]).unwrap_err().kind(), Kind::Untrusted);
    }
    assert_eq!(requests(&world), before);
    one.deliver(false).unwrap();
    one.try_report("one", &[]).unwrap();
}
