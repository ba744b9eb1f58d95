//! A client and its budget: charged before it leaves, whatever the value is (tests/hushcount/test_client_budget.py).

use hushcount::{Budget, Client, ClientOptions, Kind, Limits, Store, Stream, WhenSpent};
use serde_json::Value;

use super::support::*;

/// Listed or not, seen before or not, and no items.
const VALUES: [&str; 9] = ["one", "one", "two", "no item of the list", "one", "", "\0", "another", "two"];

fn limited(lifetime: f64, when_spent: WhenSpent, store: &Store) -> Budget {
    Budget::new(store.clone(), Limits { lifetime, when_spent, ..Limits::default() }).unwrap()
}

fn options_of(file: &Value, lifetime: f64, store: &Store) -> ClientOptions {
    let mut options = options(file);
    options.store = Some(store.clone());
    options.budget = Some(limited(lifetime, WhenSpent::Other, store));
    options
}

fn client_of(values: u64, lifetime: f64, store: &Store) -> Client {
    Client::open(options_of(&certain(values), lifetime, store)).unwrap()
}

fn epsilon(client: &Client) -> f64 {
    client.spent().unwrap().epsilon
}

fn assert_epsilon(client: &Client, wanted: f64) {
    assert!((epsilon(client) - wanted).abs() < 1e-12, "{}", epsilon(client));
}

/// Return the value that a discovery report shows.
fn told(client: &Client, value: Option<&str>) -> Option<String> {
    found(&client.discovery_report(value.map(Into::into)).unwrap()).1
}

#[test]
fn once_it_is_spent_reports_are_of_other_and_blanks_of_the_same_length() {
    let client = client_of(0, 2.0 * CERTAIN, &Store::in_memory().unwrap());
    let shown_of = |value: &str| {
        let report = client.report(value).unwrap();
        assert_eq!(report.len(), client.sealed_bytes(Stream::Reports));
        shown(&report)
    };
    assert_eq!(["one", "two", "three", "one"].map(shown_of), ["one", "two", "other", "other"]);
    let report = client.discovery_report(Some("new".into())).unwrap();
    assert_eq!((report.len(), found(&report).1), (client.sealed_bytes(Stream::Discovery), None));
    let spent = client.spent().unwrap();
    let counts: Vec<_> = spent.streams.iter().map(|each| (each.reports, each.blank)).collect();
    assert_eq!(counts, [(0, 1), (2, 2)]);
}

#[test]
fn one_budget_is_of_both_streams_and_of_all_campaigns() {
    let store = Store::in_memory().unwrap();
    let (client, remembering) = (client_of(0, 3.0 * CERTAIN, &store), client_of(1, 3.0 * CERTAIN, &store));
    assert_eq!(told(&client, Some("x")).as_deref(), Some("x"));
    assert_eq!(shown(&client.report("one").unwrap()), "one");
    assert_eq!([(); 2].map(|()| shown(&remembering.report("two").unwrap())), ["two", "two"]);
    assert_eq!(told(&client, Some("y")), None);
    assert_eq!(shown(&client.report("one").unwrap()), "other");
    // Answers that were charged go on, and a spent budget draws no new ones.
    assert_eq!(shown(&remembering.report("two").unwrap()), "two");
}

#[test]
fn a_memory_is_not_touched_by_a_spent_budget_and_its_epoch_is_charged_whole() {
    let folder = Folder::new();
    let client = client_of(3, 3.0 * CERTAIN - 1e-9, &folder.store());
    for value in ["one", "two"] {
        assert_eq!(shown(&client.report(value).unwrap()), "other");
    }
    assert_eq!(folder.answers(), 0);
    let folder = Folder::new();
    let client = client_of(3, 3.0 * CERTAIN, &folder.store());
    for value in ["one", "two", "three"] {
        assert_eq!(shown(&client.report(value).unwrap()), value);
    }
    assert_epsilon(&client, 3.0 * CERTAIN);
    assert_eq!(folder.answers(), 3);
    // Whoever loses the memory draws anew, and so pays anew.
    folder.sql("DELETE FROM records WHERE name LIKE 'answer/%'");
    assert_eq!(shown(&client.report("one").unwrap()), "other");
}

#[test]
fn if_the_app_wants_nothing_nothing_is_made_or_taken() {
    let folder = Folder::new();
    let store = folder.store();
    for values in [0, 1] {
        let mut options = options_of(&certain(values), 0.0, &store);
        options.budget = Some(limited(CERTAIN - 1e-9, WhenSpent::Nothing, &store));
        let client = Client::open(options).unwrap();
        for made in [client.report("very secret"), client.discovery_report(Some("very secret".into()))] {
            let error = made.unwrap_err();
            assert_eq!(error.kind(), Kind::BudgetSpent);
            assert!(!error.to_string().contains("secret"));
        }
        assert_eq!((client.spent().unwrap().streams.len(), folder.answers()), (0, 0));
    }
}

