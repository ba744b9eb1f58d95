//! What a store keeps to: in memory and in a file, among threads and processes, and with a broken disk.

#[cfg(unix)]
mod files;
#[cfg(target_os = "linux")]
pub(crate) mod killed;
pub(crate) mod support;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::thread;

use serde_json::{Value, json};

use super::{Records, Store};
use crate::errors::{Error, Kind, Result};
use support::{Folder, said, say, task};

/// The stores of both kinds.
fn stores(folder: &Folder) -> [Store; 2] {
    [Store::in_memory().unwrap(), Store::open(folder.file("store")).unwrap()]
}

/// Add one to a number, and to another record in the same step.
fn add(records: &Records<'_>) -> Result<()> {
    let number = records.get("number")?.and_then(|number| number.as_u64()).unwrap_or(0) + 1;
    records.put("number", &json!(number))?;
    records.put("same", &json!({ "number": number }))
}

/// Return the number, which both records must agree on.
fn number(store: &Store) -> u64 {
    let [one, same] = store.change(|records| Ok([records.get("number")?, records.get("same")?])).unwrap();
    let [one, same] = [one.unwrap_or(json!(0)), same.unwrap_or(json!({ "number": 0 }))];
    assert_eq!(one, same["number"]);
    one.as_u64().unwrap()
}

#[test]
fn keeps_every_kind_of_value() {
    let folder = Folder::new();
    for store in stores(&folder) {
        let value =
            json!({ "none": null, "yes": true, "n": -0.1, "text": "é\0\u{10ffff}", "list": [[], { "a": 1 }, ""] });
        store.change(|records| records.put("v", &json!(1)).and_then(|()| records.put("v", &value))).unwrap();
        let read = store.change(|records| Ok([records.get("v")?, records.get("V")?])).unwrap();
        assert_eq!(read, [Some(value), None]);
    }
    let read = Store::open(folder.file("store")).unwrap().change(|records| records.get("v")).unwrap();
    assert_eq!(read.unwrap()["n"], json!(-0.1));
}

#[test]
fn counts_and_removes_what_begins_alike() {
    let folder = Folder::new();
    for store in stores(&folder) {
        let names = ["a_b/1", "a_b/é", "a_b/", "a_b", "axb/1", "A_B/1", "a_b0", "a%/1", "ab/1"];
        let put = |records: &Records<'_>| names.iter().try_for_each(|name| records.put(name, &Value::Null));
        store.change(put).unwrap();
        let count = |prefix| store.change(|records| records.count(prefix)).unwrap();
        assert_eq!(["a_b/", "a%", "", "z"].map(count), [3, 1, 9, 0]);
        store.change(|records| records.remove("a_b/")).unwrap();
        store.change(|records| records.remove("a%")).unwrap();
        assert_eq!(["a_b/", "a_b", "axb", "A_B", "ab", ""].map(count), [0, 2, 1, 1, 1, 5]);
    }
}

#[test]
fn writes_nothing_of_a_step_that_fails_and_goes_on() {
    let folder = Folder::new();
    for store in stores(&folder) {
        store.change(add).unwrap();
        let fails = |records: &Records<'_>| add(records).and(Err::<(), _>(Error::usage("not this")));
        assert_eq!(store.change(fails).unwrap_err().kind(), Kind::Usage);
        let panics = |records: &Records<'_>| -> Result<()> { add(records).map(|()| panic!("in a step")) };
        assert!(catch_unwind(AssertUnwindSafe(|| store.change(panics))).is_err());
        assert_eq!(number(&store), 1);
        store.change(add).unwrap();
        assert_eq!(number(&store), 2);
    }
}

#[test]
fn threads_do_steps_one_after_the_other() {
    let folder = Folder::new();
    for store in stores(&folder) {
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..5).for_each(|_| store.change(add).unwrap()));
            }
        });
        assert_eq!(number(&store), 40);
    }
}

#[test]
fn threads_make_a_file_together() {
    for _ in 0..10 {
        let folder = Folder::new();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| Store::open(folder.file("store")).unwrap().change(add).unwrap());
            }
        });
        assert_eq!(number(&Store::open(folder.file("store")).unwrap()), 4);
    }
}

const CHILD: &str = concat!(module_path!(), "::process");

/// What a process does that another test begins.
#[test]
fn process() {
    let Some((task, folder)) = task() else { return };
    let add_once = |path: &Path| Store::open(path).and_then(|store| store.change(add));
    match task.as_str() {
        "add" => {
            let added = add_once(&folder.join("store"));
            say(&added.map_or_else(|error| format!("{:?}", error.kind()), |()| "added".to_owned()));
        }
        "add 20" => (0..20).for_each(|_| add_once(&folder.join("store")).unwrap()),
        "move" => {
            std::env::set_current_dir(&folder).unwrap();
            let store = Store::open("store").unwrap();
            std::env::set_current_dir("/").unwrap();
            store.change(add).unwrap();
            std::env::set_current_dir(&folder).unwrap();
            for name in ["file:store?mode=memory", "file:store?mode=memory", ":memory:", ":memory:"] {
                add_once(Path::new(name)).unwrap();
            }
        }
        _ => panic!("{task}"),
    }
}

#[test]
fn processes_do_steps_one_after_the_other() {
    let folder = Folder::new();
    let processes: Vec<_> = (0..4).map(|_| folder.process(CHILD, "add 20").spawn().unwrap()).collect();
    for mut process in processes {
        assert!(process.wait().unwrap().success());
    }
    assert_eq!(number(&Store::open(folder.file("store")).unwrap()), 80);
}
