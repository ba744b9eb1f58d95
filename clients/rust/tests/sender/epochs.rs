//! Campaign files that change, are refused, or cannot be fetched; and plain values, of which reports are made anew.

use serde_json::json;

use super::fake_collector::{OPERATOR, STRANGER, World, policy, told};
use super::queue::Folder;
use super::sender::dropped;
use crate::errors::Kind;
use crate::formats::bytes::hex;
use crate::sender::events::Delivery;
use crate::sender::sending::Sender;
use crate::store::Store;

fn report(one: &Sender, value: &str) {
    one.try_report(value, &[]).unwrap();
}

fn whats(one: &Sender) -> Vec<String> {
    told(one).into_iter().map(|(what, ..)| what).collect()
}

#[test]
fn reports_of_a_closed_epoch_are_dropped_with_a_count() {
    let world = World::new(&json!({}));
    let one = world.sender();
    report(&one, "one");
    world.told().publish(&json!({}));
    assert_eq!(one.deliver(false).unwrap(), Delivery { dropped: dropped("epoch_closed", 2), ..Delivery::default() });
    report(&one, "one");
    let next = one.deliver(false).unwrap();
    assert_eq!(next, Delivery { sent: 2, ..Delivery::default() }, "the next report is of the present epoch");
}

#[test]
fn with_plain_values_they_are_made_anew_under_the_present_epoch() {
    let folder = Folder::new("anew");
    let path = folder.path("store.sqlite");
    let world = World { store: Store::open(&path).unwrap(), ..World::new(&json!({})) };
    let one = world.sender_with(|options| options.keep_values = true);
    let is_kept = || std::fs::read(&path).unwrap().windows(14).any(|part| part == b"a-secret-value");
    report(&one, "one");
    report(&one, "a-secret-value");
    assert!(is_kept());
    world.told().publish(&json!({}));
    assert_eq!(one.deliver(false).unwrap(), Delivery { sent: 4, remade: 4, ..Delivery::default() });
    let fingerprint = hex(&world.told().campaign().fingerprint);
    assert!(world.told().posts.iter().all(|post| post.fingerprint == fingerprint));
    let spent = one.spent().unwrap();
    assert_eq!(spent.streams.iter().map(|stream| stream.reports).collect::<Vec<_>>(), [4, 4], "both were charged");
    assert!(!is_kept());
}

#[test]
fn an_unknown_fingerprint_is_asked_for_again_before_anything_is_given_up() {
    // A collector that has not read the newest file yet says the same as one that never had this file.
    let world = World::new(&json!({}));
    let one = world.sender();
    report(&one, "one");
    world.told().always = Some((409, "unknown_fingerprint", vec![]));
    assert_eq!(one.deliver(false).unwrap().waiting, 2);
    world.again_now();
    world.told().always = None;
    world.told().publish(&json!({}));
    world.told().epochs.remove(0);
    assert_eq!(one.deliver(false).unwrap().dropped, dropped("unknown_fingerprint", 2));
}

#[test]
fn a_collector_that_closes_the_epoch_that_it_serves_does_not_make_a_client_spend() {
    let world = World::new(&json!({}));
    let one = world.sender_with(|options| options.keep_values = true);
    report(&one, "one");
    world.told().always = Some((409, "epoch_closed", vec![]));
    for _ in 0..5 {
        assert_eq!(one.deliver(false).unwrap().waiting, 2);
        world.again_now();
    }
    assert!(one.spent().unwrap().streams.iter().all(|stream| stream.reports == 1));
}

#[test]
fn a_stale_copy_serves_while_the_collector_fails() {
    let world = World::new(&json!({}));
    report(&world.sender(), "one");
    world.told().down = true;
    let one = world.sender();
    World::refresh(&one);
    report(&one, "one");
    assert_eq!(whats(&one), ["NotFetched", "Queued"]);
    assert_eq!(one.deliver(false).unwrap().waiting, 4);
    assert_eq!(whats(&one)[..2], ["NotFetched", "Queued"], "it asks again after an hour");
}

#[test]
fn without_a_campaign_values_wait_if_the_app_keeps_them() {
    let world = World::new(&json!({}));
    world.told().down = true;
    let error = world.sender().try_report("one", &[]).unwrap_err();
    assert_eq!(error.kind(), Kind::NotYet);
    assert!(error.to_string().contains("503"), "{error}");
    let one = world.sender_with(|options| options.keep_values = true);
    report(&one, "one");
    report(&one, "four");
    assert_eq!(one.deliver(false).unwrap(), Delivery { waiting: 2, ..Delivery::default() });
    world.told().down = false;
    world.hands.pass(60_000);
    assert_eq!(one.deliver(false).unwrap(), Delivery { sent: 4, remade: 4, added: 2, ..Delivery::default() });
}

