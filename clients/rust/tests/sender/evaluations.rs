//! One evaluation and one discovery report for every value; an evaluator that fails or lies costs values, never a
//! report.

use crypto_box::SecretKey;
use serde_json::json;

use super::fake_collector::{
    DAY, Evaluated, HOUR, NOON, OPERATOR, SILENT, SITE, World, evaluated, evaluated_by, oblivious, policy, refused,
    told,
};
use super::queue::Folder;
use super::sender::dropped;
use crate::budget::{Budget, Limits};
use crate::sender::events::Delivery;
use crate::sender::http::Response;
use crate::sender::sending::Sender;
use crate::sender::site::Site;
use crate::store::Store;

/// What an evaluator answers in place of an evaluation.
type Fault = fn(&[u8]) -> Evaluated;
const NEW: &str = "a-secret-value";
const OCTETS: &str = "application/octet-stream";
const KINDS: [&str; 5] = [NEW, "one", "longer than the 32 bytes that this campaign allows", "", "a\0b"];

/// Return the value of each discovery report that arrived; none of a blank.
pub(super) fn values(world: &World) -> Vec<Option<String>> {
    let [analyzer, aux_server] = [1, 2].map(|byte| SecretKey::from([byte; 32]));
    let told = world.told();
    let value = |report: &[u8]| {
        let pair = aux_server.unseal(report).unwrap();
        let plain = analyzer.unseal(&pair[48..]).unwrap();
        let length = u16::from_le_bytes([plain[16], plain[17]]);
        (length != u16::MAX).then(|| String::from_utf8(plain[18..18 + usize::from(length)].to_vec()).unwrap())
    };
    told.received("discovery").into_iter().map(value).collect()
}

fn report(one: &Sender, value: &str) {
    one.try_report(value, &[]).unwrap();
}

fn sent(sent: u64) -> Delivery {
    Delivery { sent, ..Delivery::default() }
}

fn says(world: &World, answer: impl FnMut(&[u8]) -> Evaluated + Send + 'static) {
    world.told().evaluate = Box::new(answer);
}

/// Return the events about evaluations.
fn events(one: &Sender) -> Vec<(String, String)> {
    let events = told(one).into_iter().map(|(what, reason, _)| (what, reason));
    events.filter(|(what, _)| ["Blank", "Answered", "NotAnswered"].contains(&what.as_str())).collect()
}

fn event(what: &str, reason: &str) -> Vec<(String, String)> {
    vec![(what.to_owned(), reason.to_owned())]
}

#[test]
fn every_value_has_one_evaluation_and_one_report_of_the_same_sizes() {
    for (place, value) in [&KINDS[..], &["budget spent"]].concat().into_iter().enumerate() {
        let world = World::new(&oblivious());
        let limits = Limits { lifetime: if place == KINDS.len() { 0.5 } else { f64::INFINITY }, ..Limits::default() };
        let budget = Budget::new(world.store.clone(), limits).unwrap();
        let one = world.sender_with(|options| options.budget = Some(budget));
        report(&one, value);
        assert_eq!(one.deliver(false).unwrap(), sent(2));
        {
            let told = world.told();
            assert_eq!(told.asked.iter().map(|asked| asked.blinded.len()).collect::<Vec<_>>(), [32]);
            let length = told.campaign().sealed_bytes(crate::Stream::Discovery);
            assert_eq!(told.received("discovery").iter().map(|report| report.len()).collect::<Vec<_>>(), [length]);
            let token = told.asked[0].header("Client-Token").unwrap();
            assert!(token.len() == 43 && told.posts.iter().all(|post| post.token.1 != token));
        }
        assert_eq!(values(&world), [(place == 0).then(|| NEW.to_owned())]);
        let whats: Vec<_> = told(&one).into_iter().map(|(what, ..)| what).collect();
        assert_eq!(whats, ["Fetched", "Queued", "Answered", "Sent", "Sent"]);
    }
}

#[test]
fn an_evaluation_and_a_finished_report_wait_random_times() {
    let world = World::new(&oblivious());
    let one = world.sender_with(|options| options.delay_seconds = 3600);
    for value in [KINDS; 4].as_flattened() {
        report(&one, value);
    }
    assert_eq!(one.deliver(false).unwrap(), Delivery { waiting: 40, ..Delivery::default() });
    assert!(world.told().asked.is_empty());
    // 20 uniform draws fall into one half of the hour with probability 1.9e-6.
    world.hands.pass(HOUR / 2);
    one.deliver(false).unwrap();
    assert!((1..20).contains(&world.told().asked.len()));
    world.hands.pass(HOUR / 2);
    one.deliver(false).unwrap();
    assert_eq!(world.told().asked.len(), 20);
    let waiting = one.waiting().unwrap();
    assert!((1..20).contains(&waiting), "{waiting}");
    world.hands.pass(HOUR);
    assert_eq!(one.deliver(false).unwrap(), sent(waiting));
}

