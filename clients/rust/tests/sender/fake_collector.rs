//! A collector and evaluator that a test steers: what it publishes and answers, and what it was sent.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crypto_box::aead::OsRng;
use ed25519_dalek::{Signer, SigningKey};
use serde_json::{Value, json};
use voprf::{BlindedElement, Ristretto255, VoprfServer};

use crate::campaigns::campaign::Campaign;
use crate::clock::Clock;
use crate::formats::bytes::{hex, unhex};
use crate::formats::times::parse_time;
use crate::sender::http::{Failure, Http, Request, Response};
use crate::sender::options::SenderOptions;
use crate::sender::sending::Sender;
use crate::sender::tables::change;
use crate::store::Store;
use crate::trust::policy::Policy;
use crate::trust::signatures::signed_bytes;

pub(super) const HOUR: i64 = 3_600_000;
pub(super) const DAY: i64 = 24 * HOUR;
/// 2026-11-26, noon.
pub(super) const NOON: i64 = 20_783 * DAY + 12 * HOUR;
pub(super) const SITE: &str = "https://collector.example";
pub(super) const OPERATOR: (&str, &str, &str) = (
    "00537da15677500212ba931aae1fbf5bee4c485b42a3fef5d9dc8672f5038233",
    "79c324f92dc1d244",
    "70dc92b48524280bc5e98b89659d7b5b5adb9f785b9df7c5a48677f9acc87c27",
);
pub(super) const STRANGER: (&str, &str, &str) = (
    "e8f6bf404734e889dd6d819aaee6d2953f67c8e42f8e28b8c97f84d4b7a749fc",
    "c641dc3cbedaf4de",
    "f212bf5a004f4ccb585a7facaa431bc5eb4362bdb57821c17328f90d8e973511",
);
const DIGEST: &str = "f7f4fdf82cd96c1f5ef6d1bbc6b878980abe96c2f28efe3140d712777d6a9c41";
/// In `answers`, for a request that gets no answer.
pub(super) const SILENT: u16 = 0;

/// The hands of a device's clock, which a test sets.
pub(super) struct Hands(AtomicI64);

impl Hands {
    pub(super) fn set(&self, now: i64) {
        self.0.store(now, Ordering::SeqCst);
    }

    pub(super) fn pass(&self, time: i64) {
        self.0.fetch_add(time, Ordering::SeqCst);
    }
}

