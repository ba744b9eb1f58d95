//! The record outlives the process, and a damaged one is refused and never replaced.

use serde_json::{Value, json};

use super::*;

fn put(store: &Store, name: &str, record: &Value) {
    store.change(|records| records.put(name, record)).unwrap();
}

fn record(store: &Store) -> Value {
    store.change(|records| records.get("budget")).unwrap().unwrap()
}

#[test]
fn the_file_outlives_the_process_and_a_limit_that_is_lowered_holds_at_once() {
    let folder = Folder::new();
    let budget = |limit| Budget::new(Store::open(folder.file("store")).unwrap(), per_day(limit)).unwrap();
    assert_eq!(charge(&budget(2.0), &words(1.0), Reports, 2, NOON), 2);
    assert_eq!(charge(&budget(1.0), &words(1.0), Reports, 1, NOON), 0);
    assert_eq!(budget(1.0).spent_at(NOON).unwrap().left_today, 0.0);
    assert_eq!(charge(&budget(3.0), &words(1.0), Reports, 2, NOON), 1);
}

#[test]
fn a_record_has_units_in_decimal_digits() {
    let store = Store::in_memory().unwrap();
    let budget = Budget::new(store.clone(), lifetime(2.0)).unwrap();
    charge(&budget, &words(1.0 / 3.0), Reports, 7, NOON);
    charge(&budget, &words(1.0), Discovery, 1, NOON - DAY);
    let expected = json!({
        "format": 1,
        "days": [["2026-11-23", "1666666670"], ["2026-11-22", "0"]],
        "optedOut": false,
        "lines": {
            "words/discovery": { "reports": 0, "blank": 1, "epsilon": "0", "delta": "0" },
            "words/reports": { "reports": 5, "blank": 2, "epsilon": "1666666670", "delta": "0" },
        },
    });
    assert_eq!(record(&store), expected);
}

#[test]
fn a_damaged_record_is_refused_and_left_as_it_is() {
    let store = Store::in_memory().unwrap();
    let budget = Budget::new(store.clone(), UNLIMITED).unwrap();
    charge(&budget, &words(1.0), Reports, 1, NOON);
    let whole = record(&store);
    let with = |at: &str, value: Value| {
        let mut record = whole.clone();
        *record.pointer_mut(at).unwrap() = value;
        record
    };
    let mut more = whole.clone();
    more["more"] = json!(1);
    let line = |key: &str| with("/lines", json!({ key: whole["lines"]["words/reports"] }));
    let damaged = [
        json!({}),
        json!("no"),
        Value::Null,
        more,
        with("/format", json!(2)),
        with("/format", json!("1")),
        with("/optedOut", json!("no")),
        with("/days", json!({})),
        with("/days/0/0", json!("2026-02-30")),
        with("/days/0/1", json!("x")),
        with("/days/0/1", json!(1)),
        with("/days/0/1", json!("")),
        with("/days/0/1", json!("+1")),
        with("/days/0/1", json!("18446744073709551616")),
        with("/days", Value::Array(vec![whole["days"][0].clone(); 17])),
        with("/lines", json!([])),
        with("/lines/words~1reports", json!({})),
        with("/lines/words~1reports/epsilon", json!("-1")),
        with("/lines/words~1reports/delta", json!(0)),
        with("/lines/words~1reports/reports", json!(-1)),
        with("/lines/words~1reports/blank", json!(0.5)),
        line("words"),
        line("words/other"),
        line("/reports"),
    ];
    for record_put in damaged {
        put(&store, "budget", &record_put);
        let kinds = [
            budget.spent().err(),
            budget.opt_out().err(),
            budget.opt_in().err(),
            budget.opted_out().err(),
            try_charge(&budget, &words(1.0), Reports, 1, NOON).err(),
            store.change(super::super::require_opted_in).err(),
        ];
        for error in kinds.map(|error| error.unwrap_or_else(|| panic!("{record_put}"))) {
            assert_eq!(error.kind(), Kind::Format, "{record_put}");
            assert!(error.to_string().starts_with("the budget's record is damaged or of another version: restore it"));
        }
        assert_eq!(record(&store), record_put);
    }
    put(&store, "budget", &whole);
    assert_eq!(spent(&budget), 1.0);
}

#[test]
fn sums_of_a_record_never_overflow() {
    let store = Store::in_memory().unwrap();
    let most = u64::MAX.to_string();
    let line = json!({ "reports": (1u64 << 53) - 1, "blank": (1u64 << 53) - 1, "epsilon": most, "delta": most });
    let days = json!([["2026-11-23", most]]);
    let lines = json!({ "words/reports": line, "words/discovery": line });
    put(&store, "budget", &json!({ "format": 1, "days": days, "optedOut": false, "lines": lines }));
    let budget = Budget::new(store, UNLIMITED).unwrap();
    assert_eq!(charge(&budget, &words(1.0), Reports, u64::MAX, NOON), 0);
    assert_eq!(repeat(&budget, &remembering(1.0, 1), u64::MAX).unwrap(), u64::MAX);
    let spent = budget.spent_at(NOON).unwrap();
    assert_eq!((spent.left_today, spent.delta, spent.streams[1].reports), (f64::INFINITY, 1.0, (1 << 53) - 1));
    assert!(spent.words().iter().any(|sentence| sentence.contains("by any factor")));
}

#[test]
fn after_opting_out_nothing_is_made_and_opting_in_renews_nothing() {
    let folder = Folder::new();
    for store in [Store::in_memory().unwrap(), Store::open(folder.file("store")).unwrap()] {
        let [budget, other] = [0; 2].map(|_| Budget::new(store.clone(), lifetime(2.0)).unwrap());
        charge(&budget, &words(1.0), Reports, 1, NOON);
        budget.opt_out().unwrap();
        budget.opt_out().unwrap();
        assert!(other.opted_out().unwrap());
        let kinds = [
            try_charge(&other, &words(1.0), Reports, 1, NOON).unwrap_err().kind(),
            repeat(&other, &remembering(1.0, 1), 1).unwrap_err().kind(),
            store.change(super::super::require_opted_in).unwrap_err().kind(),
        ];
        assert_eq!(kinds, [Kind::OptedOut; 3]);
        other.opt_in().unwrap();
        assert!(!budget.opted_out().unwrap());
        store.change(super::super::require_opted_in).unwrap();
        assert_eq!(charge(&budget, &words(1.0), Reports, 9, NOON), 1);
    }
}