#[test]
fn no_value_is_on_disk_before_or_after_the_answer() {
    let folder = Folder::new("oblivious");
    let path = folder.path("store.sqlite");
    let world = World { store: Store::open(&path).unwrap(), ..World::new(&oblivious()) };
    let is_kept = || std::fs::read(&path).unwrap().windows(NEW.len()).any(|part| part == NEW.as_bytes());
    let one = world.sender();
    report(&one, NEW);
    assert!(!is_kept());
    world.told().down = true;
    assert_eq!(one.deliver(false).unwrap().waiting, 2);
    assert_eq!(world.told().asked.len(), 1);
    assert!(!is_kept());
}

#[test]
fn a_process_that_ends_before_the_answer_leaves_a_blank() {
    let world = World::new(&oblivious());
    report(&world.sender(), NEW);
    let next = world.sender();
    assert_eq!(next.deliver(true).unwrap(), Delivery { sent: 1, waiting: 1, ..Delivery::default() });
    world.hands.pass(HOUR);
    assert_eq!(next.deliver(false).unwrap(), sent(1));
    assert_eq!((values(&world), world.told().asked.len()), (vec![None], 0));
}

#[test]
fn a_lie_costs_the_value_is_named_and_is_not_asked_for_again() {
    let lies: [fn(&[u8]) -> Evaluated; 5] = [
        |blinded| evaluated_by([9; 4], blinded),
        |blinded| {
            let mut answer = evaluated(blinded);
            answer.2[32] ^= 1;
            answer
        },
        |blinded| (200, OCTETS, [evaluated(blinded).2[..32].to_vec(), vec![0; 64]].concat()),
        |_| (200, OCTETS, vec![0; 96]),
        |_| (200, OCTETS, vec![255; 96]),
    ];
    for lie in lies {
        let world = World::new(&oblivious());
        says(&world, lie);
        let one = world.sender();
        report(&one, NEW);
        assert_eq!(one.deliver(false).unwrap(), Delivery { blank: dropped("equivocation", 1), ..sent(2) });
        assert_eq!(one.deliver(false).unwrap(), Delivery::default());
        assert_eq!((values(&world), world.told().asked.len()), (vec![None], 1));
        assert_eq!(events(&one), event("Blank", "equivocation"));
    }
}

#[test]
fn what_is_refused_for_good_goes_at_once_with_the_evaluators_word() {
    for (status, problem) in [
        (410, "key_destroyed"),
        (409, "epoch_closed"),
        (400, "wrong_evaluation"),
        (401, "unauthorised"),
        (404, "unknown_stream"),
        (413, "too_long"),
    ] {
        let world = World::new(&oblivious());
        says(&world, move |_| refused(status, problem));
        let one = world.sender();
        report(&one, NEW);
        assert_eq!(one.deliver(false).unwrap(), Delivery { blank: dropped(problem, 1), ..sent(2) });
        assert_eq!((values(&world), world.told().asked.len()), (vec![None], 1));
    }
}

#[test]
fn what_may_be_answered_later_is_asked_again_until_its_time_is_up() {
    let faults: [(Fault, &str); 11] = [
        (|blinded| (200, OCTETS, evaluated(blinded).2[..95].to_vec()), "wrong_length"),
        (|_| (200, OCTETS, vec![]), "wrong_length"),
        (|_| (200, OCTETS, vec![0; 1 << 17]), "too_long"),
        (|_| (200, "text/html", vec![0; 96]), "no_evaluator"),
        (|_| (302, "text/html", vec![]), "no_evaluator"),
        (|_| (202, OCTETS, vec![]), "no_evaluator"),
        (|_| (503, "text/html", vec![]), "status_503"),
        (|_| refused(429, "too_many_evaluations"), "too_many_evaluations"),
        (|_| refused(409, "unknown_fingerprint"), "unknown_fingerprint"),
        (|_| refused(409, "epoch_not_begun"), "epoch_not_begun"),
        (|_| (SILENT, OCTETS, vec![]), "unreachable"),
    ];
    for (fault, reason) in faults {
        let world = World::new(&oblivious());
        says(&world, fault);
        let one = world.sender();
        report(&one, NEW);
        let waits = Delivery { waiting: 1, ..Delivery::default() };
        assert_eq!(one.deliver(false).unwrap(), Delivery { sent: 1, ..waits.clone() }, "no other report waits");
        assert_eq!(events(&one), event("NotAnswered", reason));
        assert_eq!(one.deliver(false).unwrap(), waits, "nothing is asked before the pause is over");
        assert_eq!(world.told().asked.len(), 1);
        world.hands.pass(10_000);
        says(&world, evaluated);
        assert_eq!(one.deliver(false).unwrap(), sent(1));
        {
            let asked = &world.told().asked;
            assert!(asked.len() == 2 && asked[0].blinded == asked[1].blinded, "the same bytes");
        }
        assert_eq!(values(&world), [Some(NEW.to_owned())]);
        // Another value, and nobody answers until its time is up.
        says(&world, fault);
        report(&one, "also new");
        assert_eq!(one.deliver(false).unwrap().waiting, 1);
        world.hands.pass(HOUR);
        let asked = world.told().asked.len();
        assert_eq!(one.deliver(false).unwrap(), Delivery { blank: dropped("no_answer", 1), ..sent(1) });
        assert_eq!(values(&world), [Some(NEW.to_owned()), None]);
        assert_eq!(world.told().asked.len(), asked + 1, "it is asked a last time");
    }
}

