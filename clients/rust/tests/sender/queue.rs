//! What is queued is there until it is removed, is claimed by one at a time, and is nobody else's to read.

use std::collections::BTreeMap;
use std::thread;

use super::fake_collector::DAY;
use crate::campaigns::campaign::Stream;
use crate::errors::Kind;
use crate::sender::claims::Wanted;
use crate::sender::queue::Queue;
use crate::sender::waiting::{Claimed, Measurement, Settled, Turn, Waiting};
use crate::store::Store;

const NOW: i64 = 1_800_000_000_000;
const LEASE: i64 = 300_000;
const TURN: Turn = Turn { window: NOW - NOW % DAY, least: DAY };

fn wanted(now: i64) -> Wanted {
    Wanted { now, most_rows: 10, most_bytes: 1_000_000, plain: true, early: false, passes: true }
}

fn early(now: i64) -> Wanted {
    Wanted { early: true, ..wanted(now) }
}

fn waiting(number: u32, due: i64) -> Waiting {
    Waiting {
        fingerprint: "1".repeat(64),
        stream: Some(Stream::Reports),
        body: format!("{number:06}").into_bytes(),
        measurement: None,
        collector: "one".to_owned(),
        cap: 1000,
        ..Waiting::plain(None, Measurement::default(), due)
    }
}

fn of_file(number: u32, file: &str, due: i64) -> Waiting {
    Waiting { fingerprint: file.repeat(64), ..waiting(number, due) }
}

fn queue(store: &Store) -> Queue {
    Queue::new(store.clone(), "words".to_owned(), 3, LEASE)
}

fn memory() -> Queue {
    queue(&Store::in_memory().unwrap())
}

fn put(queue: &Queue, waiting: &[Waiting]) {
    queue.change(|tables| tables.insert(waiting)).unwrap();
}

fn claim(queue: &Queue, wanted: Wanted) -> Option<Claimed> {
    queue.claim(wanted, TURN).unwrap()
}

fn body(queue: &Queue, wanted: Wanted) -> String {
    String::from_utf8(claim(queue, wanted).expect("nothing is due").body()).unwrap()
}

#[test]
fn what_is_due_is_claimed_once_and_stays_until_it_is_removed() {
    let queue = memory();
    put(&queue, &[waiting(0, NOW), waiting(1, NOW), waiting(2, NOW)]);
    let first = claim(&queue, Wanted { most_rows: 2, ..wanted(NOW) }).unwrap();
    assert_eq!(first.body(), b"000000000001");
    let second = claim(&queue, wanted(NOW)).unwrap();
    assert_eq!(second.body(), b"000002");
    assert!(claim(&queue, wanted(NOW)).is_none());
    assert_eq!(queue.waiting().unwrap(), 3);
    let remove = || queue.change(|tables| tables.remove(first.rows.iter().map(|row| row.id))).unwrap();
    assert_eq!((remove(), remove()), (2, 0));
    queue.give_back(&second, None).unwrap();
    assert_eq!(body(&queue, wanted(NOW)), "000002");
}

#[test]
fn a_claim_ends_with_its_time_and_then_belongs_to_another() {
    let queue = memory();
    put(&queue, &[waiting(1, NOW)]);
    let late = claim(&queue, wanted(NOW)).unwrap();
    assert!(claim(&queue, wanted(NOW + LEASE - 1)).is_none());
    let other = claim(&queue, wanted(NOW + LEASE)).unwrap();
    let row = late.rows[0].id;
    assert!(!queue.replace(&late.claim, row, &[]).unwrap());
    queue.give_back(&late, Some(NOW)).unwrap();
    assert!(claim(&queue, wanted(NOW + LEASE)).is_none());
    assert!(queue.replace(&other.claim, row, &[waiting(2, NOW)]).unwrap());
    assert_eq!(body(&queue, wanted(NOW)), "000002");
}

#[test]
fn a_process_that_looked_at_the_clock_earlier_does_not_take_a_claim_over() {
    let queue = memory();
    put(&queue, &[waiting(1, NOW)]);
    claim(&queue, wanted(NOW + 5000)).unwrap();
    assert!(claim(&queue, wanted(NOW)).is_none());
    assert!(claim(&queue, early(NOW + 5000 - LEASE)).is_none());
    // A claim is at most two leases ahead.
    assert!(claim(&queue, early(NOW + 5000 - LEASE - 1)).is_some());
}

#[test]
fn what_is_not_due_waits_and_a_clock_that_was_set_back_delays_nothing_for_good() {
    let queue = memory();
    put(&queue, &[waiting(1, NOW + 600_000)]);
    assert!(claim(&queue, wanted(NOW)).is_none());
    assert_eq!(queue.next_due().unwrap(), Some(NOW + 600_000));
    assert_eq!(claim(&queue, early(NOW)).unwrap().rows[0].waiting.due, NOW + 600_000);
    // A year earlier, or a day and an hour, time and claim are too far in the future to be right.
    for earlier in [365 * DAY, 90_000_000] {
        assert_eq!(body(&queue, wanted(NOW - earlier)), "000001");
    }
}

