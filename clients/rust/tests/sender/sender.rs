//! A sender loses nothing that it acknowledged, sends the same bytes at retries, and gives nothing up in silence.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::{Value, json};

use super::fake_collector::{DAY, Interrupted, NOON, SILENT, SITE, World, capped, oblivious, read, told};
use super::queue::Folder;
use crate::budget::{Budget, Limits, WhenSpent};
use crate::campaigns::campaign::Stream;
use crate::campaigns::sample::bucket_of;
use crate::errors::Kind;
use crate::passes::slots::{Role, Slot};
use crate::sender::claims::Wanted;
use crate::sender::events::Delivery;
use crate::sender::options::SenderOptions;
use crate::sender::sending::Sender;
use crate::sender::site::Site;
use crate::sender::token::client_token;
use crate::store::Store;

const LONG: &str = "too long to be discovered: more than the campaign's 32 bytes";

fn sent(sent: u64) -> Delivery {
    Delivery { sent, ..Delivery::default() }
}

pub(super) fn dropped(reason: &str, number: u64) -> BTreeMap<String, u64> {
    BTreeMap::from([(reason.to_owned(), number)])
}

fn gave_up(reason: &str, number: u64) -> Delivery {
    Delivery { dropped: dropped(reason, number), ..Delivery::default() }
}

fn report(one: &Sender, value: &str) {
    one.try_report(value, &[]).unwrap();
}

fn charged(one: &Sender) -> u64 {
    one.spent().unwrap().streams.iter().map(|stream| stream.reports).max().unwrap_or_default()
}

fn kind(one: &Sender, value: &str) -> Kind {
    one.try_report(value, &[]).unwrap_err().kind()
}

#[test]
fn a_value_becomes_a_report_of_each_stream_at_the_collector() {
    let folder = Folder::new("reports");
    for store in [Store::in_memory().unwrap(), Store::open(folder.path("store.sqlite")).unwrap()] {
        let world = World { store, ..World::new(&json!({})) };
        let one = world.sender();
        for value in ["one", "four", LONG, ""] {
            report(&one, value);
        }
        one.try_report(4.5, &[]).unwrap();
        assert!(world.told().posts.is_empty());
        assert_eq!(one.deliver(false).unwrap(), sent(10));
        let told = world.told();
        for stream in [Stream::Reports, Stream::Discovery] {
            let received = told.received(stream.name());
            assert_eq!(received.iter().collect::<BTreeSet<_>>().len(), 5);
            assert!(received.iter().all(|report| report.len() == told.campaign().sealed_bytes(stream)));
        }
        let tokens: BTreeSet<_> = told.posts.iter().map(|post| post.token.clone()).collect();
        assert_eq!(tokens.len(), 1);
        let slot = Slot { role: Role::Collector, campaign: "words", name: "one", begins: (NOON - NOON % DAY) / 1000 };
        let token = client_token(&one.deliverer.common.queue.secret().unwrap(), &slot);
        assert_eq!(tokens.first(), Some(&("Client-Token".to_owned(), token)));
        let at = format!(
            "{SITE}/v1/campaigns/words/discovery?fingerprint={}&window=20261126T000000Z",
            told.posts[1].fingerprint
        );
        assert_eq!(told.posts[1].url, at);
        drop(told);
        assert_eq!(one.deliver(false).unwrap(), Delivery::default());
        assert_eq!(charged(&one), 5);
    }
}

#[test]
fn requests_for_documents_show_no_token_and_the_campaign_is_fetched_anew_only_if_it_changed() {
    let world = World::new(&json!({}));
    let one = world.sender();
    report(&one, "one");
    one.deliver(false).unwrap();
    let fingerprint = world.told().posts[0].fingerprint.clone();
    let base = "/v1/campaigns/words";
    let dictionary = format!("{base}/dictionary?fingerprint={fingerprint}");
    assert_eq!(world.told().gets, [base.to_owned(), format!("{base}/log"), dictionary]);
    World::refresh(&one);
    let other = world.sender();
    World::refresh(&other);
    assert_eq!(world.told().gets.len(), 5);
    assert_eq!(told(&other), [("Unchanged".to_owned(), String::new(), 0)]);
    world.told().publish(&json!({}));
    World::refresh(&other);
    assert_eq!(world.told().gets[5..], [base.to_owned(), format!("{base}/log")], "the dictionary is kept");
    assert_eq!(told(&other)[1], ("Fetched".to_owned(), "epoch 3".to_owned(), 0));
}

