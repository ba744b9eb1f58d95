//! What the collectors take of a client's stream in one window is at most the cap, under all tokens, whatever happens.
//!
//! Random histories: the clock of the device is set by seconds up to years, in both directions, requests and answers
//! are lost, processes are killed, two processes share a queue, and two collectors have clocks that differ.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, OnceLock};

use serde_json::{Value, json};

use super::clocks::dated;
use super::fake_collector::{DAY, HOUR, World, begin_of, capped};
use crate::sender::http::{Failure, Http, Request, Response};
use crate::sender::sending::Sender;

const START: i64 = 20_783 * DAY;
/// By how much the clocks of the two collectors are ahead.
const SKEWS: [i64; 2] = [0, 3000];
const FATES: [&str; 14] = [
    "answered",
    "answered",
    "answered",
    "answered",
    "answered",
    "answer lost",
    "answer lost",
    "request lost",
    "killed",
    "refused",
    "page",
    "too long",
    "busy",
    "closed",
];
const JUMPS: [i64; 9] = [1000, 50_000, 361_000, DAY / 2, DAY, 2 * DAY, 30 * DAY, 400 * DAY, 20_000 * DAY];
const WAITS: [i64; 5] = [1000, 361_000, DAY / 4, DAY / 2, DAY - 100_000];

/// Numbers of one history.
pub(super) struct Chance(pub(super) u64);

impl Chance {
    pub(super) fn below(&mut self, bound: usize) -> usize {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ mixed >> 31) % bound as u64) as usize
    }

    pub(super) fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// The true time and what the collectors took.
struct History {
    chance: Chance,
    now: i64,
    wrong: i64,
    is_flying: bool,
    taken: BTreeMap<i64, BTreeSet<Vec<u8>>>,
    tokens: BTreeMap<Vec<u8>, BTreeSet<String>>,
}

/// The network, and the collectors.
struct Net {
    world: World,
    history: Mutex<History>,
    senders: OnceLock<[Sender; 2]>,
    /// When the collectors' windows begin.
    windows: Box<dyn Fn(i64) -> i64 + Send + Sync>,
}

impl Http for Net {
    fn exchange(&self, request: &Request<'_>) -> Result<Response, Failure> {
        let Some(body) = request.body else {
            let date = self.step(|history| history.now + history.chance.of(&SKEWS));
            self.world.told().date = Some(dated(date));
            return self.world.fake.exchange(request);
        };
        let (fate, skew, is_shared) = self.step(|history| {
            let is_shared = !history.is_flying && history.chance.percent(20);
            history.is_flying |= is_shared;
            (history.chance.of(&FATES), history.chance.of(&SKEWS), is_shared)
        });
        if is_shared {
            // The other process delivers while this request is under way.
            let _ = self.senders.get().unwrap()[1].deliver(false);
            self.step(|history| history.is_flying = false);
        }
        let answer = self.step(|history| {
            history.now += history.chance.of(&[0, 1000, 60_000]);
            let answer = self.answered(history, fate, request, body, history.now + skew);
            history.now += history.chance.of(&[0, 1000, 60_000]);
            history.set_clock(10);
            answer
        });
        if fate == "killed" {
            // The process ends here.
            resume_unwind(Box::new("killed"));
        }
        answer.ok_or(Failure::Unreachable)
    }
}

impl Net {
    fn new(seed: u64, changes: &Value, windows: Box<dyn Fn(i64) -> i64 + Send + Sync>) -> Arc<Self> {
        let chance = Chance(seed);
        let history =
            History { chance, now: START, wrong: 0, is_flying: false, taken: BTreeMap::new(), tokens: BTreeMap::new() };
        let net = Self { world: World::new(changes), history: Mutex::new(history), senders: OnceLock::new(), windows };
        let net = Arc::new(net);
        net.step(|_| ());
        let sender = |keep_values| {
            net.world.sender_with(|options| {
                (options.http, options.keep_values) = (net.clone(), keep_values);
            })
        };
        assert!(net.senders.set([sender(true), sender(false)]).is_ok());
        net
    }

    /// Do something, and show its time to the device.
    fn step<T>(&self, work: impl FnOnce(&mut History) -> T) -> T {
        let mut history = self.history.lock().unwrap();
        let done = work(&mut history);
        self.world.hands.set(history.now + history.wrong);
        done
    }

