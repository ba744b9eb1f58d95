//! A client asks an issuer for its passes, shows them, and waits without them.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::fake_collector::{DAY, HOUR, NOON, World, oblivious, told};
use super::fake_issuer::{ISSUER, Issuing, section};
use super::sender::dropped;
use crate::errors::Kind;
use crate::sender::events::Delivery;
use crate::sender::issuer::Issuer;
use crate::sender::options::SenderOptions;
use crate::sender::sending::Sender;

struct Places {
    world: World,
    issuer: Arc<Mutex<Issuing>>,
}

impl Places {
    fn new(mut changes: Value, parties: usize) -> Self {
        changes["passes"] = section(parties);
        let world = World::new(&changes);
        // Nearly no client asks for the next day in the first second of a day.
        world.hands.set(NOON - 12 * HOUR);
        let issuer = Arc::new(Mutex::new(Issuing { parties, ..Issuing::default() }));
        let answers = issuer.clone();
        world.told().other = Box::new(move |request| answers.lock().unwrap().exchange(request));
        Self { world, issuer }
    }

    fn of_reports() -> Self {
        Self::new(json!({"discovery": null}), 1)
    }

    fn sender(&self) -> Sender {
        self.world.sender_with(|options| with_issuer(options, || "Bearer account".to_owned()))
    }

    fn steer(&self, change: impl FnOnce(&mut Issuing)) {
        change(&mut self.issuer.lock().unwrap());
    }

    /// Return the days for which passes were asked for.
    fn days(&self) -> Vec<String> {
        let issuer = self.issuer.lock().unwrap();
        issuer.requests.iter().map(|(query, ..)| query["day=".len()..][..8].to_owned()).collect()
    }

    fn shown(&self) -> Vec<(String, String)> {
        self.world.told().posts.iter().map(|post| post.token.clone()).collect()
    }
}

fn with_issuer(options: &mut SenderOptions, authorization: impl Fn() -> String + Send + Sync + 'static) {
    options.issuer = Some(Issuer { site: ISSUER.into(), authorization: Arc::new(authorization) });
}

fn delivered(one: &Sender) -> Delivery {
    one.try_report("one", &[]).unwrap();
    one.deliver(true).unwrap()
}

#[test]
fn all_posts_of_a_period_show_one_pass_and_those_of_the_next_another() {
    let places = Places::of_reports();
    let one = places.sender();
    for _ in 0..2 {
        assert_eq!(delivered(&one).sent, 1);
    }
    places.world.hands.pass(DAY);
    assert_eq!(delivered(&one).sent, 1);
    let shown = places.shown();
    assert!(shown[0] == shown[1] && shown[1] != shown[2]);
    assert!(shown.iter().all(|(name, value)| name == "Authorization" && value.starts_with("PrivateToken token=\"AA")));
    let issuer = places.issuer.lock().unwrap();
    let (query, authorization, body) = &issuer.requests[0];
    assert_eq!(
        (query.as_str(), authorization.as_str(), body.len()),
        ("day=20261126&collector=one", "Bearer account", 259)
    );
}

#[test]
fn without_a_good_pass_reports_wait_and_are_sent_later() {
    let faults: [fn(&mut Issuing, bool); 4] = [
        |issuer, fails| issuer.is_failing = fails,
        |issuer, fails| issuer.loses_answers = fails,
        |issuer, fails| issuer.has_wrong_signatures = fails,
        |issuer, fails| issuer.has_wrong_keys = fails,
    ];
    for fault in faults {
        let places = Places::of_reports();
        let one = places.sender();
        places.steer(|issuer| fault(issuer, true));
        assert_eq!(delivered(&one), Delivery { waiting: 1, no_pass: true, ..Delivery::default() });
        assert!(places.shown().is_empty());
        assert!(told(&one).iter().any(|(what, reason, _)| what == "NoPass" && !reason.is_empty()));
        if places.issuer.lock().unwrap().has_wrong_keys {
            assert!(places.days().is_empty(), "keys that the campaign file does not name get no request");
        }
        places.steer(|issuer| fault(issuer, false));
        assert_eq!(one.deliver(true).unwrap().waiting, 1, "the issuer is not asked for a while");
        places.world.hands.pass(10_000);
        // A new process repeats the request with the same bytes.
        assert_eq!(places.sender().deliver(true).unwrap(), Delivery { sent: 1, ..Delivery::default() });
        let issuer = places.issuer.lock().unwrap();
        let first = &issuer.requests[0];
        assert!(issuer.requests.iter().all(|one| one.0 != first.0 || one == first));
    }
}