#[test]
fn retries_send_the_same_bytes_under_the_same_token() {
    let world = World::new(&json!({}));
    world.told().takes_before_answering = true;
    world.told().answers.extend(vec![(503, "queue_full", vec![("Retry-After", "5".to_owned())]); 2]);
    let one = world.sender();
    report(&one, "one");
    let first = one.deliver(false).unwrap();
    assert_eq!((first.sent, first.waiting, first.dropped.len()), (0, 2, 0));
    let held = first.held_until.unwrap() - NOON;
    assert!((7_500..=10_000).contains(&held), "{held}");
    assert_eq!(one.deliver(false).unwrap(), first, "nothing is asked before the pause is over");
    assert_eq!(world.told().posts.len(), 1);
    world.again_now();
    let one = world.sender();
    // The window is the next one, and the token stays.
    world.hands.pass(DAY);
    one.deliver(false).unwrap();
    world.again_now();
    assert_eq!(one.deliver(false).unwrap().sent, 2);
    let told = world.told();
    let copies: Vec<_> = told.posts.iter().map(|post| (&post.stream, &post.token, &post.reports)).collect();
    assert_eq!((copies.len(), copies.iter().collect::<BTreeSet<_>>().len()), (4, 2));
}

#[test]
fn what_may_succeed_later_waits_and_what_the_collector_refuses_for_good_is_dropped_with_its_name() {
    for status in [408, 425, 429, 500, 502, 503, 504, SILENT] {
        let world = World::new(&json!({}));
        let one = world.sender();
        report(&one, "one");
        world.told().always = Some((status, "", vec![("Retry-After", "999999999999".to_owned())]));
        let done = one.deliver(false).unwrap();
        assert_eq!((done.sent, done.waiting, done.dropped.len()), (0, 2, 0));
        assert!(done.held_until.is_some_and(|until| until <= NOON + DAY));
        let reason = if status == SILENT { "unreachable".to_owned() } else { format!("status_{status}") };
        assert!(told(&one).contains(&("Again".to_owned(), reason, 1)));
    }
    for name in ["unauthorised", "unknown_campaign", "wrong_length", "wrong_type"] {
        let world = World::new(&json!({}));
        let one = world.sender();
        report(&one, "one");
        world.told().always = Some((400, name, Vec::new()));
        assert_eq!(one.deliver(false).unwrap(), gave_up(name, 2));
        assert_eq!(told(&one).last(), Some(&("Dropped".to_owned(), name.to_owned(), 1)));
    }
}

#[test]
fn no_network_is_no_error_and_pauses_grow_until_an_answer() {
    let world = World::new(&json!({}));
    let one = world.sender();
    report(&one, "one");
    world.told().always = Some((SILENT, "", Vec::new()));
    for failures in 0..12_u32 {
        let held = one.deliver(false).unwrap().held_until.unwrap() - world.hands_now();
        let whole = (5_000 << failures).min(3_600_000);
        assert!((whole / 2..=whole).contains(&held), "{failures}: {held}");
        world.hands.pass(held);
    }
    world.told().always = None;
    assert_eq!(one.deliver(false).unwrap().sent, 2);
    report(&one, "one");
    world.told().down = true;
    assert!(one.deliver(false).unwrap().held_until.unwrap() <= world.hands_now() + 5_000);
}

#[test]
fn a_batch_that_is_too_large_is_halved() {
    let world = World::new(&json!({}));
    world.told().most_reports = 3;
    let one = world.sender();
    for _ in 0..20 {
        report(&one, "one");
    }
    assert_eq!(one.deliver(false).unwrap(), sent(40));
    assert!(world.told().posts.iter().all(|post| post.reports.len() <= 3));
    world.told().most_reports = 0;
    report(&one, "one");
    assert_eq!(one.deliver(false).unwrap(), gave_up("too_many_reports_at_once", 2));
    // A proxy that lets fewer bytes through.
    let most_bytes = 3 * world.told().campaign().sealed_bytes(Stream::Discovery);
    world.told().most_reports = usize::MAX;
    world.told().most_bytes = most_bytes;
    for _ in 0..9 {
        report(&one, "one");
    }
    assert_eq!(one.deliver(false).unwrap(), sent(18));
    report(&one, "one");
    world.told().always = Some((413, "", Vec::new()));
    assert_eq!(one.deliver(false).unwrap(), gave_up("too_long", 2));
}