#[test]
fn a_campaign_that_the_policy_refuses_is_an_error_if_there_is_no_other() {
    let world = World::new(&json!({}));
    world.told().signer = STRANGER;
    let one = world.sender_with(|options| options.keep_values = true);
    let error = one.try_report("one", &[]).unwrap_err();
    assert!(error.kind() == Kind::Untrusted && error.to_string().contains(OPERATOR.1), "{error}");
    assert_eq!(world.told().gets, ["/v1/campaigns/words"], "nothing more is fetched");
    assert_eq!(one.deliver(false).unwrap(), Delivery::default());
    assert_eq!(whats(&one)[0], "Refused");
}

#[test]
fn a_refused_successor_changes_nothing_and_an_older_epoch_is_refused() {
    let world = World::new(&json!({}));
    let one = world.sender();
    report(&one, "one");
    world.told().publish(&json!({"mechanism": {"name": "ss", "epsilon": 3.0, "parameters": {"s": 1}}}));
    World::refresh(&one);
    report(&one, "one");
    let log = told(&one);
    assert!(log[log.len() - 2].1.contains("max_epsilon"), "{log:?}");
    world.told().epochs.pop();
    assert_eq!(one.deliver(false).unwrap().sent, 4);
    world.told().publish(&json!({}));
    World::refresh(&one);
    world.told().epochs.pop();
    let other = world.sender();
    World::refresh(&other);
    assert_eq!(whats(&other), ["Refused"]);
}

#[test]
fn a_client_that_missed_an_epoch_follows_the_log() {
    let world = World::new(&json!({}));
    report(&world.sender(), "one");
    for _ in 0..3 {
        world.told().publish(&json!({}));
    }
    let one = world.sender();
    World::refresh(&one);
    assert_eq!(told(&one), [("Fetched".to_owned(), "epoch 5".to_owned(), 0)]);
}

#[test]
fn a_campaign_that_is_signed_anew_is_vouched_for_by_the_new_signature() {
    let world = World::new(&json!({}));
    let keys = json!([OPERATOR, STRANGER].map(|(_, id, key)| {
        json!({"id": id, "key": key, "not_before": "2016-12-02T00:00:00Z", "not_after": "2036-11-27T00:00:00Z"})
    }));
    let one = world.sender_with(|options| options.policy = policy(OPERATOR, &json!({"operator_keys": keys})));
    report(&one, "one");
    world.told().signer = STRANGER;
    World::refresh(&one);
    assert_eq!(whats(&one), ["Fetched", "Queued", "Fetched"]);
}

#[test]
fn what_does_not_belong_together_is_refused_and_its_documents_are_bounded() {
    let other = json!({"dictionary": {"path": "words.txt", "items": 3, "digest": "0".repeat(64)}});
    for (changes, says) in [(other, "not the campaign's"), (json!({"id": "others"}), "the policy is for words")] {
        let world = World::new(&changes);
        let one = world.sender();
        one.try_report("one", &[]).unwrap_err();
        assert!(told(&one)[0].1.contains(says), "{:?}", told(&one));
    }
    // As many bytes as the dictionary has, and one fewer.
    for (most, is_taken) in [(14, true), (13, false)] {
        let world = World::new(&json!({}));
        let one =
            world.sender_with(|options| options.policy = policy(OPERATOR, &json!({"max_dictionary_bytes": most})));
        assert_eq!(one.try_report("one", &[]).is_ok(), is_taken);
        assert_eq!(told(&one)[0].1.contains("its answer is too long"), !is_taken);
    }
}

#[test]
fn whatever_the_value_is_a_sender_that_keeps_values_acts_alike() {
    for value in ["very\0secret", &"very secret".repeat(10_000), "", "very\u{202e}secret"] {
        for is_fetched in [true, false] {
            let world = World::new(&json!({}));
            let one = world.sender_with(|options| options.keep_values = true);
            world.told().down = !is_fetched;
            report(&one, value);
            world.told().down = false;
            world.hands.pass(60_000);
            if is_fetched {
                world.told().publish(&json!({}));
            }
            let done = one.deliver(true).unwrap();
            assert_eq!((done.sent, done.remade, done.waiting), (2, 2, 0));
            assert!(told(&one).iter().all(|(_, reason, _)| !reason.contains("secret")));
        }
    }
}