#[test]
fn a_claim_is_at_most_two_leases_ahead_and_an_evaluation_four_days() {
    let queue = memory();
    put(&queue, &[waiting(1, NOW)]);
    claim(&queue, wanted(NOW)).unwrap();
    assert!(claim(&queue, early(NOW - LEASE)).is_none());
    assert_eq!(body(&queue, early(NOW - LEASE - 1)), "000001");
    let longest = blank(2, "a", NOW + 2 * DAY, NOW + 3 * DAY);
    let queue = memory();
    put(&queue, &[longest]);
    assert!(claim(&queue, early(NOW - 5)).is_none());
    assert_eq!(body(&queue, wanted(NOW - 365 * DAY)), "blank2");
}

#[test]
fn a_batch_is_of_one_campaign_file_and_stream_and_no_longer_than_it_may_be() {
    let queue = memory();
    let other = Waiting { stream: Some(Stream::Discovery), body: b"dddddd".to_vec(), ..waiting(0, NOW) };
    put(&queue, &[waiting(1, NOW), of_file(2, "2", NOW), waiting(3, NOW), other]);
    let bodies = [(); 3].map(|()| body(&queue, wanted(NOW)));
    assert_eq!(bodies, ["000001000003", "000002", "dddddd"]);
    put(&queue, &(4..9).map(|number| waiting(number, NOW + 1)).collect::<Vec<_>>());
    for (most_bytes, rows) in [(15, 2), (1, 1)] {
        assert_eq!(claim(&queue, Wanted { most_bytes, ..wanted(NOW + 1) }).unwrap().rows.len(), rows);
    }
}

#[test]
fn what_was_due_first_is_sent_first() {
    let queue = memory();
    let of = [of_file(1, "2", NOW - 1), waiting(2, NOW - 3), of_file(3, "2", NOW - 4), waiting(4, NOW - 2)];
    put(&queue, &of);
    assert_eq!(body(&queue, Wanted { most_rows: 1, ..wanted(NOW) }), "000003");
    assert_eq!(body(&queue, wanted(NOW)), "000002000004");
    assert_eq!(body(&queue, wanted(NOW)), "000001");
}

#[test]
fn plain_values_are_claimed_only_if_asked_for() {
    let queue = memory();
    let by = BTreeMap::from(
        [("version", "2.1"), ("platform", "mac os")].map(|(axis, one)| (axis.to_owned(), one.to_owned())),
    );
    let measurement = Measurement { value: "dark\0\u{1f600}".to_owned(), by };
    put(&queue, &[Waiting::plain(None, measurement.clone(), NOW)]);
    assert!(claim(&queue, Wanted { plain: false, ..wanted(NOW) }).is_none());
    let found = claim(&queue, wanted(NOW)).unwrap();
    assert!(found.rows[0].waiting.measurement.as_ref() == Some(&measurement) && found.of.is_plain());
}

#[test]
fn a_full_queue_refuses_in_a_sentence() {
    let store = Store::in_memory().unwrap();
    let queue = queue(&store);
    put(&queue, &[waiting(1, NOW), waiting(2, NOW)]);
    queue.require_room(1).unwrap();
    let error = queue.require_room(2).unwrap_err();
    assert_eq!(error.kind(), Kind::QueueFull);
    assert!(error.to_string().starts_with("2 reports of campaign words wait"), "{error}");
    Queue::new(store, "others".to_owned(), 3, LEASE).require_room(3).unwrap();
}

#[test]
fn campaigns_share_a_store_and_nothing_in_it() {
    let store = Store::in_memory().unwrap();
    let (one, other) = (queue(&store), Queue::new(store, "others".to_owned(), 3, LEASE));
    for queue in [&one, &other] {
        put(queue, &[waiting(1, NOW)]);
        queue.change(|tables| tables.note("fact", &queue.campaign)).unwrap();
    }
    assert_ne!(one.secret().unwrap(), other.secret().unwrap());
    assert_eq!(one.clear().unwrap(), 1);
    assert_eq!((one.waiting().unwrap(), one.fact("fact").unwrap()), (0, None));
    assert_eq!((other.waiting().unwrap(), other.fact("fact").unwrap().as_deref()), (1, Some("others")));
}