#[test]
fn a_report_that_others_than_the_collector_refuse_is_posted_200_times() {
    let world = World::new(&json!({}));
    let one = world.sender();
    report(&one, "one");
    for (status, problem) in [(200, ""), (302, ""), (404, ""), (403, "Not a name of ours")] {
        world.told().always = Some((status, problem, vec![("Location", "/elsewhere".to_owned())]));
        assert_eq!(one.deliver(false).unwrap().waiting, 2);
        world.again_now();
    }
    world.told().always = Some((403, "", Vec::new()));
    for _ in 4..199 {
        assert!(one.deliver(false).unwrap().dropped.is_empty());
        world.again_now();
    }
    // One that is not refused so often stays.
    report(&one, "one");
    assert_eq!(one.deliver(false).unwrap().dropped, dropped("no_collector", 1));
    world.again_now();
    world.told().always = None;
    assert_eq!(one.deliver(false).unwrap(), sent(3));
}

#[test]
fn a_process_that_is_killed_after_its_claim_leaves_its_reports_to_the_next() {
    let world = World::new(&json!({}));
    let one = world.sender();
    report(&one, "one");
    let queue = &one.deliverer.common.queue;
    let wanted = Wanted { now: NOON, most_rows: 10, most_bytes: 10_000, plain: false, early: false, passes: true };
    queue.claim(wanted, one.deliverer.common.arrivals.known().unwrap().turn()).unwrap().unwrap();
    // The report of the other stream is free.
    let other = world.sender();
    assert_eq!(other.deliver(false).unwrap(), Delivery { sent: 1, waiting: 1, ..Delivery::default() });
    world.hands.pass(queue.lease - 1);
    assert_eq!(other.deliver(true).unwrap().waiting, 1);
    world.hands.pass(1);
    assert_eq!(other.deliver(false).unwrap(), sent(1));
    assert_eq!(world.told().posts.len(), 2);
}

/// Return a sender that another one interrupts when it reads the clock for the n-th time.
fn interrupted(
    world: &World,
    readings: i64,
    work: impl Fn(&Sender) + Send + Sync + 'static,
) -> (Sender, Arc<Interrupted>) {
    let (hands, other) = (world.hands.clone(), world.sender());
    let clock = Arc::new(Interrupted { hands, left: AtomicI64::new(i64::MAX), work: Box::new(move || work(&other)) });
    let one = world.sender_with(|options| options.clock = clock.clone());
    clock.left.store(readings, Ordering::SeqCst);
    (one, clock)
}

#[test]
fn a_sender_that_slept_between_its_claim_and_its_post_posts_nothing_again() {
    let mut interrupted_often = 0;
    for readings in 0..40 {
        let world = World::new(&json!({}));
        report(&world.sender(), "one");
        let (hands, fake, woke) = (world.hands.clone(), world.fake.clone(), Arc::new(AtomicI64::new(0)));
        let wakes = woke.clone();
        let (one, clock) = interrupted(&world, readings, move |other| {
            hands.pass(3 * DAY);
            other.deliver(false).unwrap();
            wakes.store(fake.told().posts.len().cast_signed() as i64, Ordering::SeqCst);
            hands.pass(3 * DAY);
        });
        one.deliver(false).unwrap();
        assert_eq!(one.waiting(), Some(0));
        interrupted_often += i64::from(clock.left.load(Ordering::SeqCst) < 0);
        // What it sent before it slept, the other one sent again; after it woke it sends nothing that arrived.
        let told = world.told();
        let (before, after) = told.posts.split_at(woke.load(Ordering::SeqCst) as usize);
        let arrived: BTreeSet<_> = before.iter().flat_map(|post| &post.reports).collect();
        assert!(after.iter().flat_map(|post| &post.reports).all(|report| !arrived.contains(report)), "{readings}");
    }
    assert!((10..40).contains(&interrupted_often), "{interrupted_often}");
}

