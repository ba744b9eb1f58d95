//! A process is killed, or its disk is full or broken, at every single call on the store's files (`die.c`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::{CHILD, Folder, add, number, said};
use crate::store::Store;

/// Compile the library that is loaded into processes.
pub(crate) fn compiled(folder: &Folder) -> PathBuf {
    let (source, library) = (Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/store/die.c"), folder.file("die.so"));
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source);
    assert!(cc.status().unwrap().success());
    library
}

/// Let a process add one, which dies at a call.
fn run(library: &Path, folder: &Folder, how: &str, at: &str) -> Output {
    let mut process = folder.process(CHILD, "add");
    process.env("LD_PRELOAD", library).env("DIE_HOW", how).env("DIE_AT", at).env("DIE_COUNT", folder.file("count"));
    process.output().unwrap()
}

/// Return a folder, with a store that has the number 1 or with none.
fn folder_of(made: bool) -> (Folder, u64) {
    let folder = Folder::new();
    if made {
        Store::open(folder.file("store")).unwrap().change(add).unwrap();
    }
    (folder, u64::from(made))
}

/// Do it at every call; return how often the number was written although the process did not say so.
fn everywhere(how: &str, made: bool) -> usize {
    let tools = Folder::new();
    let library = compiled(&tools);
    let (folder, before) = folder_of(made);
    assert_eq!(said(&run(&library, &folder, how, "-1")), ["added"]);
    assert_eq!(number(&Store::open(folder.file("store")).unwrap()), before + 1);
    let calls: usize = fs::read_to_string(folder.file("count")).unwrap().parse().unwrap();
    assert!((15..200).contains(&calls), "{calls} calls");
    let mut unsaid = 0;
    for at in 0..calls {
        let (folder, before) = folder_of(made);
        let output = run(&library, &folder, how, &at.to_string());
        let said = said(&output);
        let place = format!("{how} at call {at} of {calls}, {said:?}");
        let is_killed = how == "kill" || how == "torn";
        assert_eq!(output.status.success(), !is_killed, "{place}");
        assert!(said.iter().all(|what| what == "added" || what == "Store"), "{place}");
        assert_eq!(said.len(), usize::from(!is_killed), "{place}");
        // No file is damaged or open to others, and the next process goes on.
        let store = Store::open(folder.file("store")).unwrap();
        let written = number(&store) - before;
        assert!(written <= 1, "{place}");
        if said == ["added"] {
            assert_eq!(written, 1, "{place}");
        } else if written == 1 {
            unsaid += 1;
        }
        store.change(add).unwrap();
        assert_eq!(number(&store), before + written + 1, "{place}");
    }
    unsaid
}

#[test]
fn killed_at_any_call_it_has_written_all_or_nothing() {
    for how in ["kill", "torn"] {
        for made in [false, true] {
            // The process ends after the last write, and before it can say so.
            assert!(everywhere(how, made) > 0);
        }
    }
}

#[test]
fn with_a_full_disk_nothing_is_written() {
    for made in [false, true] {
        assert_eq!(everywhere("full", made), 0);
    }
}

#[test]
fn with_a_disk_that_fails_once_it_never_says_more_than_is_written() {
    for made in [false, true] {
        // The last sync, after the journal is truncated, is too late to take the change back.
        assert!(everywhere("broken", made) <= 1);
    }
}
