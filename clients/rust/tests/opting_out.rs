//! What an app sees of a budget: it opts out for all processes, and reads what was spent.

use std::fs;
use std::sync::Arc;

use hushcount::{Budget, Clock, Kind, Limits, Store, WhenSpent};

#[path = "store/support.rs"]
mod support;
use support::{Folder, said, say, task};

const CHILD: &str = "opting_out::process";

struct At(i64);

impl Clock for At {
    fn now(&self) -> i64 {
        self.0
    }
}

fn budget(folder: &std::path::Path) -> Budget {
    let limits = Limits { lifetime: 2.5, when_spent: WhenSpent::Nothing, ..Limits::default() };
    let clock = At(1_795_435_200_000);
    Budget::new(Store::open(folder.join("store")).unwrap(), limits).unwrap().with_clock(Arc::new(clock))
}

/// What a process does that another test begins.
#[test]
fn process() {
    let Some((task, folder)) = task() else { return };
    let budget = budget(&folder);
    match task.as_str() {
        "opt out" => budget.opt_out().unwrap(),
        "opt in" => budget.opt_in().unwrap(),
        _ => {}
    }
    say(&budget.opted_out().unwrap().to_string());
}

#[test]
fn opting_out_holds_in_all_processes() {
    let folder = Folder::new();
    let budget = budget(&folder.file(""));
    let told = |task| said(&folder.process(CHILD, task).output().unwrap());
    assert_eq!(told("look"), ["false"]);
    assert_eq!(told("opt out"), ["true"]);
    assert!(budget.opted_out().unwrap() && budget.clone().opted_out().unwrap());
    let expected = [
        "You opted out: this device makes no report until you opt in again.",
        "No report of this device has told anything of you yet.",
        "On 2026-11-23 (UTC) epsilon 0 was spent; no limit is set for a day.",
        "Altogether epsilon 0 of 2.5 was spent, and 2.5 is left.",
        "When too little is left for a report, no report that tells more of you is made.",
    ];
    assert_eq!(budget.spent().unwrap().words(), expected);
    assert_eq!(told("opt in"), ["false"]);
    assert!(!budget.spent().unwrap().opted_out);
}

#[test]
fn an_app_learns_why_a_budget_cannot_be_used() {
    let folder = Folder::new();
    let budget = budget(&folder.file(""));
    fs::write(folder.file("store"), "no database, but text").unwrap();
    for error in [budget.spent().err(), budget.opted_out().err(), budget.opt_out().err()] {
        assert_eq!(error.unwrap().kind(), Kind::Format);
    }
}

#[test]
fn threads_may_share_it() {
    fn shared<Type: Send + Sync + Clone>() {}
    shared::<Budget>();
    shared::<Store>();
}
