//! Campaigns whose mixes add the noise: two layers, and the window in which a report is due (test_client_noise.py).

use hushcount::{Budget, Client, ClientOptions, Kind, Limits, Store, Stream};
use serde_json::json;

use super::support::*;

/// Return options of the vectors' campaign with a cap of 2, at noon.
fn options_of() -> ClientOptions {
    let shuffle = json!({"cap": 2, "minimum_batch": 1, "delta": 1e-8});
    let mut options = options(&file("noise", &json!({"shuffle": shuffle})));
    options.clock = Stopped::at(NOON);
    options
}

fn limited(lifetime: f64) -> Client {
    let (store, mut options) = (Store::in_memory().unwrap(), options_of());
    options.budget = Some(Budget::new(store.clone(), Limits { lifetime, ..Limits::default() }).unwrap());
    options.store = Some(store);
    Client::open(options).unwrap()
}

#[test]
fn each_party_finds_in_its_layer_what_is_for_it() {
    let client = Client::open(options_of()).unwrap();
    for (due, begins) in [(None, NOON - DAY / 2), (Some(NOON + DAY / 2), NOON + DAY / 2)] {
        let window = (begins / 1000).to_le_bytes();
        for (value, item) in [("two", 1), ("no item of the list", 4)] {
            let report = client.report_with(value, &[], due).unwrap();
            assert_eq!((report.len(), &report[..8]), (client.sealed_bytes(Stream::Reports), &window[..]));
            let layer = aux_server().unseal(&report[8..]).unwrap();
            assert_eq!(layer[16..24], window);
            let plain = analyzer().unseal(&layer[24..]).unwrap();
            assert_eq!(plain, [&layer[..16], &[item]].concat());
        }
        let error = client.report_with("one", &[], due).unwrap_err();
        assert_eq!(error.kind(), Kind::OverCap);
        assert!(error.to_string().contains("window that began"), "{error}");
    }
}

#[test]
fn a_report_costs_its_part_under_a_kind_of_its_own() {
    let client = limited(1.4);
    for due in [NOON, NOON, NOON + DAY] {
        client.report_with("one", &[], Some(due)).unwrap();
    }
    let spent = client.spent().unwrap();
    let [line] = &spent.streams[..] else { panic!("one stream") };
    assert_eq!((line.reports, line.blank, line.epsilon.to_bits()), (2, 1, 1.0f64.to_bits()));
    let words = spent.words();
    assert!(
        words[0].contains("2 sealed reports, not randomised, to count values, for epsilon 1 and delta 1e-08"),
        "{words:?}"
    );
    assert!(words[1].contains("1 report to count values told nothing"), "{words:?}");
    assert!(words[2].ends_with("as long as one of the two parties that mix them keeps to its role."), "{words:?}");
}

#[test]
fn a_client_whose_budget_is_spent_reports_other() {
    let report = limited(0.4).report("one").unwrap();
    let layer = aux_server().unseal(&report[8..]).unwrap();
    assert_eq!(analyzer().unseal(&layer[24..]).unwrap()[16..], [4]);
}

#[test]
fn windows_that_are_shorter_than_the_app_allows_are_refused() {
    let mut options = options_of();
    options.window_seconds = 2 * 86_400;
    let error = Client::open(options).unwrap_err();
    assert_eq!(error.kind(), Kind::Untrusted);
    assert!(error.to_string().contains("the app allows none below"), "{error}");
}