#[test]
fn who_opts_out_while_a_report_is_made_finds_nothing_left() {
    let mut interrupted_often = 0;
    for readings in 0..20 {
        let world = World::new(&json!({}));
        world.sender().deliver(false).unwrap();
        let (one, clock) = interrupted(&world, readings, |other| other.forget().unwrap());
        let made = one.try_report("one", &[]);
        if clock.left.load(Ordering::SeqCst) < 0 {
            assert_eq!(one.waiting(), Some(0), "{readings}: {made:?}");
            interrupted_often += 1;
        }
    }
    assert!((3..20).contains(&interrupted_often), "{interrupted_often}");
    // After the charge, and before the reports are queued.
    let world = World::new(&json!({}));
    let one = world.sender();
    report(&one, "one");
    one.deliver(false).unwrap();
    world.sql(
        "CREATE TRIGGER leaves AFTER UPDATE ON records WHEN new.name = 'budget' BEGIN UPDATE records
        SET value = replace(value, '\"optedOut\":false', '\"optedOut\":true') WHERE name = 'budget'; END",
    );
    assert_eq!(kind(&one, "one"), Kind::OptedOut);
    assert_eq!((charged(&one), one.waiting()), (2, Some(0)));
}

#[test]
fn equal_bytes_that_arrive_twice_travel_under_one_token() {
    let world = World::new(&json!({}));
    let (one, hands) = (world.sender(), world.hands.clone());
    report(&one, "one");
    // While the first request is under way, the device sleeps, and another process sends all that waits.
    let slept = Sleeping {
        inner: world.fake.clone(),
        wakes: Box::new(move || {
            hands.pass(3 * DAY);
            one.deliver(false).unwrap().sent
        }),
    };
    let sleeper = world.sender_with(|options| options.http = Arc::new(slept));
    let first = sleeper.deliver(false).unwrap();
    // Its own request arrived too, and what it claimed is gone from the queue: it counts nothing twice.
    assert_eq!((first.sent, first.waiting), (0, 0));
    let told = world.told();
    let received: Vec<_> = [told.received("reports"), told.received("discovery")].concat();
    assert_eq!((received.len(), received.iter().collect::<BTreeSet<_>>().len()), (3, 2));
    let first = told.posts.iter().filter(|post| post.stream == told.posts[0].stream);
    assert_eq!(first.map(|post| &post.token).collect::<BTreeSet<_>>().len(), 1);
}

struct Sleeping {
    inner: Arc<dyn crate::sender::http::Http>,
    wakes: Box<dyn Fn() -> u64 + Send + Sync>,
}

impl crate::sender::http::Http for Sleeping {
    fn exchange(
        &self,
        request: &crate::sender::http::Request<'_>,
    ) -> Result<crate::sender::http::Response, crate::sender::http::Failure> {
        if request.body.is_some() {
            assert_eq!((self.wakes)(), 2);
        }
        self.inner.exchange(request)
    }
}

#[test]
fn two_senders_share_one_file_and_each_report_is_sent_once() {
    let folder = Folder::new("shared");
    let path = folder.path("store.sqlite");
    let world = World { store: Store::open(&path).unwrap(), ..World::new(&json!({})) };
    let other = World { store: Store::open(&path).unwrap(), fake: world.fake.clone(), hands: world.hands.clone() };
    let senders = [world.sender(), other.sender()];
    std::thread::scope(|scope| {
        for one in &senders {
            scope.spawn(|| {
                for _ in 0..10 {
                    report(one, "one");
                    one.deliver(false).unwrap();
                }
            });
        }
    });
    senders[0].deliver(false).unwrap();
    let told = world.told();
    for stream in ["reports", "discovery"] {
        let received = told.received(stream);
        assert_eq!((received.len(), received.iter().collect::<BTreeSet<_>>().len()), (20, 20));
    }
    assert_eq!(told.posts.iter().map(|post| &post.token).collect::<BTreeSet<_>>().len(), 1);
}

#[test]
fn a_full_queue_the_cap_and_the_budget_refuse_before_anything_is_charged() {
    let world = World::new(&json!({}));
    let one = world.sender_with(|options| options.most_queued = 5);
    report(&one, "one");
    report(&one, "one");
    assert_eq!(kind(&one, "one"), Kind::QueueFull);
    assert_eq!(charged(&one), 2);
    one.deliver(false).unwrap();
    report(&one, "one");
    let world = World::new(&capped(1));
    let one = world.sender();
    report(&one, "one");
    assert_eq!(kind(&one, "one"), Kind::OverCap);
    assert_eq!(one.deliver(false).unwrap(), sent(2));
    let world = World::new(&json!({}));
    let limits = Limits { lifetime: 1.5, when_spent: WhenSpent::Nothing, ..Limits::default() };
    let budget = Budget::new(world.store.clone(), limits).unwrap();
    let one = world.sender_with(|options| options.budget = Some(budget));
    assert_eq!(kind(&one, "one"), Kind::BudgetSpent);
    assert_eq!((charged(&one), one.deliver(false).unwrap()), (0, Delivery::default()));
}

