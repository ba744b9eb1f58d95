//! An app that reports meets no error of a person's, a device's or an operator's making: it gets one word.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use super::fake_collector::{DAY, STRANGER, World, capped, told};
use super::queue::Folder;
use crate::budget::{Budget, Limits, WhenSpent};
use crate::sender::events::Delivery;
use crate::sender::http::{Failure, Http, Request, Response};
use crate::sender::reported::Reported;
use crate::store::Store;
use crate::value::Value;

#[test]
fn the_words_are_a_closed_list() {
    use Reported::{BudgetSpent, NotAsked, NotYet, OptedOut, OverCap, QueueFull, Queued, Storage, Untrusted};
    let all = [Queued, NotAsked, OverCap, BudgetSpent, OptedOut, QueueFull, NotYet, Untrusted, Storage];
    let words = "queued not_asked over_cap budget_spent opted_out queue_full not_yet untrusted storage";
    assert_eq!(all.map(|word| word.to_string()).join(" "), words);
}

#[test]
fn what_a_person_does_is_one_word_and_is_counted() {
    let world = World::new(&capped(1));
    let one = world.sender();
    let words = [(); 3].map(|()| one.report("one"));
    assert_eq!(words, [Reported::Queued, Reported::OverCap, Reported::OverCap]);
    assert_eq!((one.dropped(), one.waiting()), (BTreeMap::from([(Reported::OverCap, 2)]), Some(2)));
    one.forget().unwrap();
    assert_eq!(one.report("one"), Reported::OptedOut);
    assert_eq!(one.dropped(), BTreeMap::from([(Reported::OverCap, 2), (Reported::OptedOut, 1)]));
    let whats: Vec<_> = told(&one).into_iter().map(|(what, ..)| what).collect();
    assert_eq!(whats, ["Fetched", "Queued", "NotQueued", "NotQueued", "Forgotten", "NotQueued"]);
    assert_eq!(one.deliver(false).unwrap(), Delivery::default());
}

#[test]
fn a_spent_budget_a_full_queue_and_what_an_operator_does_are_one_word() {
    let world = World::new(&json!({}));
    let limits = |when_spent| Limits { lifetime: 1.5, when_spent, ..Limits::default() };
    for (when_spent, word) in [(WhenSpent::Nothing, Reported::BudgetSpent), (WhenSpent::Other, Reported::Queued)] {
        let budget = Budget::new(world.store.clone(), limits(when_spent)).unwrap();
        let one = world.sender_with(|options| options.budget = Some(budget));
        assert_eq!(one.report("one"), word);
    }
    let one = world.sender_with(|options| options.most_queued = 3);
    assert_eq!(one.report(&"x".repeat(100)), Reported::QueueFull);
    let world = World::new(&json!({}));
    world.told().down = true;
    assert_eq!(world.sender().report("one"), Reported::NotYet);
    world.told().down = false;
    world.told().signer = STRANGER;
    assert_eq!(world.sender().report("one"), Reported::Untrusted);
    let world = World::new(&json!({}));
    let one = world.sender();
    assert_eq!(one.report("one"), Reported::Queued);
    world.hands.pass(25 * 365 * DAY);
    assert_eq!(one.report("one"), Reported::NotYet, "the keys have ended");
}

#[test]
fn a_damaged_store_is_one_word() {
    let folder = Folder::new("damaged");
    let path = folder.path("store.sqlite");
    let world = World { store: Store::open(&path).unwrap(), ..World::new(&json!({})) };
    let one = world.sender();
    assert_eq!(one.report("one"), Reported::Queued);
    std::fs::write(&path, b"damaged".repeat(1000)).unwrap();
    assert_eq!([(); 2].map(|()| one.report("one")), [Reported::Storage; 2]);
    assert_eq!((one.dropped()[&Reported::Storage], one.waiting()), (2, None));
    assert!(told(&one).last().unwrap().1.contains("is damaged"));
    one.start();
    one.stop();
    assert!(one.spent().is_err() && one.forget().is_err() && one.deliver(false).is_err());
}

#[test]
fn a_number_and_coordinates_are_reported_and_unlisted_coordinates_are_not_kept() {
    let world = World::new(&json!({}));
    world.told().down = true;
    let one = world.sender_with(|options| options.keep_values = true);
    assert_eq!(one.report_with(4.5, &[("version", Value::Text("2.1")), ("Upper", "x".into())]), Reported::Queued);
    let wanted = r#"["4.5",{"version":"2.1"}]"#;
    let kept = crate::sender::tables::change(&world.store, "words", |tables| {
        tables.sql(|sql, _| sql.query_row("SELECT value FROM queue", [], |row| row.get::<_, Vec<u8>>(0)))
    });
    assert_eq!(kept.unwrap(), wanted.as_bytes());
}

struct Panics;

impl Http for Panics {
    fn exchange(&self, _: &Request<'_>) -> Result<Response, Failure> {
        std::panic::resume_unwind(Box::new("a fault of the app"));
    }
}

#[test]
fn no_panic_of_an_apps_http_reaches_the_app() {
    let world = World::new(&json!({}));
    let one = world.sender_with(|options| options.http = Arc::new(Panics));
    assert_eq!(one.report("one"), Reported::NotYet, "as if nobody were reached");
    one.deliver(false).unwrap();
    one.start();
    one.stop();
    assert_eq!(world.sender().report("one"), Reported::Queued, "the store is whole");
}

#[test]
fn threads_count_each_value_once() {
    let world = World::new(&capped(1));
    let one = world.sender();
    one.report("one");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..10 {
                    assert_eq!(one.report("one"), Reported::OverCap);
                }
            });
        }
    });
    assert_eq!(one.dropped(), BTreeMap::from([(Reported::OverCap, 40)]));
}