#[test]
fn at_the_end_what_is_open_is_asked_for_or_sent_without_its_value() {
    for is_silent in [false, true] {
        let world = World::new(&oblivious());
        if is_silent {
            says(&world, |_| (SILENT, OCTETS, vec![]));
        }
        let one = world.sender_with(|options| options.delay_seconds = 3600);
        report(&one, NEW);
        one.stop();
        assert_eq!(values(&world), [(!is_silent).then(|| NEW.to_owned())]);
    }
    // With a durable store the report waits for its time.
    let folder = Folder::new("stop");
    let world = World { store: Store::open(folder.path("store.sqlite")).unwrap(), ..World::new(&oblivious()) };
    let one = world.sender_with(|options| options.delay_seconds = 3600);
    report(&one, NEW);
    one.stop();
    assert_eq!((world.told().asked.len(), one.waiting()), (1, Some(2)));
    assert_eq!(world.sender().deliver(true).unwrap(), sent(2));
    assert_eq!(values(&world), [Some(NEW.to_owned())]);
}

#[test]
fn a_value_of_a_closed_epoch_or_without_a_campaign_is_asked_for_anew() {
    let world = World::new(&oblivious());
    world.told().down = true;
    let one = world.sender_with(|options| options.keep_values = true);
    report(&one, NEW);
    world.told().down = false;
    world.hands.pass(60_000);
    assert_eq!(one.deliver(false).unwrap(), Delivery { remade: 2, added: 1, ..sent(2) });
    assert_eq!(values(&world), [Some(NEW.to_owned())]);
    report(&one, NEW);
    world.told().publish(&oblivious());
    let done = one.deliver(true).unwrap();
    assert_eq!((done.sent, done.remade, done.blank.len()), (2, 2, 0));
    assert_eq!(world.told().asked.len(), 3);
    assert_eq!(values(&world), [Some(NEW.to_owned()), Some(NEW.to_owned())]);
}

#[test]
fn an_evaluation_keeps_the_token_of_its_first_window_and_others_have_another() {
    let world = World::new(&oblivious());
    world.hands.set(NOON - 1000);
    says(&world, |_| refused(503, "queue_full"));
    let one = world.sender_with(|options| (options.window_seconds, options.answer_within_seconds) = (3600, 86_400));
    report(&one, NEW);
    one.deliver(false).unwrap();
    world.hands.pass(HOUR);
    says(&world, evaluated);
    report(&one, NEW);
    one.deliver(false).unwrap();
    let told = world.told();
    let [before, again, another] = &told.asked[..] else { panic!("{} were asked for", told.asked.len()) };
    assert_eq!((&before.blinded, &before.headers), (&again.blinded, &again.headers));
    assert!(another.blinded != again.blinded && another.headers != again.headers);
}

#[test]
fn the_evaluator_may_have_another_address_and_does_not_see_the_apps_token() {
    let world = World::new(&oblivious());
    world.told().other = Box::new(|request| {
        assert!(request.url.starts_with("https://evaluator.example/v1/campaigns/words/evaluations?fingerprint="));
        assert!(request.headers.iter().all(|(name, _)| *name != "Authorization"));
        let (status, media, body) = evaluated(request.body.unwrap());
        Ok(Response { status, headers: vec![("content-type".to_owned(), media.to_owned())], body })
    });
    let site = Site { app_token: Some("of the collector".to_owned()), ..Site::from(SITE) };
    let one = world.sender_with(|options| {
        (options.site, options.evaluator) = (site, Some("https://evaluator.example/".into()));
    });
    report(&one, NEW);
    assert_eq!(one.deliver(false).unwrap(), sent(2));
    assert_eq!((values(&world), world.told().asked.len()), (vec![Some(NEW.to_owned())], 0));
}

#[test]
fn a_clock_that_is_set_back_delays_no_evaluation_for_good() {
    let world = World::new(&oblivious());
    let one = world.sender_with(|options| options.policy = policy(OPERATOR, &json!({})));
    report(&one, NEW);
    world.hands.pass(-300 * DAY);
    assert_eq!(one.deliver(false).unwrap().sent, 2);
    assert_eq!(world.told().asked.len(), 1);
}

#[test]
fn a_store_that_fails_while_it_asks_keeps_the_evaluations() {
    let world = World::new(&oblivious());
    let one = world.sender();
    report(&one, NEW);
    world.sql("CREATE TRIGGER full BEFORE UPDATE OF body ON queue BEGIN SELECT RAISE(ABORT, 'disk full'); END");
    assert!(one.deliver(false).unwrap_err().to_string().contains("disk full"));
    world.sql("DROP TRIGGER full");
    assert_eq!(one.deliver(false).unwrap(), sent(2));
    assert_eq!(values(&world), [Some(NEW.to_owned())]);
}