#[test]
fn values_over_the_cap_wait_for_the_next_window() {
    let world = World::new(&capped(1));
    world.told().down = true;
    let one = world.sender_with(|options| options.keep_values = true);
    for _ in 0..3 {
        report(&one, "one");
    }
    world.told().down = false;
    world.hands.pass(60_000);
    let done = Delivery { sent: 2, remade: 2, added: 1, waiting: 2, ..Delivery::default() };
    assert_eq!(one.deliver(true).unwrap(), done);
    assert_eq!(one.deliver(false).unwrap(), Delivery { waiting: 2, ..Delivery::default() });
    world.hands.pass(DAY);
    assert_eq!(one.deliver(false).unwrap(), Delivery { waiting: 1, ..done });
}

#[test]
fn reports_over_the_cap_that_wait_are_given_up() {
    // Two processes that report at the same moment both see room.
    let world = World::new(&capped(1));
    let one = world.sender();
    report(&one, "one");
    world.sql(
        "INSERT INTO queue SELECT NULL, campaign, fingerprint, stream, collector, cap, period, body, value, due, claim,
        claimed_until, refusals, first_window, is_tried, is_bound FROM queue",
    );
    let done = Delivery { sent: 2, dropped: dropped("over_cap", 2), ..Delivery::default() };
    assert_eq!(one.deliver(false).unwrap(), done);
}

#[test]
fn a_collector_whose_window_has_not_begun_is_asked_again_when_it_has() {
    let world = World::new(&json!({}));
    let midnight = NOON - NOON % DAY + DAY;
    // The device's clock is an hour ahead, and shows the next day.
    world.hands.set(midnight + 1_800_000);
    let one = world.sender();
    report(&one, "one");
    world.says(midnight - 1_800_000, "Thu, 26 Nov 2026 23:30:00 GMT");
    let done = one.deliver(true).unwrap();
    // The report of the first stream waits for its window; that of the second one goes in the true window.
    assert_eq!((done.sent, done.waiting, done.held_until), (1, 1, None));
    assert_eq!(one.deliver(true).unwrap(), Delivery { waiting: 1, ..Delivery::default() });
    world.hands.pass(1_805_000);
    world.says(midnight + 5_000, "Fri, 27 Nov 2026 00:00:05 GMT");
    assert_eq!(one.deliver(true).unwrap(), sent(1));
    let token = world.told().posts.iter().map(|post| post.token.clone()).collect::<BTreeSet<_>>();
    assert_eq!(token.len(), 2);
    // A clock that is years ahead: no report waits so long.
    world.hands.pass(1000 * DAY);
    world.sql("DELETE FROM facts WHERE name = 'arrivals'");
    world.told().date = None;
    report(&world.sender(), "one");
    let early = (425, "window_not_begun", vec![("Date", "Fri, 27 Nov 2026 00:00:05 GMT".to_owned())]);
    world.told().always = Some(early);
    assert_eq!(world.sender().deliver(true).unwrap().dropped["window_not_begun"], 1);
}

#[test]
fn a_report_that_came_before_its_window_gives_its_place_back() {
    let mut changes = capped(1);
    changes["discovery"] = Value::Null;
    let world = World::new(&changes);
    let midnight = NOON - NOON % DAY + DAY;
    world.hands.set(midnight + 1_800_000);
    let one = world.sender();
    report(&one, "one");
    world.says(midnight - 1_800_000, "Thu, 26 Nov 2026 23:30:00 GMT");
    assert_eq!(one.deliver(true).unwrap().waiting, 1);
    // The budget counts by the device's clock, and the queue by the collector's.
    world.sql("DELETE FROM records WHERE name = 'allowance'");
    report(&one, "one");
    assert_eq!(one.deliver(true).unwrap(), Delivery { sent: 1, waiting: 1, ..Delivery::default() });
}

