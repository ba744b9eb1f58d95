//! The file of a store: its mode, its names, and what is no store.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use super::support::set_mode;
use super::{CHILD, Folder, add, number};
use crate::errors::Kind;
use crate::store::Store;

fn mode(path: &std::path::Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn only_its_user_reads_the_file_and_changes_the_folder() {
    let folder = Folder::new();
    let file = folder.file("store");
    let store = Store::open(&file).unwrap();
    store.change(add).unwrap();
    assert_eq!([mode(&file), mode(&folder.file("store-journal"))], [0o600; 2]);
    for wrong in [0o640, 0o604, 0o666] {
        set_mode(&file, wrong);
        let error = store.change(add).unwrap_err();
        assert_eq!(error.kind(), Kind::Usage);
        assert!(error.to_string().contains(&format!("mode {wrong:04o}, must be 0600: chmod 600 {}", file.display())));
    }
    set_mode(&file, 0o600);
    for wrong in [0o720, 0o702, 0o1777] {
        set_mode(&folder.file(""), wrong);
        let error = Store::open(&file).err().unwrap();
        assert_eq!(error.kind(), Kind::Usage);
        assert!(error.to_string().contains(&format!("mode {wrong:04o}, must be 0700: chmod 700 ")), "{error}");
    }
    // Also where a link leads, because the journal is there.
    let other = Folder::new();
    symlink(&file, other.file("link")).unwrap();
    assert_eq!(Store::open(other.file("link")).err().unwrap().kind(), Kind::Usage);
    set_mode(&folder.file(""), 0o755);
    assert_eq!(number(&Store::open(&file).unwrap()), 1);
}

#[test]
fn what_is_no_file_is_refused_and_hangs_nobody() {
    let folder = Folder::new();
    fs::create_dir(folder.file("folder")).unwrap();
    assert!(Command::new("mkfifo").args(["-m", "600"]).arg(folder.file("pipe")).status().unwrap().success());
    symlink(folder.file("nowhere"), folder.file("dangling")).unwrap();
    symlink(folder.file("loop"), folder.file("loop")).unwrap();
    fs::write(folder.file("file"), "").unwrap();
    let cases = [
        ("folder", Kind::Usage, "no regular file"),
        ("pipe", Kind::Usage, "no regular file"),
        ("dangling", Kind::Store, "cannot write store"),
        ("loop", Kind::Store, "cannot write store"),
        ("missing/store", Kind::Usage, "is missing: make it first"),
        ("file/store", Kind::Store, "Not a directory"),
        ("nul\0", Kind::Store, "nothing changed"),
    ];
    for (name, kind, said) in cases {
        let error = Store::open(folder.file(name)).err().unwrap();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(said), "{error}");
    }
    assert_eq!(Store::open("").err().unwrap().kind(), Kind::Usage);
}

#[test]
fn a_file_has_one_content_whatever_links_and_folders_name_it() {
    let folder = Folder::new();
    let store = Store::open(folder.file("store")).unwrap();
    symlink(folder.file("store"), folder.file("link")).unwrap();
    let other = Store::open(folder.file("link")).unwrap();
    for _ in 0..2 {
        store.change(add).unwrap();
        other.change(add).unwrap();
    }
    assert!(!folder.file("link-journal").exists());
    // Another process names it by its working directory, and then moves; and no name is a URI or memory.
    assert!(folder.process(CHILD, "move").status().unwrap().success());
    assert_eq!(number(&store), 5);
    for name in ["file:store?mode=memory", ":memory:"] {
        assert_eq!(number(&Store::open(folder.file(name)).unwrap()), 2);
    }
}

#[test]
fn a_damaged_file_is_refused_and_left_as_it_is() {
    let folder = Folder::new();
    let file = folder.file("store");
    let store = Store::open(&file).unwrap();
    store.change(add).unwrap();
    let whole = fs::read(&file).unwrap();
    let header = [&whole[..16], &[0xff; 84], &whole[100..]].concat();
    for damaged in [b"no database, but text".to_vec(), vec![0xff; 8192], whole[..1000].to_vec(), header] {
        fs::write(&file, &damaged).unwrap();
        let error = store.change(add).unwrap_err();
        assert_eq!(error.kind(), Kind::Format, "{error}");
        assert!(error.to_string().contains("is damaged: restore it; removing it would renew the budget"), "{error}");
        assert!(Store::open(&file).and_then(|store| store.change(add)).is_err());
        assert_eq!(fs::read(&file).unwrap(), damaged);
    }
    fs::write(&file, &whole).unwrap();
    assert_eq!(number(&store), 1);
}

#[test]
fn a_damaged_record_is_refused_and_left_as_it_is() {
    let folder = Folder::new();
    let store = Store::open(folder.file("store")).unwrap();
    for damaged in ["'{'", "''", "x'7b7d'", "cast(x'22ff22' AS TEXT)", "'NaN'"] {
        let put = format!("INSERT OR REPLACE INTO records VALUES ('number', {damaged})");
        store.change(|records| records.sql(|sql| sql.execute(&put, []))).unwrap();
        let written = |store: &Store| {
            let read = "SELECT hex(value) FROM records WHERE name = 'number'";
            store.change(|records| records.sql(|sql| sql.query_row(read, [], |row| row.get::<_, String>(0)))).unwrap()
        };
        let before = written(&store);
        let error = store.change(add).unwrap_err();
        assert_eq!(error.kind(), Kind::Format, "{damaged}: {error}");
        assert_eq!(written(&store), before);
    }
}