    fn answered(
        &self,
        history: &mut History,
        fate: &str,
        request: &Request<'_>,
        body: &[u8],
        now: i64,
    ) -> Option<Response> {
        let campaign = self.world.told().campaign();
        let length = campaign.sealed_bytes(crate::Stream::Reports);
        let reports: Vec<_> = body.chunks(length).map(<[u8]>::to_vec).collect();
        let (_, token) = request.headers.iter().find(|(name, _)| *name == "Client-Token").unwrap();
        for report in &reports {
            history.tokens.entry(report.clone()).or_default().insert(token.clone());
        }
        let said = |status, problem: &str| {
            let headers = [("Date", dated(now)), ("Content-Type", "application/problem+json".to_owned())];
            let headers = headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
            let body = json!({"type": format!("urn:hushcount:problem:{problem}")}).to_string().into_bytes();
            Some(Response { status, headers, body })
        };
        let page = |status| Some(Response { status, headers: vec![], body: b"<html>".to_vec() });
        match fate {
            "request lost" => return None,
            "killed" if history.chance.percent(50) => return None,
            "page" => return page(403),
            "too long" => return page(413),
            _ => {}
        }
        let window = request.url.split("window=").nth(1).unwrap();
        if begin_of(&window[..16]) > now {
            return said(425, "window_not_begun");
        }
        match fate {
            "busy" => return said(503, "queue_full"),
            "refused" => return said(400, "wrong_length"),
            "closed" => {
                let mut told = self.world.told();
                if told.epochs.len() == 1 {
                    let changes: Value = serde_json::from_slice(&told.epochs[0]).unwrap();
                    let kept = ["shuffle", "windows"].map(|name| (name.to_owned(), changes[name].clone()));
                    let changes =
                        Value::Object(kept.into_iter().chain([("discovery".to_owned(), Value::Null)]).collect());
                    told.publish(&changes);
                }
                return said(409, "epoch_closed");
            }
            _ => {}
        }
        history.taken.entry((self.windows)(now)).or_default().extend(reports);
        if fate == "answered" { said(202, "") } else { None }
    }
}

impl History {
    fn set_clock(&mut self, percent: usize) {
        if self.chance.percent(percent) {
            self.wrong = self.chance.of(&[0, 0, self.wrong]) + self.chance.of(&[-1, 0, 0, 1]) * self.chance.of(&JUMPS);
        }
    }
}

/// Return the most reports that were taken in one window of a history, and how many were taken in all.
fn history(net: &Net, is_forgetful: bool) -> (usize, usize) {
    for _ in 0..60 {
        let (action, place, early) = net.step(|history| {
            history.set_clock(10);
            if history.chance.percent(20) {
                history.now += history.chance.of(&WAITS);
            }
            (history.chance.below(2), history.chance.below(2), history.chance.percent(30))
        });
        let one = &net.senders.get().unwrap()[place];
        net.world.sql("UPDATE facts SET fact = '0 0' WHERE name = 'hold'");
        // The budget counts by the device's clock; without it the queue alone keeps the cap.
        net.world.sql("DELETE FROM records WHERE name = 'allowance'");
        net.world.sql("UPDATE queue SET refusals = 199 WHERE refusals = 1");
        if is_forgetful {
            net.world.sql("UPDATE queue SET is_tried = 0");
        }
        if action == 0 {
            // What may not be made now is not made.
            let _ = one.try_report("one", &[]);
        } else {
            let _ = one.deliver(early);
        }
    }
    let history = net.history.lock().unwrap();
    assert!(history.tokens.values().all(|tokens| tokens.len() == 1), "the same bytes, the same token");
    let windows: Vec<_> = history.taken.values().map(BTreeSet::len).collect();
    (windows.iter().copied().max().unwrap_or_default(), windows.iter().sum())
}

fn changes(cap: u64, windows: &Value) -> Value {
    let mut changes = capped(cap);
    (changes["discovery"], changes["windows"]) = (Value::Null, windows.clone());
    changes
}

fn days(moment: i64) -> i64 {
    moment.div_euclid(DAY)
}

/// Days that begin an hour before midnight, UTC.
fn listed() -> (Value, Box<dyn Fn(i64) -> i64 + Send + Sync>) {
    let starts: Vec<_> = (-10..400).map(|day| (START + day * DAY - HOUR) / 1000).collect();
    (json!({"unit": "day", "starts": starts}), Box::new(|moment| (moment + HOUR).div_euclid(DAY)))
}

#[test]
fn whatever_clocks_and_networks_do_at_most_the_cap_is_taken_in_a_window() {
    let mut all = 0;
    for seed in 0..40 {
        let cap = 1 + seed % 3;
        let (windows, at) = if seed % 2 == 0 { (Value::Null, Box::new(days) as Box<_>) } else { listed() };
        let (most, taken) = history(&Net::new(seed, &changes(cap, &windows), at), false);
        assert!(most <= cap as usize, "seed {seed}: {most} of {cap}");
        all += taken;
    }
    assert!(all > 80, "the search is not idle: {all}");
}

#[test]
fn the_search_sees_a_client_that_keeps_no_place_for_what_may_arrive() {
    let exceeds = |seed| history(&Net::new(seed, &changes(1, &Value::Null), Box::new(days)), true).0 > 1;
    assert!((0..200).any(exceeds));
}