#[test]
fn a_value_too_long_is_refused_whether_or_not_the_budget_is_spent() {
    for lifetime in [f64::INFINITY, 0.0] {
        let client = client_of(0, lifetime, &Store::in_memory().unwrap());
        assert_eq!(client.discovery_report(Some("x".repeat(1000).as_str().into())).unwrap_err().kind(), Kind::Usage);
    }
}

#[test]
fn what_is_charged_and_when_it_is_spent_never_depends_on_a_value() {
    for lifetime in [0.0, 3.5 * CERTAIN, 1000.0 * CERTAIN] {
        for values in [0, 1, 3] {
            let mut reversed = VALUES;
            reversed.reverse();
            let people = [VALUES, ["one"; 9], reversed, [""; 9]].map(|person| {
                let client = client_of(values, lifetime, &Store::in_memory().unwrap());
                person.map(|value| {
                    client.report(value).unwrap();
                    let after = client.spent().unwrap().streams;
                    client.discovery_report(Some(value.into())).unwrap();
                    [after, client.spent().unwrap().streams].map(|streams| format!("{streams:?}"))
                })
            });
            assert!(people.iter().all(|charges| *charges == people[0]), "{values} {lifetime}");
        }
    }
}

#[test]
fn it_charges_before_it_draws_so_a_memory_that_fails_has_charged_more_and_not_less() {
    let folder = Folder::new();
    let client = client_of(1, 3.0 * CERTAIN, &folder.store());
    folder.sql(
        "CREATE TRIGGER full BEFORE INSERT ON records \
         WHEN NEW.name LIKE 'answer/%' BEGIN SELECT RAISE(ABORT, 'busy'); END",
    );
    for number in 1..=2 {
        assert_eq!(client.report("one").unwrap_err().kind(), Kind::Store);
        assert_epsilon(&client, f64::from(number) * CERTAIN);
    }
    folder.sql("DROP TRIGGER full");
    assert_eq!(shown(&client.report("one").unwrap()), "one");
}

#[test]
fn a_charge_that_cannot_be_written_lets_nothing_out() {
    let folder = Folder::new();
    let client = client_of(0, f64::INFINITY, &folder.store());
    client.report("one").unwrap();
    std::fs::remove_file(folder.path()).unwrap();
    std::fs::create_dir(folder.path()).unwrap();
    assert!(client.report("one").is_err());
    assert!(client.discovery_report(None).is_err());
}

#[test]
fn threads_make_as_many_reports_as_the_budget_lets_them() {
    let folder = Folder::new();
    let client = client_of(0, 5.0 * CERTAIN, &folder.store());
    let mut made: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..4).map(|_| scope.spawn(|| [(); 5].map(|()| shown(&client.report("one").unwrap())))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    made.sort_unstable();
    assert_eq!(made, [["one"; 5].as_slice(), &["other"; 15]].concat());
}

#[test]
fn forgetting_stops_everything_and_deletes_what_is_of_values() {
    let folder = Folder::new();
    let store = folder.store();
    let client = client_of(1, 3.0 * CERTAIN, &store);
    client.report("one").unwrap();
    assert_eq!(folder.answers(), 1);
    client.forget().unwrap();
    client.forget().unwrap();
    assert_eq!(folder.answers(), 0);
    for other in [&client, &client_of(0, f64::INFINITY, &store)] {
        for made in [other.report("one"), other.discovery_report(None)] {
            assert_eq!(made.unwrap_err().kind(), Kind::OptedOut);
        }
    }
    assert!(client.spent().unwrap().words()[0].contains("opted out"));
    // New answers in the same epoch are charged, and the budget is the old one.
    let budget = limited(3.0 * CERTAIN, WhenSpent::Other, &store);
    budget.opt_in().unwrap();
    assert_eq!(shown(&client.report("two").unwrap()), "two");
    assert_epsilon(&client, 2.0 * CERTAIN);
    client.forget().unwrap();
    budget.opt_in().unwrap();
    assert_eq!([(); 2].map(|()| shown(&client.report("one").unwrap())), ["one", "one"]);
    client.forget().unwrap();
    budget.opt_in().unwrap();
    assert_eq!(shown(&client.report("one").unwrap()), "other");
}
