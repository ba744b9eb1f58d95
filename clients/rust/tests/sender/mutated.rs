//! Mutated answers, signed terms and stores: a sender neither panics nor tells a long text of another party.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Transaction;
use rusqlite::types::Value as Sql;
use serde_json::json;

use super::fake_collector::*;
use super::fake_issuer::{ISSUER, Issuing, section};
use super::queue::Folder;
use crate::campaigns::campaign::Campaign;
use crate::errors::{Error, Kind};
use crate::hostile::{Draws, MARK, number, require_fit, require_short};
use crate::sender::http::{Failure, Http, Request, Response};
use crate::sender::issuer::Issuer;
use crate::sender::sending::Sender;
use crate::sender::site::is_header;
use crate::store::Store;
use crate::vectors::support::vectors_of_any_text;

/// All that may stop a report of these tests.
const KINDS: [Kind; 9] = [
    Kind::Format,
    Kind::Store,
    Kind::Untrusted,
    Kind::NotYet,
    Kind::NoValidKey,
    Kind::NotAsked,
    Kind::OverCap,
    Kind::QueueFull,
    Kind::BudgetSpent,
];
const HEADERS: [(&str, &str); 8] = [
    ("Retry-After", "99999999999999999999"),
    ("Date", "Tue, 31 Dec 8999 23:59:59 GMT"),
    ("Date", "Thu, 01 Jan 1970 00:00:00 GMT"),
    ("Cache-Control", "max-age=999999999"),
    ("Content-Type", "application/problem+json"),
    ("Content-Type", "application/octet-stream"),
    ("Campaign-Signature", ":e30=:"),
    ("Age", "1"),
];

/// The fake collector, evaluator and issuer, of whose answers some are mutated; and the first malformed request.
struct Mutating {
    fake: Arc<Fake>,
    draws: Option<Mutex<Draws>>,
    malformed: Mutex<Option<String>>,
}

impl Mutating {
    fn new(world: &World, draws: Option<Draws>) -> Arc<Self> {
        Arc::new(Self { fake: world.fake.clone(), draws: draws.map(Mutex::new), malformed: Mutex::default() })
    }
}

