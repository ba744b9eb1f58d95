//! Processes charge one budget together, and one that is killed has charged what it said.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use super::*;

const CHILD: &str = concat!(module_path!(), "::process");

fn shared(folder: &Folder, limits: Limits) -> Budget {
    Budget::new(Store::open(folder.file("store")).unwrap(), limits).unwrap()
}

/// What a process does that another test begins.
#[test]
fn process() {
    let Some((task, folder)) = task() else { return };
    let budget = |limits| Budget::new(Store::open(folder.join("store")).unwrap(), limits).unwrap();
    match task.as_str() {
        "charge 10 of 20" => {
            let budget = budget(lifetime(20.0));
            let fit: u64 = (0..10).map(|_| charge(&budget, &words(1.0), Reports, 1, NOON)).sum();
            say(&fit.to_string());
        }
        "charge until killed" => {
            let budget = budget(UNLIMITED);
            loop {
                charge(&budget, &words(1.0), Reports, 1, NOON);
                say("charged");
            }
        }
        _ => panic!("{task}"),
    }
}

#[test]
fn processes_spend_one_file_together() {
    let folder = Folder::new();
    let begin = |_| folder.process(CHILD, "charge 10 of 20").stdout(Stdio::piped()).spawn().unwrap();
    let processes: Vec<_> = (0..4).map(begin).collect();
    let fit = processes.into_iter().map(|process| said(&process.wait_with_output().unwrap()));
    let fit: Vec<u64> = fit.map(|said| said[0].parse().unwrap()).collect();
    assert_eq!((fit.len(), fit.iter().sum::<u64>()), (4, 20));
    let spent = shared(&folder, UNLIMITED).spent_at(NOON).unwrap();
    let streams: Vec<_> = spent.streams.iter().map(|each| (each.reports, each.blank, each.epsilon)).collect();
    assert_eq!(streams, [(20, 20, 20.0)]);
}

/// Where the process is killed is by chance here; `tests/store/killed.rs` kills at every call.
#[test]
fn a_process_killed_at_any_point_has_charged_what_left_it() {
    let folder = Folder::new();
    let budget = shared(&folder, UNLIMITED);
    for round in 0..12 {
        let before = spent(&budget);
        let mut process = folder.process(CHILD, "charge until killed").stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let is_charge = |line: std::io::Result<String>| line.is_ok_and(|line| line == "said charged");
        let mut told = 0;
        while told <= round {
            told += u32::from(is_charge(lines.next().unwrap()));
        }
        process.kill().unwrap();
        process.wait().unwrap();
        told += lines.map(|line| u32::from(is_charge(line))).sum::<u32>();
        let charged = spent(&budget) - before;
        assert!(charged == f64::from(told) || charged == f64::from(told + 1), "{charged} of {told}");
    }
}

#[test]
fn a_charge_that_cannot_be_written_lets_nothing_out() {
    let folder = Folder::new();
    let budget = shared(&folder, UNLIMITED);
    charge(&budget, &words(1.0), Reports, 1, NOON);
    std::fs::remove_file(folder.file("store")).unwrap();
    std::fs::create_dir(folder.file("store")).unwrap();
    for stream in [Reports, Discovery] {
        let error = try_charge(&budget, &words(1.0), stream, 1, NOON).unwrap_err();
        assert!(error.to_string().contains("is no regular file"), "{error}");
    }
}
