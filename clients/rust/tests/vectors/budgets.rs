//! What reports cost, what limits are in units, and charges one after another.

use serde_json::Value;

use super::support::{campaign, entries, require_refused, text};
use crate::budget::costs::Cost;
use crate::budget::ledger::Charged;
use crate::budget::units::limit_units;
use crate::budget::{Budget, Limits, Request, WhenSpent};
use crate::campaigns::campaign::Stream;
use crate::errors::Result;
use crate::formats::times::parse_time;
use crate::store::Store;

const SAID: &[(&str, &[&str])] = &[
    ("limit_out_of_range", &["lifetime is ", "must be an epsilon in 0..1,000,000, or infinity"]),
    ("budget_spent", &["the budget does not allow "]),
];

fn stream_of(entry: &Value) -> Stream {
    if text(entry, "stream") == "reports" { Stream::Reports } else { Stream::Discovery }
}

fn limits(entry: &Value, when_spent: WhenSpent) -> Limits {
    let limit = |field: &str| entry[field].as_f64().unwrap_or(f64::INFINITY);
    Limits { per_day: limit("per_day"), lifetime: limit("lifetime"), when_spent }
}

/// Charge one after the other; return for each charge how many of its reports may depend on values, and all charges.
fn charged_in_turn(charges: &[Value], limits: Limits) -> Result<(Vec<u64>, Charged)> {
    let store = Store::in_memory()?;
    let budget = Budget::new(store.clone(), limits)?;
    let telling = charges.iter().map(|charge| {
        let campaign = campaign(text(charge, "campaign"));
        let number = charge["number"].as_u64().unwrap();
        let request = Request { campaign: &campaign, stream: stream_of(charge), number, due: None, repeats: false };
        Ok(budget.charge(&[request], None, parse_time(text(charge, "at")).unwrap())?[0])
    });
    Ok((telling.collect::<Result<_>>()?, store.change(Charged::read)?))
}

fn accepted(rule: &str) -> Vec<Value> {
    let all = entries("budgets", "accept");
    let of_rule: Vec<_> = all.iter().filter(|entry| entry["rule"] == rule).cloned().collect();
    assert!(!of_rule.is_empty());
    of_rule
}

#[test]
fn every_entry_has_a_rule_that_is_tested() {
    let tested = ["cost", "limit", "charge"].map(|rule| accepted(rule).len());
    assert_eq!(tested.iter().sum::<usize>(), entries("budgets", "accept").len());
}

#[test]
fn costs_are_exact() {
    for entry in accepted("cost") {
        let cost = Cost::of(&campaign(text(&entry, "campaign")), stream_of(&entry)).unwrap();
        assert_eq!(cost.epsilon.to_string(), entry["epsilon"], "{entry}");
        assert_eq!(cost.delta.to_string(), entry["delta"], "{entry}");
        assert_eq!(cost.lasting, entry["lasting"], "{entry}");
    }
}

#[test]
fn limits_are_exact() {
    for entry in accepted("limit") {
        assert_eq!(limit_units(entry["value"].as_f64().unwrap()).to_string(), entry["billionths"], "{entry}");
    }
}

#[test]
fn as_many_reports_are_charged_as_fit() {
    for entry in accepted("charge") {
        let charges = entry["charges"].as_array().unwrap();
        let (telling, all) = charged_in_turn(charges, limits(&entry, WhenSpent::Other)).unwrap();
        let told: Vec<_> = charges.iter().map(|charge| charge["telling"].as_u64().unwrap()).collect();
        assert_eq!(telling, told, "{entry}");
        let delta: u64 = all.lines.values().map(|line| line.delta).sum();
        let sums = [all.days.last().unwrap().1, all.total(), delta].map(|sum| sum.to_string());
        assert_eq!(sums.each_ref().map(String::as_str), ["today", "epsilon", "delta"].map(|field| text(&entry, field)));
    }
}

#[test]
fn what_does_not_fit_and_what_is_no_limit_is_refused() {
    let all = entries("budgets", "refuse");
    assert!(!all.is_empty());
    for entry in all {
        if entry["rule"] == "limit" {
            let lifetime = entry["value"].as_f64().unwrap();
            let made = Budget::new(Store::in_memory().unwrap(), Limits { lifetime, ..Limits::default() });
            require_refused(made.map(drop), &entry, SAID);
            continue;
        }
        // Each charge fits but the last.
        let (charges, limits) = (entry["charges"].as_array().unwrap(), limits(&entry, WhenSpent::Nothing));
        charged_in_turn(&charges[..charges.len() - 1], limits).unwrap();
        require_refused(charged_in_turn(charges, limits), &entry, SAID);
    }
}
