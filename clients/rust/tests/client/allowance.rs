//! A client makes no more of a stream in a window than the campaign's cap (tests/hushcount/test_client_allowance.py).

use std::sync::atomic::{AtomicU32, Ordering};

use hushcount::{Client, Kind};
use serde_json::json;

use super::support::*;

#[test]
fn it_makes_the_cap_of_each_stream_and_no_more() {
    let client = open(&file("both", &json!({})));
    client.report("one").unwrap();
    for _ in 0..2 {
        let error = client.report("very secret").unwrap_err();
        assert_eq!(error.kind(), Kind::OverCap);
        assert!(!error.to_string().contains("secret"));
    }
    client.discovery_report(Some("very secret".into())).unwrap();
    assert_eq!(client.discovery_report(None).unwrap_err().kind(), Kind::OverCap);
}

#[test]
fn what_is_refused_or_wrong_takes_nothing() {
    let client = open(&file("both", &json!({})));
    assert_eq!(client.discovery_report(Some("x".repeat(1000).as_str().into())).unwrap_err().kind(), Kind::Usage);
    assert_eq!(client.pending_discovery(None).unwrap_err().kind(), Kind::Usage);
    client.discovery_report(None).unwrap();
    let only = open(&file("discovery-only", &json!({})));
    assert_eq!(only.report("one").unwrap_err().kind(), Kind::Usage);
    assert_eq!(only.spent().unwrap().streams.len(), 0);
}

#[test]
fn each_window_has_its_own_in_whatever_order_the_clock_shows_them() {
    let clock = Stopped::at(NOON);
    let mut options = options(&file("grr", &json!({"shuffle": cap(2)})));
    (options.clock, options.window_seconds) = (clock.clone(), 3600);
    let client = Client::open(options).unwrap();
    let moments = [NOON, NOON + 40 * DAY, NOON + 3_600_000, NOON - 9 * DAY];
    for moment in moments {
        clock.set(moment);
        client.report("one").unwrap();
        clock.set(moment + 3_599_999);
        client.report("one").unwrap();
    }
    for moment in moments {
        clock.set(moment);
        assert_eq!(client.report("one").unwrap_err().kind(), Kind::OverCap);
    }
}

#[test]
fn with_a_file_it_outlives_the_client_and_names_no_value() {
    let folder = Folder::new();
    for number in 0..3 {
        let mut options = options(&file("grr", &json!({"shuffle": cap(2)})));
        options.store = Some(folder.store());
        let made = Client::open(options).unwrap().report("very secret");
        assert_eq!(made.is_ok(), number < 2);
    }
    let bytes = std::fs::read(folder.path()).unwrap();
    assert!(!bytes.windows(6).any(|part| part == b"secret"));
}

#[test]
fn many_threads_make_the_cap_together() {
    let client = open(&file("grr", &json!({"shuffle": cap(5)})));
    let made = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                (0..3).for_each(|_| drop(client.report("one").map(|_| made.fetch_add(1, Ordering::Relaxed))))
            });
        }
    });
    assert_eq!(made.into_inner(), 5);
}
