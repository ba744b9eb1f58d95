//! A client's memory: what is repeated, and what is not (tests/hushcount/test_client_memory.py).

use std::collections::BTreeSet;

use hushcount::{Client, Kind, Store};
use serde_json::json;

use super::support::*;

/// Open a client that remembers this number of values; two answers are alike with probability below 1e-6.
const MOST_ANSWERS: u64 = 100_000;

/// Return the SQL that fills a memory with so many answers of another epoch.
fn filled(answers: u64) -> String {
    format!(
        "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {answers}) \
         INSERT INTO records SELECT 'answer/of another epoch ' || n, '\"00\"' FROM n"
    )
}

fn client_of(values: u64, epoch: u64, store: &Store) -> Client {
    let seed = "5eed".repeat(16);
    let mechanism = json!({"name": "rappor", "epsilon": 3.0, "parameters": {"k": 64, "m": 128, "seed": seed}});
    let changes = json!({"memory_values": values, "epoch": epoch, "mechanism": mechanism, "shuffle": cap(1000)});
    let mut options = options(&file("memory", &changes));
    options.store = Some(store.clone());
    Client::open(options).unwrap()
}

fn plain(client: &Client, value: &str) -> Vec<u8> {
    answer(&client.report(value).unwrap())
}

#[test]
fn an_answer_is_repeated_under_a_fresh_seal() {
    let client = client_of(3, 1, &Store::in_memory().unwrap());
    let sealed: BTreeSet<_> = (0..50).map(|_| client.report("one").unwrap()).collect();
    assert_eq!(sealed.len(), 50);
    assert_eq!(sealed.iter().map(|report| answer(report)).collect::<BTreeSet<_>>().len(), 1);
}

#[test]
fn each_value_has_an_answer_of_its_own_whatever_the_order() {
    let folder = Folder::new();
    let client = client_of(20, 1, &folder.store());
    let first = ["one", "two", "three"].map(|value| plain(&client, value));
    for _ in 0..10 {
        assert_eq!(["one", "two", "three"].map(|value| plain(&client, value)), first);
    }
    assert_eq!(folder.answers(), 3);
    assert_eq!(first.iter().collect::<BTreeSet<_>>().len(), 3);
    assert_eq!([plain(&client, "two"), plain(&client, "one")], [first[1].clone(), first[0].clone()]);
}

#[test]
fn a_value_beyond_those_of_the_campaign_is_answered_as_the_last_of_them() {
    for values in [1, 3] {
        let folder = Folder::new();
        let client = client_of(values, 1, &folder.store());
        let asked = &["one", "two", "three"][..usize::try_from(values).unwrap()];
        let first: Vec<_> = asked.iter().map(|value| plain(&client, value)).collect();
        for _ in 0..5 {
            for value in ["größer", "unlisted", ""] {
                assert_eq!(Some(&plain(&client, value)), first.last());
            }
        }
        assert_eq!(asked.iter().map(|value| plain(&client, value)).collect::<Vec<_>>(), first);
        assert_eq!(folder.answers(), values);
    }
}

#[test]
fn client_and_campaign_agree_on_whether_clients_remember() {
    let error = Client::open(options(&file("memory", &json!({})))).unwrap_err();
    assert_eq!(error.kind(), Kind::Usage);
    assert!(error.to_string().contains("remember their answers: give a store"));
}

#[test]
fn all_values_outside_the_dictionary_have_one_answer() {
    let folder = Folder::new();
    let client = client_of(20, 1, &folder.store());
    let answers: BTreeSet<_> = (0..50).map(|number| plain(&client, &format!("unlisted {number}"))).collect();
    assert_eq!((answers.len(), folder.answers()), (1, 1));
}

#[test]
fn another_epoch_is_answered_afresh_and_going_back_renews_nothing() {
    let folder = Folder::new();
    let store = folder.store();
    let [first, second] = [1, 1000].map(|epoch| client_of(1, epoch, &store));
    let before = plain(&first, "one");
    let once = first.spent().unwrap().epsilon;
    // Answers of 128 bits and 64 rows are alike with probability below 1e-6.
    assert_ne!(plain(&second, "one"), before);
    let twice = first.spent().unwrap().epsilon;
    assert!((twice - 2.0 * once).abs() < 1e-9);
    for _ in 0..20 {
        assert_eq!(plain(&first, "one"), before);
    }
    assert_eq!(first.spent().unwrap().epsilon.to_bits(), twice.to_bits());
    assert_eq!(folder.answers(), 2);
}

