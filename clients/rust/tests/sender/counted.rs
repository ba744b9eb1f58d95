//! Every report is sent, dropped or waiting, whatever the collector and the evaluator do; and processes that share a
//! store while evaluations are open ask for nothing and send nothing twice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use super::evaluations::values;
use super::fake_collector::{DAY, Evaluated, Fake, HOUR, Said, World, evaluated, evaluated_by, oblivious, refused};
use super::sent_in_a_window::Chance;
use crate::errors::Kind;
use crate::sender::events::Delivery;
use crate::sender::http::{Failure, Http, Request, Response};
use crate::sender::sending::Sender;

/// An answer of the evaluator.
type Fault = fn(&[u8]) -> Evaluated;
const FAULTS: [Fault; 7] = [
    evaluated,
    |_| refused(503, "stopping"),
    |_| refused(429, "too_many_evaluations"),
    |_| refused(410, "key_destroyed"),
    |_| refused(413, "too_many_evaluations_at_once"),
    |blinded| evaluated_by([9; 4], blinded),
    |_| (200, "text/html", b"<html>".to_vec()),
];
/// Status, problem, and seconds of `Retry-After`.
const ANSWERS: [(u16, &str, &str); 10] = [
    (202, "", "0"),
    (503, "queue_full", "5"),
    (429, "too_many_reports", "100000000"),
    (409, "epoch_closed", "0"),
    (409, "unknown_fingerprint", "0"),
    (409, "epoch_not_begun", "0"),
    (413, "too_long", "0"),
    (400, "wrong_length", "0"),
    (403, "", "0"),
    (302, "", "0"),
];

/// Do something at random.
fn act(world: &World, one: &Sender, chance: &mut Chance) {
    World::refresh(one);
    let before = one.waiting().unwrap();
    match chance.below(9) {
        0 | 1 => drop(one.try_report(chance.of(&["new", "one"]), &[])),
        early @ (2 | 3) => {
            let done = one.deliver(early == 3).unwrap();
            assert_eq!(before + done.added, done.sent + done.dropped.values().sum::<u64>() + done.waiting);
            assert_eq!(Some(done.waiting), one.waiting());
        }
        4 => world.hands.pass(HOUR + 400_000),
        5 => world.told().publish(&oblivious()),
        6 => {
            let mut told = world.told();
            told.down = !told.down;
        }
        7 => world.told().evaluate = Box::new(chance.of(&FAULTS)),
        _ => {
            let said = |(status, problem, after): (u16, _, &str)| -> Said {
                (status, problem, vec![("retry-after", after.to_owned())])
            };
            world.told().answers = (0..chance.below(5)).map(|_| said(chance.of(&ANSWERS))).collect();
        }
    }
}

#[test]
fn every_report_is_sent_dropped_or_waiting_whatever_the_collector_and_the_evaluator_do() {
    let mut all = 0;
    for seed in 0..60 {
        let mut chance = Chance(seed);
        let world = World::new(&oblivious());
        let one = world.sender_with(|options| (options.keep_values, options.most_queued) = (seed % 2 == 0, 50));
        let _ = one.try_report("one", &[]);
        (0..20).for_each(|_| act(&world, &one, &mut chance));
        // In the end all is well, and nothing waits for good.
        world.told().down = false;
        world.told().answers.clear();
        for _ in 0..2 {
            world.hands.pass(2 * DAY);
            world.again_now();
            World::refresh(&one);
            one.deliver(true).unwrap();
        }
        assert_eq!((one.waiting(), one.deliverer.asker.open.next_due()), (Some(0), None), "{seed}");
        for stream in ["reports", "discovery"] {
            let (told, mut times) = (world.told(), BTreeMap::new());
            told.received(stream).into_iter().for_each(|report| *times.entry(report).or_insert(0) += 1);
            assert!(times.values().all(|number| *number == 1), "{seed}");
            all += times.len();
        }
    }
    assert!(all > 200, "{all}");
}