#[test]
fn what_was_given_up_without_a_time_counts_in_every_window_until_the_collector_says_one() {
    let mut changes = capped(1);
    changes["discovery"] = Value::Null;
    let world = World::new(&changes);
    let one = world.sender();
    report(&one, "one");
    world.told().answers.push_back((413, "", vec![]));
    assert_eq!(one.deliver(false).unwrap(), gave_up("too_long", 1));
    world.hands.pass(2 * DAY);
    assert_eq!(kind(&one, "one"), Kind::OverCap);
    // The date of the campaign file settles it in the window of this date.
    world.told().date = Some("Sat, 28 Nov 2026 12:00:00 GMT".to_owned());
    World::refresh(&one);
    world.told().date = None;
    assert_eq!(kind(&one, "one"), Kind::OverCap);
    world.hands.pass(DAY);
    report(&one, "one");
    assert_eq!(one.deliver(false).unwrap(), sent(1));
}

#[test]
fn opting_out_empties_the_queue_and_nothing_is_made_or_sent_any_more() {
    let folder = Folder::new("opt-out");
    let path = folder.path("store.sqlite");
    let world = World { store: Store::open(&path).unwrap(), ..World::new(&json!({"memory": true})) };
    let one = world.sender_with(|options| options.keep_values = true);
    report(&one, "a-secret-value");
    let (secret, asked) = (one.deliverer.common.queue.secret().unwrap(), world.told().gets.len());
    one.forget().unwrap();
    assert_eq!(one.deliver(false).unwrap(), Delivery::default());
    assert_eq!(kind(&one, "one"), Kind::OptedOut);
    assert!(world.told().posts.is_empty());
    assert_eq!(world.told().gets.len(), asked);
    assert_eq!(charged(&one), 1);
    assert!(!std::fs::read(&path).unwrap().windows(14).any(|part| part == b"a-secret-value"));
    world
        .store
        .change(|records| {
            assert_eq!((records.count("answer/")?, records.count("token/")?), (0, 0));
            Ok(())
        })
        .unwrap();
    one.deliverer.common.budget.opt_in().unwrap();
    report(&one, "one");
    assert_eq!(one.deliver(false).unwrap(), sent(2));
    assert_ne!(one.deliverer.common.queue.secret().unwrap(), secret);
    assert!(told(&one).iter().all(|(_, reason, _)| !reason.contains("secret-value")));
}

#[test]
fn whoever_opts_out_elsewhere_has_what_waits_deleted() {
    let world = World::new(&oblivious());
    let one = world.sender();
    report(&one, "one");
    one.deliverer.common.budget.opt_out().unwrap();
    let gets = world.told().gets.len();
    assert_eq!(one.deliver(false).unwrap(), gave_up("opted_out", 2));
    one.stop();
    let told = world.told();
    assert_eq!((told.posts.len(), told.asked.len(), told.gets.len()), (0, 0, gets));
}

#[test]
fn who_is_not_asked_sends_charges_and_keeps_nothing_whatever_the_value() {
    let world = World::new(&json!({"sample": {"layer": "words", "buckets": [[0, 5000]]}}));
    let id = (0..9999).map(|number| format!("{number:032x}")).find(|id| bucket_of(id, "words") >= 5000);
    let installation = json!({"id": id, "drawn": NOON, "layers": {}});
    world.store.change(|records| records.put("installation", &installation)).unwrap();
    let allowed = super::fake_collector::policy(super::fake_collector::OPERATOR, &json!({"layers": ["words"]}));
    let one = world.sender_with(|options| options.policy = allowed);
    for value in ["one", "four", LONG, ""] {
        assert_eq!(kind(&one, value), Kind::NotAsked);
    }
    assert_eq!((one.deliver(false).unwrap(), charged(&one), one.waiting()), (Delivery::default(), 0, Some(0)));
}