#[test]
fn each_client_asks_for_the_next_day_at_a_second_of_its_own_whether_it_reports_or_not() {
    // Of 20 uniform seconds all lie in one half of the day with probability 2e-6.
    let places = Places::of_reports();
    let midnight = NOON - 12 * HOUR;
    let clients: Vec<_> = (0..20)
        .map(|_| {
            let own = World::new(&json!({}));
            places.world.sender_with(|options| {
                with_issuer(options, || "Bearer account".to_owned());
                options.store = own.store;
            })
        })
        .collect();
    let mut counts = [0; 2];
    for (half, count) in (1..).zip(&mut counts) {
        places.world.hands.set(midnight + half * DAY / 2 - 1000);
        for one in &clients {
            one.deliver(false).unwrap();
        }
        *count = places.days().iter().filter(|day| *day == "20261127").count();
    }
    assert!(counts[0] > 0 && counts[0] < 20 && counts[1] == 20, "{counts:?}");
    assert_eq!(places.days().iter().filter(|day| *day == "20261126").count(), 20);
}

#[test]
fn the_evaluator_gets_a_pass_of_its_own() {
    let places = Places::new(oblivious(), 2);
    let one = places.sender();
    one.try_report("unlisted", &[]).unwrap();
    assert_eq!(one.deliver(true).unwrap().sent, 2);
    let told = places.world.told();
    let asked = &told.asked[0];
    assert!(asked.header("Client-Token").is_none());
    let pass = asked.header("Authorization").unwrap();
    assert!(pass.starts_with("PrivateToken token=") && told.posts.iter().all(|post| post.token.1 != pass));
}

#[test]
fn a_report_that_was_tried_keeps_its_old_pass_and_is_given_up_without() {
    let places = Places::of_reports();
    let one = places.sender();
    places.world.told().takes_before_answering = true;
    places.world.told().answers.push_back((503, "storage_failing", vec![]));
    assert_eq!(delivered(&one).waiting, 1);
    places.world.hands.pass(DAY);
    places.world.told().answers.push_back((503, "storage_failing", vec![]));
    assert_eq!(one.deliver(true).unwrap().waiting, 1);
    let shown = places.shown();
    assert_eq!(shown[0], shown[1]);
    places.world.hands.pass(2 * DAY);
    let campaign = places.world.told().campaign();
    one.deliverer.passes.ask(&campaign).unwrap();
    places.world.again_now();
    assert_eq!(one.deliver(true).unwrap().dropped, dropped("wrong_slot", 1));
    assert_eq!(places.shown().len(), 2);
}

#[test]
fn a_campaign_with_passes_needs_an_issuer_and_a_header() {
    let places = Places::of_reports();
    assert_eq!(places.world.sender().try_report("one", &[]).unwrap_err().kind(), Kind::Untrusted);
    for shown in ["Bearer a\r\nHost: b", "Bearer ä", "", "fails"] {
        let places = Places::of_reports();
        let authorization = move || {
            if shown == "fails" {
                std::panic::resume_unwind(Box::new("secret"));
            }
            shown.to_owned()
        };
        let one = places.world.sender_with(|options| with_issuer(options, authorization));
        let done = delivered(&one);
        assert!(done.waiting == 1 && done.no_pass && places.days().is_empty());
        assert!(told(&one).iter().all(|(_, reason, _)| !reason.contains("secret") && !reason.contains("Bearer")));
    }
}

#[test]
fn passes_that_come_after_an_opt_out_are_not_kept_and_others_are_deleted() {
    let places = Places::of_reports();
    let one = Arc::new(places.sender());
    delivered(&one);
    assert_eq!(one.deliverer.common.queue.passes().unwrap().len(), 1);
    one.forget().unwrap();
    assert!(one.deliverer.common.queue.passes().unwrap().is_empty());
    for returns in [false, true] {
        one.deliverer.common.budget.opt_in().unwrap();
        let (leaving, asked) = (one.clone(), places.days().len());
        let two = places.world.sender_with(|options| {
            with_issuer(options, move || {
                leaving.forget().unwrap();
                // Who returns is another client for the issuer.
                if returns {
                    leaving.deliverer.common.budget.opt_in().unwrap();
                    leaving.deliverer.common.queue.secret().unwrap();
                }
                "Bearer account".to_owned()
            });
        });
        two.deliver(true).unwrap();
        assert_eq!(places.days().len(), asked + 1);
        assert!(one.deliverer.common.queue.passes().unwrap().is_empty());
    }
}

#[test]
fn old_passes_are_deleted() {
    let places = Places::of_reports();
    let one = places.sender();
    for _ in 0..4 {
        one.deliver(true).unwrap();
        assert!(one.deliverer.common.queue.passes().unwrap().len() <= 4);
        places.world.hands.pass(DAY - 1);
    }
    assert!(places.issuer.lock().unwrap().gets >= 4);
}