#[test]
fn threads_that_claim_at_once_share_the_rows_without_overlap() {
    let folder = Folder::new("claims");
    let store = Store::open(folder.path("queue.sqlite")).unwrap();
    put(&queue(&store), &(0..60).map(|number| waiting(number, NOW)).collect::<Vec<_>>());
    let claim_all = || {
        let queue = queue(&store);
        let mut rows = Vec::new();
        while let Some(found) = claim(&queue, Wanted { most_rows: 3, ..wanted(NOW) }) {
            rows.extend(found.rows.iter().map(|row| row.id));
        }
        rows
    };
    let mut rows = thread::scope(|scope| {
        let threads = [(); 3].map(|()| scope.spawn(claim_all));
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    rows.sort_unstable();
    assert_eq!(rows, (1..=60).collect::<Vec<_>>());
}

#[test]
fn what_was_deleted_is_not_in_the_file() {
    let folder = Folder::new("deleted");
    let path = folder.path("queue.sqlite");
    let queue = queue(&Store::open(&path).unwrap());
    let secret = Measurement { value: "a-secret-value".to_owned(), ..Measurement::default() };
    put(&queue, &vec![Waiting { measurement: Some(secret), ..waiting(1, NOW) }; 50]);
    let is_there = |path: &std::path::Path| {
        let bytes = std::fs::read(path).unwrap();
        bytes.windows(14).any(|part| part == b"a-secret-value")
    };
    assert!(is_there(&path));
    assert_eq!(queue.clear().unwrap(), 50);
    for left in std::fs::read_dir(folder.path("")).unwrap() {
        assert!(!is_there(&left.unwrap().path()));
    }
}

// Blanks: claimed from the beginning by whoever asks.

fn blank(number: u32, claim: &str, until: i64, due: i64) -> Waiting {
    let body = format!("blank{number}").into_bytes();
    Waiting {
        stream: Some(Stream::Discovery),
        body,
        claim: format!("evaluation-{claim}"),
        claimed_until: until,
        ..waiting(0, due)
    }
}

fn settled(claim: &str, body: Option<&str>) -> Settled {
    let body = body.map(|text| text.as_bytes().to_vec());
    Settled { claim: format!("evaluation-{claim}"), due: NOW, body }
}

#[test]
fn a_blank_is_nobody_elses_until_its_time_and_then_goes() {
    let queue = memory();
    put(&queue, &[blank(1, "a", NOW + 60_000, NOW + 90_000)]);
    assert!(claim(&queue, early(NOW)).is_none());
    assert_eq!(queue.next_due().unwrap(), Some(NOW + 90_000));
    assert!(claim(&queue, wanted(NOW + 89_999)).is_none());
    assert_eq!(body(&queue, wanted(NOW + 90_000)), "blank1");
}

#[test]
fn an_answer_takes_the_place_of_the_blank_in_one_change() {
    let queue = memory();
    put(&queue, &["a", "b", "c"].map(|claim| blank(1, claim, NOW + 60_000, NOW + 90_000)));
    let answers = [settled("a", Some("final1")), settled("b", None), settled("none", Some("final4"))];
    assert_eq!(queue.settle(&answers).unwrap(), 2);
    assert_eq!(body(&queue, wanted(NOW)), "final1blank1");
    assert_eq!(queue.settle(&[settled("a", Some("again1"))]).unwrap(), 0, "it is claimed by who sends it");
    assert_eq!(queue.waiting().unwrap(), 3);
}

#[test]
fn who_asks_claims_on_and_learns_what_is_gone() {
    let queue = memory();
    put(&queue, &[blank(1, "a", NOW + 60_000, NOW + 90_000), blank(2, "b", NOW + 500_000, NOW)]);
    let renew = |claims: &[&str], until| queue.renew(claims, until).unwrap();
    assert_eq!(renew(&["evaluation-a", "none", "evaluation-b"], NOW + 200_000), [true, false, true]);
    assert!(claim(&queue, wanted(NOW + 199_999)).is_none());
    assert_eq!(body(&queue, wanted(NOW + 200_000)), "blank1");
    assert_eq!(renew(&["evaluation-a", "evaluation-b"], NOW + 300_000), [false, true]);
    assert!(claim(&queue, wanted(NOW + 499_999)).is_none());
}

#[test]
fn a_clock_that_was_set_back_keeps_no_blank_for_good_and_who_asks_keeps_it() {
    let queue = memory();
    put(&queue, &[blank(1, "a", NOW + 2 * DAY, NOW + 3 * DAY)]);
    assert!(claim(&queue, early(NOW - 5)).is_none(), "the longest evaluation");
    let before = NOW - 40 * DAY;
    assert_eq!(queue.renew(&["evaluation-a"], before + LEASE).unwrap(), [true]);
    assert!(claim(&queue, early(before + LEASE - 1)).is_none());
    assert_eq!(body(&queue, early(before + LEASE)), "blank1");
}

/// A folder of a test's own, which is removed with it.
pub(super) struct Folder(std::path::PathBuf);

impl Folder {
    pub(super) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("hushcount-sender-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(super) fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