#[test]
fn a_campaign_of_several_collectors_gets_nothing_until_the_app_names_the_site() {
    let world = World::new(&json!({"collectors": ["one", "two"]}));
    let site = |name: Option<&str>| Site { name: name.map(str::to_owned), ..Site::from(SITE) };
    for name in [None, Some("three")] {
        let one = world.sender_with(|options| options.site = site(name));
        assert_eq!(kind(&one, "one"), Kind::Untrusted);
        assert_eq!(one.deliver(true).unwrap(), Delivery::default());
    }
    let two = world.sender_with(|options| options.site = site(Some("two")));
    world.hands.pass(60_000);
    report(&two, "one");
    assert_eq!(two.deliver(true).unwrap(), sent(2));
    let slot = Slot { role: Role::Collector, campaign: "words", name: "two", begins: (NOON - NOON % DAY) / 1000 };
    let token = client_token(&two.deliverer.common.queue.secret().unwrap(), &slot);
    assert!(world.told().posts.iter().all(|post| post.token.1 == token));
}

#[test]
fn each_report_waits_a_time_of_its_own() {
    let world = World::new(&json!({}));
    let one = world.sender_with(|options| options.delay_seconds = 3600);
    for _ in 0..24 {
        report(&one, "one");
    }
    assert_eq!(one.deliver(false).unwrap(), Delivery { waiting: 48, ..Delivery::default() });
    // 24 uniform draws fall into one half of the hour with probability 1.2e-7 at most.
    world.hands.pass(1_800_000);
    let half = one.deliver(false).unwrap();
    assert!(half.sent > 0 && half.waiting > 0);
    assert_eq!(one.deliver(true).unwrap(), sent(half.waiting));
}

#[test]
fn what_cannot_be_used_is_refused() {
    let world = World::new(&json!({}));
    let says = |change: &dyn Fn(&mut SenderOptions)| {
        let policy = super::fake_collector::policy(super::fake_collector::OPERATOR, &json!({}));
        let mut options = SenderOptions::with_http(SITE, policy, world.store.clone(), world.fake.clone());
        change(&mut options);
        let Err(error) = Sender::open(options) else { panic!("it must be refused") };
        assert_eq!(error.kind(), Kind::Usage);
        error.to_string()
    };
    let starts = |said: String, wanted: &str| assert!(said.starts_with(wanted), "{said}");
    starts(says(&|options| options.delay_seconds = 86_401), "delay_seconds is 86401, must be from 0 to 86400");
    starts(says(&|options| options.answer_within_seconds = 86_401), "answer_within_seconds is");
    starts(says(&|options| options.window_seconds = 0), "window_seconds is 0");
    starts(says(&|options| options.most_queued = 0), "most_queued is 0");
    starts(says(&|options| options.policy = crate::Policy::trusting()), "policy must");
    starts(says(&|options| options.evaluator = Some("http://evaluator.example".into())), "evaluator is http://");
    for address in ["http://collector.example.com", "http://10.0.0.1", "http://[2001:db8::1]:80"] {
        starts(says(&|options| options.site = address.into()), &format!("site is {address}, must begin with https://"));
        let plain = Site { plain: true, ..address.into() };
        assert!(plain.checked("site").is_ok());
    }
    for address in [
        "",
        "collector",
        "ftp://x.example",
        "https://",
        "https://user@x.example",
        "https://x.example/?a",
        "https://x/#a",
        "https://x.example:0",
        "https://x.example:99999",
        "https://x.example:",
        "https://x.exa\nmple",
        "https://x .example",
        "https://é.example",
        "https://[::1",
        "https://[zz]",
        "https://[::1]x",
        "https://x:+1",
        "https:///path",
    ] {
        starts(says(&|options| options.site = address.into()), "site must be an address");
    }
    for here in ["http://localhost:1", "http://[::1]:1", "http://127.0.0.1:1/a/", "https://x.example/a/b/"] {
        assert!(!Site::from(here).checked("site").unwrap().address.ends_with('/'));
    }
}

#[test]
fn a_campaign_with_shorter_windows_than_the_app_allows_is_refused() {
    let starts: Vec<i64> = (0..60).map(|day| 1_793_000_000 - 1_793_000_000 % 86_400 + day * 86_400).collect();
    let world = World::new(&json!({"windows": {"unit": "day", "starts": starts}}));
    let one = world.sender_with(|options| options.window_seconds = 2 * 86_400);
    assert_eq!(kind(&one, "one"), Kind::Untrusted);
    let one = world.sender();
    world.hands.pass(60_000);
    report(&one, "one");
    assert_eq!(one.deliver(false).unwrap(), sent(2));
    assert_eq!(read(&world.told().epochs[0]).starts(DAY).least(), DAY);
}