impl Clock for Hands {
    fn now(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// A clock that does something when it is read for the n-th time: whatever another process may do between two steps.
pub(super) struct Interrupted {
    pub(super) hands: Arc<Hands>,
    pub(super) left: AtomicI64,
    pub(super) work: Box<dyn Fn() + Send + Sync>,
}

impl Clock for Interrupted {
    fn now(&self) -> i64 {
        if self.left.fetch_sub(1, Ordering::SeqCst) == 0 {
            (self.work)();
        }
        self.hands.now()
    }
}

/// Return a campaign file, the first epoch or the one after another, with some fields changed; null removes a field.
pub(super) fn file(previous: Option<&[u8]>, changes: &Value) -> Vec<u8> {
    let party = |id: &str, key: &str| {
        let (not_before, not_after) = ("2026-01-01T00:00:00Z", "2046-01-01T00:00:00Z");
        json!([{"id": id, "key": key, "not_before": not_before, "not_after": not_after}])
    };
    let mut made = json!({
        "format": 2, "id": "words", "epoch": 2, "mechanism": {"name": "ss", "epsilon": 1.5, "parameters": {"s": 1}},
        "dictionary": {"path": "words.txt", "items": 3, "digest": DIGEST}, "memory": false, "memory_values": 1,
        "shuffle": {"cap": 100, "minimum_batch": 10, "delta": 1e-7},
        "discovery": {"epsilon": 1.0, "delta": 1e-6, "relation": "replace-one", "rule": "optimal", "counts": false,
            "max_value_bytes": 32, "hash": "keyed", "hash_key": "ab".repeat(32)},
        "collectors": ["one"],
        "keys": {
            "analyzer": party("1998b8c8574a8270", "a4e09292b651c278b9772c569f5fa9bb13d906b46ab68c9df9dc2b4409f8a209"),
            "aux_server": party("12332d78212d042a", "ce8d3ad1ccb633ec7b70c17814a5c76ecd029685050d344745ba05870e587d59"),
            "evaluator": [],
        },
        "unicode": "13.0",
    });
    if changes["discovery"]["hash"] == "oblivious" {
        let key = "506fa6f8787d62f3a56c58bdaab32783368f6aeeaa91474e69952a3c4e51c268";
        made["keys"]["evaluator"] = party("c046a7bd9634d3cc", key);
    }
    if let Some(before) = previous.map(read) {
        made["epoch"] = json!(before.epoch + 1);
        made["previous"] = json!(hex(&before.head));
    }
    let fields = made.as_object_mut().unwrap();
    for (name, value) in changes.as_object().unwrap() {
        if value.is_null() {
            fields.remove(name)
        } else {
            fields.insert(name.clone(), value.clone())
        };
    }
    made.to_string().into_bytes()
}

/// The changes of a campaign with an evaluator.
pub(super) fn oblivious() -> Value {
    json!({"discovery": {"epsilon": 1.0, "delta": 1e-6, "relation": "replace-one", "rule": "optimal", "counts": false,
        "max_value_bytes": 32, "hash": "oblivious"}})
}

/// The changes of a campaign with a cap.
pub(super) fn capped(cap: u64) -> Value {
    json!({"shuffle": {"cap": cap, "minimum_batch": 10, "delta": 1e-7}})
}

pub(super) fn read(file: &[u8]) -> Campaign {
    Campaign::parse(file, &[]).unwrap()
}

/// Return a policy that accepts the campaigns of these tests, signed by a key, with some fields changed.
pub(super) fn policy(signer: (&str, &str, &str), changes: &Value) -> Policy {
    let mut made = json!({
        "format": 1, "campaign_id": "words",
        "operator_keys": [{"id": signer.1, "key": signer.2, "not_before": "2016-12-02T00:00:00Z",
            "not_after": "2036-11-27T00:00:00Z"}],
        "max_epsilon": 150.0, "max_discovery_epsilon": 1.0, "max_noise_epsilon": 1.0, "oblivious": false,
        "max_delta": 1e-6, "min_batch": 1, "layers": [], "least_share": 0.01, "take": "text", "hosts": [], "axes": [],
        "public_axes": [], "public_strata": 64, "max_report_bytes": 16384, "max_dictionary_bytes": 33_554_432,
    });
    for (name, value) in changes.as_object().unwrap() {
        made[name] = value.clone();
    }
    Policy::parse(made.to_string().as_bytes()).unwrap()
}

/// What was posted and is on the collector's disk.
pub(super) struct Post {
    pub(super) stream: String,
    pub(super) fingerprint: String,
    /// The header that shows the token, and its value.
    pub(super) token: (String, String),
    pub(super) url: String,
    pub(super) reports: Vec<Vec<u8>>,
}

/// One evaluation that the evaluator was asked for.
pub(super) struct Asked {
    pub(super) headers: Vec<(String, String)>,
    pub(super) blinded: Vec<u8>,
}

impl Asked {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }
}

/// An answer to a post: status, name of the problem, headers.
pub(super) type Said = (u16, &'static str, Vec<(&'static str, String)>);
/// Status, media type and body of an evaluator's answer.
pub(super) type Evaluated = (u16, &'static str, Vec<u8>);
type Evaluate = Box<dyn FnMut(&[u8]) -> Evaluated + Send>;
type Other = Box<dyn FnMut(&Request<'_>) -> Result<Response, Failure> + Send>;
/// A document, and its headers.
type Document = (Vec<u8>, Vec<(String, String)>);

/// What a collector publishes and answers, which may change at any time.
pub(super) struct Told {
    pub(super) epochs: Vec<Vec<u8>>,
    pub(super) signer: (&'static str, &'static str, &'static str),
    pub(super) max_age: u64,
    /// Fingerprints; none: that of the newest epoch.
    pub(super) accepted: Option<Vec<String>>,
    /// Answers to the next posts, then to all others.
    pub(super) answers: VecDeque<Said>,
    pub(super) always: Option<Said>,
    /// Whether what such an answer refuses was stored nevertheless, as when an answer is lost.
    pub(super) takes_before_answering: bool,
    pub(super) most_reports: usize,
    pub(super) most_bytes: usize,
    pub(super) down: bool,
    /// What its answers say of the time.
    pub(super) date: Option<String>,
    /// By what time it refuses windows that have not begun.
    pub(super) now: i64,
    pub(super) posts: Vec<Post>,
    pub(super) gets: Vec<String>,
    pub(super) asked: Vec<Asked>,
    pub(super) evaluate: Evaluate,
    /// Answers requests to other sites.
    pub(super) other: Other,
}

impl Told {
    pub(super) fn campaign(&self) -> Campaign {
        read(self.epochs.last().unwrap())
    }

    /// Publish the next epoch.
    pub(super) fn publish(&mut self, changes: &Value) {
        let next = file(self.epochs.last().map(Vec::as_slice), changes);
        self.epochs.push(next);
    }

    /// Return each report that was taken, in order, copies included.
    pub(super) fn received(&self, stream: &str) -> Vec<&[u8]> {
        let posts = self.posts.iter().filter(|post| post.stream == stream);
        posts.flat_map(|post| &post.reports).map(Vec::as_slice).collect()
    }

    fn document(&self, path: &str) -> Option<Document> {
        let age = ("Cache-Control".to_owned(), format!("public, max-age={}", self.max_age));
        match path {
            "/v1/campaigns/words" => {
                let seed = unhex(self.signer.0).unwrap().try_into().unwrap();
                let signed = signed_bytes(&self.campaign().fingerprint, "campaign");
                let signature = hex(&SigningKey::from_bytes(&seed).sign(&signed).to_bytes());
                let text = json!({"key_id": self.signer.1, "signature": signature}).to_string();
                let header = format!(":{}:", STANDARD.encode(text));
                Some((self.epochs.last()?.clone(), vec![age, ("Campaign-Signature".to_owned(), header)]))
            }
            "/v1/campaigns/words/log" => {
                let entry = |file: &Vec<u8>| {
                    let campaign = read(file);
                    json!({"epoch": campaign.epoch, "fingerprint": hex(&campaign.fingerprint)})
                };
                let entries: Vec<_> = self.epochs.iter().map(entry).collect();
                Some((
                    json!({"format": 1, "campaign": "words", "entries": entries}).to_string().into_bytes(),
                    vec![age],
                ))
            }
            "/v1/campaigns/words/dictionary" => Some((b"one\ntwo\nthree\n".to_vec(), vec![age])),
            _ => None,
        }
    }

    fn get(&mut self, path: &str) -> Response {
        self.gets.push(path.to_owned());
        let document = self.document(path.split('?').next().unwrap());
        let (status, body, mut headers) = match document {
            _ if self.down => (503, Vec::new(), Vec::new()),
            None => (404, Vec::new(), Vec::new()),
            Some((body, headers)) => (200, body, headers),
        };
        headers.extend(self.date.clone().map(|date| ("Date".to_owned(), date)));
        Response { status, headers, body }
    }

    fn said(&mut self, stream: &str, fingerprint: &str, window: &str, body: &[u8]) -> Said {
        if let Some(said) = self.answers.pop_front().or_else(|| self.always.clone()) {
            return said;
        }
        let known = self.epochs.iter().map(|file| read(file)).find(|one| hex(&one.fingerprint) == fingerprint);
        let no = |status, problem| (status, problem, Vec::new());
        let Some(known) = known else { return no(409, "unknown_fingerprint") };
        if begin_of(window) > self.now {
            return no(425, "window_not_begun");
        }
        let newest = hex(&self.campaign().fingerprint);
        let is_open =
            self.accepted.as_ref().map_or(newest == fingerprint, |open| open.iter().any(|one| one == fingerprint));
        let length = sealed_bytes(&known, stream);
        assert_eq!(body.len() % length, 0);
        match () {
            () if self.down => no(503, ""),
            () if body.len() > self.most_bytes => no(413, ""),
            () if !is_open => no(409, "epoch_closed"),
            () if body.len() / length > self.most_reports => no(413, "too_many_reports_at_once"),
            () => no(202, ""),
        }
    }

    fn post(&mut self, request: &Request<'_>, path: &str, body: &[u8]) -> Result<Response, Failure> {
        let (place, query) = path.split_once('?').unwrap();
        let stream = place.rsplit('/').next().unwrap();
        let parameter = |name: &str| {
            let mut parts = query.split('&').filter_map(|part| part.split_once('='));
            parts.find(|(other, _)| *other == name).map_or("", |(_, value)| value)
        };
        let fingerprint = parameter("fingerprint");
        let headers: Vec<_> = request.headers.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        if stream == "evaluations" {
            self.asked.push(Asked { headers, blinded: body.to_vec() });
            let (status, media, body) = (self.evaluate)(body);
            return answer(status, vec![("Content-Type".to_owned(), media.to_owned())], body);
        }
        let (status, problem, more) = self.said(stream, fingerprint, parameter("window"), body);
        if status == 202 || self.takes_before_answering {
            let known = self.epochs.iter().map(|file| read(file)).find(|one| hex(&one.fingerprint) == fingerprint);
            let length = sealed_bytes(&known.unwrap(), stream);
            let token = headers.iter().find(|(name, _)| name == "Client-Token" || name == "Authorization").unwrap();
            self.posts.push(Post {
                stream: stream.to_owned(),
                fingerprint: fingerprint.to_owned(),
                token: token.clone(),
                url: request.url.clone(),
                reports: body.chunks(length).map(<[u8]>::to_vec).collect(),
            });
        }
        let mut headers = vec![("content-type".to_owned(), "application/problem+json".to_owned())];
        headers.extend(more.into_iter().map(|(name, value)| (name.to_owned(), value)));
        headers.extend(self.date.clone().map(|date| ("date".to_owned(), date)));
        let details = json!({"type": format!("urn:hushcount:problem:{problem}")}).to_string().into_bytes();
        answer(status, headers, if problem.is_empty() { Vec::new() } else { details })
    }
}

fn answer(status: u16, headers: Vec<(String, String)>, body: Vec<u8>) -> Result<Response, Failure> {
    if status == SILENT { Err(Failure::Unreachable) } else { Ok(Response { status, headers, body }) }
}

fn sealed_bytes(campaign: &Campaign, stream: &str) -> usize {
    let of = campaign.streams().into_iter().find(|one| one.name() == stream).unwrap();
    campaign.sealed_bytes(of)
}

/// Return when the window of a name begins.
pub(super) fn begin_of(name: &str) -> i64 {
    let [year, month, day, hour, minute, second] =
        [0..4, 4..6, 6..8, 9..11, 11..13, 13..15].map(|digits| name.get(digits).unwrap());
    parse_time(&format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z")).unwrap()
}

/// Return the evaluator's right answer.
pub(super) fn evaluated(blinded: &[u8]) -> Evaluated {
    evaluated_by([0, 1, 2, 3], blinded)
}

/// Return the answer of a key, whose seed begins with these bytes and goes on counting.
pub(super) fn evaluated_by(first: [u8; 4], blinded: &[u8]) -> Evaluated {
    let mut seed: [u8; 32] = std::array::from_fn(|place| place as u8);
    seed[..4].copy_from_slice(&first);
    let server = VoprfServer::<Ristretto255>::new_from_seed(&seed, &[]).unwrap();
    let made = server.blind_evaluate(&mut OsRng, &BlindedElement::deserialize(blinded).unwrap());
    let body = [made.message.serialize().to_vec(), made.proof.serialize().to_vec()].concat();
    (200, "application/octet-stream", body)
}

/// Return an evaluator's refusal.
pub(super) fn refused(status: u16, problem: &str) -> Evaluated {
    let body = json!({"type": format!("urn:hushcount:problem:{problem}")}).to_string().into_bytes();
    (status, "application/problem+json", body)
}

pub(super) struct Fake(Mutex<Told>);

impl Fake {
    pub(super) fn told(&self) -> MutexGuard<'_, Told> {
        self.0.lock().unwrap()
    }
}

impl Http for Fake {
    fn exchange(&self, request: &Request<'_>) -> Result<Response, Failure> {
        let mut told = self.told();
        let Some(path) = request.url.strip_prefix(SITE) else { return (told.other)(request) };
        match request.body {
            None => Ok(told.get(path)),
            Some(body) => told.post(request, path, body),
        }
    }
}

/// A collector, a device's clock, and the store of a client.
pub(super) struct World {
    pub(super) fake: Arc<Fake>,
    pub(super) hands: Arc<Hands>,
    pub(super) store: Store,
}

impl World {
    /// Return a world whose collector publishes one campaign file.
    pub(super) fn new(changes: &Value) -> Self {
        let told = Told {
            epochs: vec![file(None, changes)],
            signer: OPERATOR,
            max_age: 300,
            accepted: None,
            answers: VecDeque::new(),
            always: None,
            takes_before_answering: false,
            most_reports: usize::MAX,
            most_bytes: usize::MAX,
            down: false,
            date: None,
            now: i64::MAX,
            posts: Vec::new(),
            gets: Vec::new(),
            asked: Vec::new(),
            evaluate: Box::new(evaluated),
            other: Box::new(|_| Err(Failure::Unreachable)),
        };
        let (fake, hands) = (Arc::new(Fake(Mutex::new(told))), Arc::new(Hands(AtomicI64::new(NOON))));
        Self { fake, hands, store: Store::in_memory().unwrap() }
    }

    /// The collector.
    pub(super) fn told(&self) -> MutexGuard<'_, Told> {
        self.fake.told()
    }

    /// Let the collector refuse windows that begin after a moment, and say this time.
    pub(super) fn says(&self, now: i64, date: &str) {
        let mut told = self.told();
        (told.now, told.date) = (now, Some(date.to_owned()));
    }

    pub(super) fn hands_now(&self) -> i64 {
        self.hands.now()
    }

    /// Return a sender of the client, without delay.
    pub(super) fn sender(&self) -> Sender {
        self.sender_with(|_| {})
    }

    /// Return a sender with some options changed.
    pub(super) fn sender_with(&self, change: impl FnOnce(&mut SenderOptions)) -> Sender {
        let policy = policy(OPERATOR, &json!({}));
        let mut options = SenderOptions::with_http(SITE, policy, self.store.clone(), self.fake.clone());
        options.delay_seconds = 0;
        options.clock = self.hands.clone();
        change(&mut options);
        Sender::open(options).unwrap()
    }

    /// End all pauses, and let all that waits be due.
    pub(super) fn again_now(&self) {
        self.sql("UPDATE queue SET due = 0");
        self.sql("UPDATE facts SET fact = '1 0' WHERE name LIKE 'hold%'");
    }

    pub(super) fn sql(&self, statement: &str) {
        change(&self.store, "words", |tables| tables.sql(|sql, _| sql.execute(statement, []))).unwrap();
    }

    /// Let a round ask for the campaign file now.
    pub(super) fn refresh(one: &Sender) {
        let present = &one.deliverer.present;
        present.maker().unwrap();
        {
            let mut state = present.state.lock().unwrap();
            (state.due, state.drawn) = (0, Some(0));
        }
        present.refreshed(crate::sender::present::When::Sends).unwrap();
    }
}

/// Return what a sender's log says: what, reason, number of reports.
pub(super) fn told(one: &Sender) -> Vec<(String, String, u64)> {
    one.log().into_iter().map(|event| (format!("{:?}", event.what), event.reason, event.reports)).collect()
}