impl Http for Mutating {
    fn exchange(&self, request: &Request<'_>) -> Result<Response, Failure> {
        let is_graphic = request.url.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_graphic || !request.headers.iter().all(|(_, value)| is_header(value)) {
            *self.malformed.lock().unwrap() = Some(request.url.clone());
        }
        let mut answer = self.fake.exchange(request)?;
        let Some(draws) = &self.draws else { return Ok(answer) };
        let mut draws = draws.lock().unwrap_or_else(PoisonError::into_inner);
        match draws.below(8) {
            0 | 1 => {
                answer.body = draws.mutated(&[answer.body, br#"{"type": "urn:hushcount:problem:too_long"}"#.to_vec()]);
            }
            2 => answer.headers.insert(0, {
                let (name, value) = *draws.one(&HEADERS);
                (name.to_owned(), value.to_owned())
            }),
            3 if !answer.headers.is_empty() => {
                let place = draws.below(answer.headers.len());
                let header = &mut answer.headers[place].1;
                *header = String::from_utf8_lossy(&draws.mutated(&[header.clone().into_bytes()])).into_owned();
            }
            4 => answer.status = *draws.one(&[0, 200, 202, 302, 404, 409, 413, 425, 429, 503, u16::MAX]),
            _ => {}
        }
        Ok(answer)
    }
}

/// Require that an error is none of a panic.
fn require_caught(error: &Error, kinds: &[Kind]) {
    assert!(!error.to_string().contains("report this fault"), "a panic of the sender");
    require_fit(error, kinds);
}

/// Report and deliver for two days, and read all that an app may; return how many reports were sent.
fn used(world: &World, sender: &Sender) -> u64 {
    let mut sent = 0;
    for early in [true, false, true] {
        for value in ["one", "a new value"] {
            if let Err(error) = sender.try_report(value, &[("platform", "linux".into())]) {
                require_caught(&error, &KINDS);
            }
        }
        match sender.deliver(early) {
            Ok(delivery) => {
                sent += delivery.sent;
                delivery.dropped.keys().chain(delivery.blank.keys()).for_each(|reason| require_short(reason));
            }
            Err(error) => require_caught(&error, &[Kind::Format, Kind::Store]),
        }
        if let Err(error) = sender.deliverer.time_to_wait(world.hands_now()) {
            require_caught(&error, &[Kind::Format, Kind::Store]);
        }
        world.hands.pass(17 * HOUR);
    }
    match sender.spent() {
        Ok(cost) => cost.words().iter().for_each(|sentence| assert!(!sentence.is_empty())),
        Err(error) => require_caught(&error, &[Kind::Format, Kind::Store]),
    }
    sender.log().iter().for_each(|event| require_short(&event.reason));
    sent
}

/// Return a world with an evaluator, whose clients are a sample and remember answers, and sometimes have passes.
fn world(draws: &mut Draws) -> World {
    let mut changes = oblivious();
    changes["sample"] = json!({"layer": "a", "buckets": [[0, 10_000]]});
    changes["memory"] = json!(true);
    // Seldom, because a signature takes long.
    if draws.below(10) == 0 {
        changes["passes"] = section(2);
    }
    let world = World::new(&changes);
    let mut issuing = Issuing { parties: 2, ..Issuing::default() };
    world.told().other = Box::new(move |request| issuing.exchange(request));
    world
}

/// Return a sender that keeps plain values.
fn sender_by(world: &World, http: Arc<Mutating>) -> Sender {
    world.sender_with(|options| {
        let authorization = Arc::new(|| "Bearer account".to_owned());
        options.issuer = Some(Issuer { site: ISSUER.into(), authorization });
        options.policy = policy(OPERATOR, &json!({"layers": ["a"]}));
        options.keep_values = true;
        options.http = http;
    })
}

/// Use a sender whose store is changed, and require that its requests are well formed; return how many were sent.
fn used_well(world: &World) -> u64 {
    let http = Mutating::new(world, None);
    let sent = used(world, &sender_by(world, http.clone()));
    assert_eq!(*http.malformed.lock().unwrap(), None);
    sent
}

#[test]
fn mutated_answers_stop_or_delay_reports() {
    let (mut sent, mut draws) = (0, Draws::new("answers to a sender"));
    for _ in 0..number(30) {
        let world = world(&mut draws);
        let http = Mutating::new(&world, Some(Draws::new(&draws.word().to_string())));
        sent += used(&world, &sender_by(&world, http));
    }
    assert!(sent > 0);
}

#[test]
fn an_operator_with_mutated_terms_gets_reports_or_none() {
    let (mut seeds, mut draws) = (vec![file(None, &json!({})), file(None, &oblivious())], Draws::new("signed terms"));
    for entry in vectors_of_any_text("campaigns")["accept"].as_array_mut().unwrap() {
        let file = entry["file"].as_object_mut().unwrap();
        file.insert("id".to_owned(), json!("words"));
        file.remove("sample");
        seeds.push(serde_json::to_vec(file).unwrap());
    }
    let (mut sent, mut left) = (0, number(40));
    while left > 0 {
        let file = draws.mutated(&seeds);
        let Ok(campaign) = Campaign::parse(&file, &[]) else { continue };
        if campaign.streams().iter().any(|&stream| campaign.sealed_bytes(stream) > 1 << 14) {
            continue;
        }
        left -= 1;
        let world = World::new(&json!({}));
        world.told().epochs = vec![file];
        let sender = world.sender_with(|options| {
            let (most, axes) = (1e300, json!(["platform", "version", "region"]));
            options.policy = policy(
                OPERATOR,
                &json!({"max_epsilon": most, "max_discovery_epsilon": most, "max_noise_epsilon": most, "axes": axes,
                    "max_delta": 0.5, "public_axes": axes, "public_strata": 4096}),
            );
            options.window_seconds = 1;
        });
        sent += used(&world, &sender);
    }
    assert!(sent > 0);
}

/// Return a value of any type and size for a column, or a text like the old one.
fn cell(draws: &mut Draws, old: Sql) -> Sql {
    let numbers = [i64::MIN, -1, 0, 1, 1 << 31, 1 << 53, i64::MAX];
    match (draws.below(8), old) {
        (0, _) => Sql::Null,
        (1, _) => Sql::Text(MARK.to_owned()),
        (2, _) => Sql::Blob(vec![0xff; draws.below(40)]),
        (3, _) => Sql::Real(1e300),
        (_, Sql::Text(text)) => Sql::Text(String::from_utf8_lossy(&draws.mutated(&[text.into_bytes()])).into_owned()),
        (_, Sql::Blob(bytes)) => Sql::Blob(draws.mutated(&[bytes])),
        _ => Sql::Integer(*draws.one(&numbers)),
    }
}

/// Change one cell of a row of a store, whatever its table is.
fn change_cell(store: &Store, draws: &mut Draws) {
    let texts = |query: &str| -> Vec<String> {
        let read = |sql: &Transaction<'_>| sql.prepare(query)?.query_map([], |row| row.get(0))?.collect();
        store.change(|records| records.sql(read)).unwrap()
    };
    let tables = texts("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'");
    let table = draws.one(&tables);
    let columns = texts(&format!("SELECT name FROM pragma_table_info('{table}')"));
    let rows = texts(&format!("SELECT cast(rowid AS TEXT) FROM {table}"));
    if rows.is_empty() {
        return;
    }
    let (column, row) = (draws.one(&columns), draws.one(&rows));
    let read = format!("SELECT {column} FROM {table} WHERE rowid = {row}");
    let write = format!("UPDATE OR IGNORE {table} SET {column} = ? WHERE rowid = {row}");
    // What a constraint forbids is in no store.
    let _ = store.change(|records| {
        records.sql(|sql| {
            let old = sql.query_row(&read, [], |row| row.get(0))?;
            sql.execute(&write, [cell(draws, old)])
        })
    });
}

#[test]
fn a_store_with_a_changed_cell_stops_or_delays_reports() {
    let (mut sent, mut draws) = (0, Draws::new("cells"));
    for _ in 0..number(40) {
        let world = world(&mut draws);
        let first = sender_by(&world, Mutating::new(&world, None));
        first.try_report("one", &[]).unwrap();
        first.deliver(true).unwrap();
        world.told().down = true;
        first.try_report("a new value", &[]).unwrap();
        world.told().down = false;
        for _ in 0..=draws.below(3) {
            change_cell(&world.store, &mut draws);
        }
        sent += used_well(&world);
    }
    assert!(sent > 0);
}

#[test]
fn a_damaged_file_of_a_store_is_refused_or_used() {
    let folder = Folder::new("damaged");
    let (path, mut draws) = (folder.path("store.sqlite"), Draws::new("files of stores"));
    let whole = {
        let world = World { store: Store::open(&path).unwrap(), ..world(&mut draws) };
        sender_by(&world, Mutating::new(&world, None)).try_report("one", &[]).unwrap();
        fs::read(&path).unwrap()
    };
    let mut outcomes = BTreeSet::new();
    for _ in 0..number(15) {
        let mut damaged = whole.clone();
        for _ in 0..=draws.below(20) {
            // The begin of a page says most of it.
            let (page, most) = (4096 * draws.below(whole.len() / 4096), *draws.one(&[8, 100, 4096]));
            damaged[page + draws.below(most)] = draws.word() as u8;
        }
        let _ = fs::remove_file(folder.path("store.sqlite-journal"));
        fs::write(&path, damaged).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        match Store::open(&path) {
            Ok(store) => {
                used_well(&World { store, ..world(&mut draws) });
                outcomes.insert("used");
            }
            Err(error) => {
                require_caught(&error, &[Kind::Format, Kind::Store]);
                outcomes.insert("refused");
            }
        }
    }
    assert_eq!(outcomes.len(), 2, "{outcomes:?}");
}

#[test]
fn rows_that_no_change_reaches_are_not_sent_for_ever() {
    let folder = Folder::new("unreached");
    let path = folder.path("store.sqlite");
    let world = World { store: Store::open(&path).unwrap(), ..World::new(&json!({})) };
    let sender = world.sender();
    for _ in 0..2 {
        sender.try_report("one", &[]).unwrap();
    }
    // The rows of the page of the queue are not in the order of their numbers any more.
    let root = "SELECT rootpage FROM sqlite_schema WHERE name = 'queue'";
    let root: usize =
        world.store.change(|records| records.sql(|sql| sql.query_row(root, [], |row| row.get(0)))).unwrap();
    let mut file = fs::read(&path).unwrap();
    let page = &mut file[4096 * (root - 1)..4096 * root];
    assert_eq!((page[0], &page[3..5]), (13, &[0, 4][..]), "a leaf with 4 cells");
    page[8..16].rotate_left(2);
    fs::write(&path, file).unwrap();
    assert_eq!(sender.deliver(true).unwrap_err().kind(), Kind::Format);
    assert!(world.told().posts.len() < 4);
}

#[test]
fn counts_beyond_all_numbers_are_over_the_cap() {
    let world = World::new(&json!({}));
    let sender = world.sender();
    sender.try_report("one", &[]).unwrap();
    let counts = vec![json!([null, [(1u64 << 53) - 1, 0]]); 2300];
    let fact = json!({"answered": 0, "ahead": 0, "windows": counts}).to_string();
    sender.deliverer.common.queue.change(|tables| tables.note("arrivals", &fact)).unwrap();
    assert_eq!(sender.try_report("one", &[]).unwrap_err().kind(), Kind::OverCap);
}