/// Another process does something while the evaluator is asked.
struct Meanwhile(Arc<Fake>, Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl Http for Meanwhile {
    fn exchange(&self, request: &Request<'_>) -> Result<Response, Failure> {
        if request.url.contains("/evaluations?") {
            self.1.lock().unwrap().take().into_iter().for_each(|work| work());
        }
        self.0.exchange(request)
    }
}

/// Return a sender that reported a new value; while it asks the evaluator, another sender of its store does something.
fn interrupted(world: &World, work: impl FnOnce(&Sender) + Send + 'static) -> Sender {
    let other = world.sender();
    let http = Meanwhile(world.fake.clone(), Mutex::new(Some(Box::new(move || work(&other)))));
    let one = world.sender_with(|options| options.http = Arc::new(http));
    one.try_report("new", &[]).unwrap();
    one
}

#[test]
fn an_answer_that_comes_when_the_blank_is_gone_makes_no_second_report() {
    let world = World::new(&oblivious());
    let hands = world.hands.clone();
    let one = interrupted(&world, move |other| {
        hands.pass(2 * HOUR);
        assert_eq!(other.deliver(false).unwrap().sent, 2);
    });
    let blank = [("too_late".to_owned(), 1)].into();
    assert_eq!(one.deliver(false).unwrap(), Delivery { blank, ..Delivery::default() });
    assert_eq!(values(&world), [None]);
}

#[test]
fn while_it_asks_nobody_else_sends_the_blank() {
    let world = World::new(&oblivious());
    let one = interrupted(&world, |other| {
        let done = other.deliver(true).unwrap();
        assert_eq!((done.sent, done.waiting), (1, 1));
    });
    world.hands.pass(HOUR);
    assert_eq!(one.deliver(false).unwrap().sent, 1, "an evaluation is asked once at least, however late");
    assert_eq!(values(&world), [Some("new".to_owned())]);
}

#[test]
fn who_opts_out_before_or_during_an_evaluation_leaves_nothing() {
    for is_during in [false, true] {
        let world = World::new(&oblivious());
        let one = interrupted(&world, |other| other.forget().unwrap());
        if !is_during {
            world.sender().forget().unwrap();
        }
        assert_eq!(one.deliver(false).unwrap(), Delivery::default());
        assert_eq!((one.waiting(), one.deliverer.asker.open.next_due()), (Some(0), None));
        assert_eq!(one.try_report("new", &[]).unwrap_err().kind(), Kind::OptedOut);
        let told = world.told();
        assert_eq!((told.asked.len(), told.posts.len()), (usize::from(is_during), 0));
    }
}

#[test]
fn a_week_without_a_network_loses_nothing_and_is_one_token_a_window() {
    let world = World::new(&oblivious());
    let one = world.sender();
    one.try_report("one", &[]).unwrap();
    one.deliver(false).unwrap();
    world.told().down = true;
    world.told().evaluate = Box::new(|_| refused(503, "stopping"));
    for _ in 0..7 * 24 {
        let _ = one.try_report("one", &[]);
        let done = one.deliver(false).unwrap();
        assert!(done.sent == 0 && done.dropped.is_empty(), "{done:?}");
        world.hands.pass(HOUR);
    }
    let waiting = one.waiting().unwrap();
    assert_eq!(waiting, 2 * 100, "as many as one window takes");
    world.told().down = false;
    world.again_now();
    assert_eq!(one.deliver(true).unwrap().sent, waiting);
    let told = world.told();
    let tokens: BTreeMap<_, BTreeSet<_>> = told.posts.iter().fold(BTreeMap::new(), |mut all, post| {
        let window = post.url.split("window=").nth(1).unwrap();
        all.entry(window).or_insert_with(BTreeSet::new).insert(&post.token.1);
        all
    });
    assert!(tokens.len() > 1 && tokens.values().all(|of_window| of_window.len() == 1), "{}", tokens.len());
}
