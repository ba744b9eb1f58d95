//! What was spent, in the sentences of all clients.

use serde_json::Value;

use super::*;
use crate::budget::figures::{change_of_odds, epsilon_text, grouped, small};

/// Return the numbers and days of each sentence.
fn figures(sentences: &[String]) -> Vec<Vec<String>> {
    let is_part = |letter: char| letter.is_ascii_digit() || ",.-".contains(letter);
    let figure = |word: &str| word.trim_matches(|letter: char| !letter.is_ascii_digit()).to_owned();
    let of = |sentence: &String| {
        sentence.split(|letter| !is_part(letter)).map(figure).filter(|figure| !figure.is_empty()).collect()
    };
    sentences.iter().map(of).collect()
}

/// The cases of clients/typescript/tests/spent.json, which say what Python's budget says.
#[test]
fn what_is_charged_is_said_as_in_the_other_clients() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../typescript/tests/spent.json");
    let cases: Vec<Value> = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert!(cases.len() >= 8);
    for case in cases {
        let limit = |name: &str| case["limits"][name].as_f64().unwrap_or(f64::INFINITY);
        let budget = budget(Limits { per_day: limit("per_day"), lifetime: limit("lifetime"), ..UNLIMITED });
        let told: Vec<_> = case["charges"]
            .as_array()
            .unwrap()
            .iter()
            .map(|each| {
                let stream = if each[1] == "reports" { Reports } else { Discovery };
                charge(&budget, &campaign(each[0].as_str().unwrap()), stream, each[2].as_u64().unwrap(), NOON)
            })
            .collect();
        assert_eq!(serde_json::json!(told), case["telling"]);
        let spent = budget.spent_at(NOON).unwrap();
        assert_eq!([Some(spent.epsilon), Some(spent.delta)], [case["epsilon"].as_f64(), case["delta"].as_f64()]);
        assert_eq!(serde_json::json!(spent.words()), case["words"]);
    }
}

#[test]
fn in_words_what_was_spent_on_what() {
    let budget = budget(Limits { per_day: 0.5, lifetime: 100.0, ..UNLIMITED });
    let mut cheap = words(0.1);
    let rule = cheap.discovery.as_mut().unwrap();
    (rule.epsilon, rule.delta) = (0.002 / rule.sides as f64, 1e-6 / rule.sides as f64);
    charge(&budget, &cheap, Reports, 1, NOON - 2 * DAY);
    assert_eq!(figures(&budget.spent_at(NOON - 2 * DAY).unwrap().words())[..2], [vec!["1", "0.1"], vec!["11"]]);
    charge(&budget, &cheap, Reports, 6, NOON - 2 * DAY);
    for day in -1..1198 {
        charge(&budget, &cheap, Discovery, 1, NOON + day * DAY);
    }
    budget.opt_out().unwrap();
    let said = budget.spent_at(NOON + 1197 * DAY).unwrap().words();
    assert_eq!(said[0], "You opted out: this device makes no report until you opt in again.");
    // Of discovery, of counts, of what told nothing; the odds; the day; the lifetime; what comes next.
    let expected = [
        vec!["1,199", "2.398", "0.001199"],
        vec!["5", "0.5"],
        vec!["2"],
        vec!["20.3", "1", "83"],
        vec!["2030-03-04", "0.002", "0.5", "0.498"],
        vec!["2.898", "100", "97.102"],
        vec![],
    ];
    assert_eq!(figures(&said[1..]), expected);
}

#[test]
fn words_show_numbers_exactly_however_many() {
    let budget = budget(lifetime(1e6));
    for _ in 0..7 {
        charge(&budget, &words(1.0 / 3.0), Reports, 1, NOON);
    }
    let expected = ["2.333333338", "1,000,000", "999,997.666666662"].map(str::to_owned);
    assert!(figures(&budget.spent_at(NOON).unwrap().words()).contains(&expected.to_vec()));
}

#[test]
fn a_silent_budget_says_what_comes_when_it_is_spent() {
    let silent = budget(Limits { when_spent: WhenSpent::Nothing, ..lifetime(0.0) });
    let last = silent.spent_at(NOON).unwrap().words().pop();
    let expected = "When too little is left for a report, no report that tells more of you is made.";
    assert_eq!(last.as_deref(), Some(expected));
}

#[test]
fn figures_are_rounded_up_and_never_look_exact() {
    let cases = [(1e-18, "1e-18"), (1.2345e-5, "1.235e-05"), (9.9991e-5, "0.0001"), (1e-4, "0.0001"), (1.0, "1")];
    for (delta, text) in cases.into_iter().chain([(0.123_41, "0.1235"), (9.9995e-10, "1e-09"), (5e-324, "5e-324")]) {
        assert_eq!(small(delta), text);
    }
    let odds = [
        (1e-9, "0.00000011 % at most"),
        (0.1, "11 % at most"),
        (0.7, "a factor of 2.02 at most"),
        (3.0, "a factor of 20.1 at most"),
        (13.5, "a factor of 730000 at most"),
        (699.0, "a factor of"),
        (700.0, "any factor"),
    ];
    for (epsilon, text) in odds {
        assert!(change_of_odds(epsilon, 0.0).starts_with(text), "{}", change_of_odds(epsilon, 0.0));
    }
    assert_eq!(change_of_odds(1.0, 1.0), "any factor, except with a chance of 1 in 1");
    let all = "a factor of 3.14 at most, except with a chance of 1 in 100,000,000,000,000,000";
    assert_eq!(change_of_odds(1.0, 1e-18), all);
    assert_eq!(
        ["", "1", "12", "123", "1234", "123456", "1234567"].map(grouped).join(" "),
        " 1 12 123 1,234 123,456 1,234,567"
    );
    assert_eq!([0.0, 1e-9, 1234.5, 1e6].map(epsilon_text), ["0", "0.000000001", "1,234.5", "1,000,000"]);
}