#[test]
fn a_full_memory_silences_a_client_for_every_value_or_for_none() {
    // At every fill level: who fell silent over some values only would tell which ones it has answered before.
    for free in 0..4 {
        let folder = Folder::new();
        let client = client_of(4, 1, &folder.store());
        folder.sql(&filled(MOST_ANSWERS - free));
        if free > 1 {
            plain(&client, "one");
        }
        let asked = ["one", "two", "three", "größer", "unlisted", ""];
        assert_eq!(asked.map(|value| client.report(value).is_err()), [free == 0; 6]);
        assert_eq!(folder.answers(), MOST_ANSWERS);
    }
}

#[test]
fn a_memory_that_cannot_be_written_answers_a_further_value_as_the_last() {
    let folder = Folder::new();
    let store = folder.store();
    let client = client_of(4, 1, &store);
    let first = ["one", "two"].map(|value| plain(&client, value));
    folder.sql(
        "CREATE TRIGGER full BEFORE INSERT ON records \
         WHEN NEW.name LIKE 'answer/%' BEGIN SELECT RAISE(ABORT, 'busy'); END",
    );
    let wanted = [&first[0], &first[1], &first[1], &first[1]].map(Clone::clone);
    assert_eq!(["one", "two", "three", "unlisted"].map(|value| plain(&client, value)), wanted);
    let another = client_of(4, 2, &store);
    assert!(another.report("one").is_err() && another.report("three").is_err());
    folder.sql("DROP TRIGGER full");
    assert!(!first.contains(&plain(&client, "three")));
}

#[test]
fn of_many_threads_all_send_the_first_answer() {
    let folder = Folder::new();
    for store in [Store::in_memory().unwrap(), folder.store()] {
        let client = client_of(20, 1, &store);
        let sent: BTreeSet<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| plain(&client, "two"))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(sent.len(), 1);
    }
}

#[test]
fn the_file_outlives_the_client_and_names_no_value() {
    let values = ["one", "two", "unlisted value"];
    let folders = [Folder::new(), Folder::new()];
    let mut names = Vec::new();
    for folder in &folders {
        let sent = values.map(|value| plain(&client_of(20, 1, &folder.store()), value));
        assert_eq!(values.map(|value| plain(&client_of(20, 1, &folder.store()), value)), sent);
        let content = std::fs::read(folder.path()).unwrap();
        assert!(!content.windows(8).any(|part| part == b"unlisted"));
        // The salted name of an item is after its salt, 32 digits each.
        let query = "SELECT substr(value, 34, 32) FROM records WHERE name LIKE 'answer/%'";
        let file = rusqlite::Connection::open(folder.path()).unwrap();
        let mut statement = file.prepare(query).unwrap();
        let rows = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
        names.extend(rows.map(Result::unwrap));
    }
    assert_eq!((names.len(), names.iter().collect::<BTreeSet<_>>().len()), (6, 6));
}

#[test]
fn a_damaged_answer_is_refused_and_left_as_it_is() {
    let folder = Folder::new();
    let client = client_of(1, 1, &folder.store());
    plain(&client, "one");
    for damaged in ["5", "\"\"", "\"00\"", "\"zz\"", "not JSON"] {
        folder.sql(&format!("UPDATE records SET value = '{damaged}' WHERE name LIKE 'answer/%'"));
        assert!(client.report("one").is_err(), "{damaged}");
        assert_eq!(folder.answers(), 1);
    }
}

#[test]
fn a_full_memory_charges_nothing() {
    let folder = Folder::new();
    let client = client_of(4, 1, &folder.store());
    folder.sql(&filled(MOST_ANSWERS));
    assert_eq!(client.report("one").unwrap_err().kind(), Kind::Store);
    assert_eq!((client.spent().unwrap().epsilon, folder.answers()), (0.0, MOST_ANSWERS));
}
