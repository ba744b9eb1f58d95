//! A collector, an issuer and an app that do what they must not.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::json;

use super::fake_collector::*;
use crate::formats::bytes::hex;
use crate::passes::slots::{Role, Slot};
use crate::sender::http::{Failure, Http, Request, Response};
use crate::sender::queue::Queue;
use crate::sender::shown::Pass;
use crate::sender::waiting::Measurement;
use crate::store::Store;
use crate::values::dictionary::Dictionary;

/// The fake collector behind an app's own `Http`, which panics some times when it asks an evaluator.
struct Behind {
    fake: Arc<Fake>,
    dictionary: Vec<u8>,
    panics: AtomicU32,
}

impl Http for Behind {
    fn exchange(&self, request: &Request<'_>) -> Result<Response, Failure> {
        let left = |left: u32| left.checked_sub(1);
        if request.url.contains("/evaluations")
            && self.panics.fetch_update(Ordering::SeqCst, Ordering::SeqCst, left).is_ok()
        {
            panic!("the app's own");
        }
        let mut answer = self.fake.exchange(request)?;
        if request.url.contains("/dictionary") {
            answer.body.clone_from(&self.dictionary);
        }
        Ok(answer)
    }
}

#[test]
fn a_dictionary_that_unpacks_to_more_than_the_policy_allows_is_refused() {
    let plain = ["a", "b", "c"].map(|letter| letter.repeat(1000) + "\n").concat().into_bytes();
    let digest = hex(&Dictionary::parse(&plain, 3, 1 << 20).unwrap().digest());
    let world = World::new(&json!({"dictionary": {"path": "words.txt", "items": 3, "digest": digest}}));
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packer.write_all(&plain).unwrap();
    let dictionary = packer.finish().unwrap();
    assert!(dictionary.len() < 100);
    let http = Arc::new(Behind { fake: world.fake.clone(), dictionary, panics: AtomicU32::new(0) });
    for (most, allowed) in [(1000, false), (plain.len(), true)] {
        let sender = world.sender_with(|options| {
            options.http = http.clone();
            options.store = Store::in_memory().unwrap();
            options.policy = policy(OPERATOR, &json!({"max_dictionary_bytes": most}));
        });
        assert_eq!(sender.try_report("x", &[]).is_ok(), allowed, "{most}: {:?}", told(&sender));
    }
}

#[test]
fn an_epoch_with_a_wrong_dictionary_does_not_end_the_one_before() {
    let world = World::new(&json!({}));
    let sender = world.sender();
    sender.try_report("one", &[]).unwrap();
    let digest = "ab".repeat(32);
    world.told().publish(&json!({"dictionary": {"path": "words.txt", "items": 3, "digest": digest}}));
    World::refresh(&sender);
    world.told().down = true;
    world.sender().try_report("one", &[]).unwrap();
}

#[test]
fn a_campaign_with_too_long_reports_is_refused_before_its_dictionary_is_fetched() {
    let world = World::new(&json!({}));
    let sender = world.sender_with(|options| options.policy = policy(OPERATOR, &json!({"max_report_bytes": 1})));
    assert!(sender.try_report("one", &[]).is_err());
    assert_eq!(world.told().gets, ["/v1/campaigns/words"]);
}

#[test]
fn a_report_waits_for_the_window_that_it_names_also_if_a_newer_file_has_others() {
    let noisy = |seconds: u64| {
        let shuffle = json!({"cap": 1, "minimum_batch": 1, "delta": 1e-8});
        let noise = json!({"epsilon": 1.0, "delta": 1e-8, "seconds": seconds});
        json!({"noise": noise, "mechanism": null, "discovery": null, "shuffle": shuffle})
    };
    let world = World::new(&noisy(86_400));
    let sender = world.sender();
    sender.deliver(false).unwrap();
    let old = sender.deliverer.present.maker().unwrap().unwrap();
    world.told().publish(&noisy(4 * 86_400));
    World::refresh(&sender);
    let one = Measurement { value: "one".into(), ..Measurement::default() };
    let made = sender.deliverer.making.made(&old, &old.campaign.streams(), &one, false, false).unwrap();
    let named = i64::from_le_bytes(made[0].waiting.body[..8].try_into().unwrap());
    assert_eq!(made[0].waiting.window, Some(1000 * named));
}

#[test]
fn passes_of_days_that_a_wrong_clock_showed_do_not_fill_the_store() {
    let queue = Queue::new(Store::in_memory().unwrap(), "words".into(), 10, 1000);
    let secret = queue.secret().unwrap();
    for back in 0..40 {
        let day = (20_800 - back) * 86_400;
        let slot =
            |hour: i64| Slot { role: Role::Collector, campaign: "words", name: "one", begins: day + hour * 3600 };
        let made = (0..24).map(|hour| Pass::new(&slot(hour), "A".repeat(500))).collect();
        queue.keep_passes(&secret, made, day).unwrap();
    }
    assert!(queue.passes().unwrap().len() <= 3 * 24);
}

#[test]
fn an_http_of_the_app_that_panics_loses_no_value() {
    let world = World::new(&oblivious());
    let dictionary = b"one\ntwo\nthree\n".to_vec();
    let http = Arc::new(Behind { fake: world.fake.clone(), dictionary, panics: AtomicU32::new(1) });
    let sender = world.sender_with(|options| options.http = http);
    sender.try_report("a-new-value", &[]).unwrap();
    let mut blank = 0;
    for _ in 0..10 {
        blank += sender.deliver(false).unwrap().blank.values().sum::<u64>();
        world.hands.pass(HOUR / 4);
    }
    assert_eq!((blank, world.told().asked.len()), (0, 1), "{:?}", told(&sender));
}

#[test]
fn a_budget_of_another_store_is_refused() {
    let world = World::new(&json!({}));
    let mut options = crate::SenderOptions::with_http(
        "http://127.0.0.1:1",
        policy(OPERATOR, &json!({})),
        Store::in_memory().unwrap(),
        world.fake.clone(),
    );
    options.budget = Some(crate::Budget::new(Store::in_memory().unwrap(), crate::Limits::default()).unwrap());
    assert_eq!(crate::Sender::open(options).err().unwrap().kind(), crate::Kind::Usage);
}
