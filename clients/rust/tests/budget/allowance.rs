//! No more of a stream in a window than the campaign's cap.

use serde_json::{Value, json};

use super::*;
use crate::campaigns::windows::ListedWindows;

const HOUR: i64 = 3_600_000;

fn capped(cap: u64) -> Campaign {
    let mut campaign = words(1.0);
    campaign.shuffle.cap = cap;
    campaign
}

/// Make reports in windows of an hour, of a campaign that lists none.
fn take(budget: &Budget, campaign: &Campaign, stream: Stream, number: u64, now: i64) -> Option<Kind> {
    let request = Request { campaign, stream, number, due: None, repeats: false };
    budget.charge(&[request], Some(HOUR), now).err().map(|error| error.kind())
}

fn over(budget: &Budget, campaign: &Campaign, now: i64) -> bool {
    let kind = take(budget, campaign, Reports, 1, now);
    assert!(kind.is_none_or(|kind| kind == Kind::OverCap));
    kind.is_some()
}

#[test]
fn it_makes_the_cap_of_each_stream_and_no_more() {
    let (budget, campaign) = (budget(UNLIMITED), capped(1));
    assert_eq!(take(&budget, &campaign, Reports, 1, NOON), None);
    let request = Request { campaign: &campaign, stream: Reports, number: 1, due: None, repeats: false };
    let error = budget.charge(&[request], Some(HOUR), NOON + 1).unwrap_err();
    assert_eq!(
        error.to_string(),
        "1 more reports of campaign words cannot be made: 1 were made in the window that began at \
         2026-11-23T12:00:00.000Z, and the cap is 1; wait for the next window"
    );
    assert_eq!(take(&budget, &campaign, Discovery, 1, NOON), None);
    assert_eq!(take(&budget, &campaign, Discovery, 1, NOON), Some(Kind::OverCap));
    // A report that is due later counts in its own window.
    let request = |due| Request { campaign: &campaign, stream: Reports, number: 1, due, repeats: false };
    budget.charge(&[request(Some(NOON + HOUR))], Some(HOUR), NOON).unwrap();
    assert!(budget.charge(&[request(None)], Some(HOUR), NOON + HOUR).is_err());
}

#[test]
fn what_is_over_the_cap_is_not_charged() {
    let (budget, campaign) = (budget(UNLIMITED), capped(2));
    assert_eq!(take(&budget, &campaign, Reports, 3, NOON), Some(Kind::OverCap));
    assert_eq!(take(&budget, &campaign, Reports, u64::MAX, NOON), Some(Kind::OverCap));
    assert_eq!(spent(&budget), 0.0);
    assert_eq!(take(&budget, &campaign, Reports, 0, NOON), None);
    assert_eq!(take(&budget, &campaign, Reports, 2, NOON), None);
}

#[test]
fn what_the_budget_or_the_person_refuses_takes_nothing() {
    let budget = budget(Limits { when_spent: WhenSpent::Nothing, ..per_day(1.0) });
    assert_eq!(take(&budget, &capped(2), Reports, 2, NOON), Some(Kind::BudgetSpent));
    budget.opt_out().unwrap();
    assert_eq!(take(&budget, &capped(2), Reports, 2, NOON), Some(Kind::OptedOut));
    budget.opt_in().unwrap();
    assert_eq!(take(&budget, &capped(1), Reports, 1, NOON), None);
}

#[test]
fn each_window_has_its_own_in_whatever_order_the_clock_shows_them() {
    let folder = Folder::new();
    for store in [Store::in_memory().unwrap(), Store::open(folder.file("store")).unwrap()] {
        let budget = Budget::new(store, UNLIMITED).unwrap();
        let (first, second) = (capped(2), Campaign { epoch: 2, ..capped(2) });
        assert!(!over(&budget, &first, NOON) && !over(&budget, &first, NOON + HOUR - 60_000));
        // However many epochs are published, a window has one cap: it is what a policy bounds.
        assert!(over(&budget, &second, NOON) && over(&budget, &first, NOON + HOUR - 1));
        // A clock that was 40 days ahead mutes nobody, and one that flaps between windows wins nothing.
        for now in [NOON + 40 * DAY, NOON + HOUR, NOON - 9 * DAY] {
            assert_eq!(take(&budget, &first, Reports, 2, now), None);
        }
        for now in [NOON, NOON + HOUR, NOON, NOON + 40 * DAY, NOON - 9 * DAY] {
            assert!(over(&budget, &first, now));
        }
    }
}

#[test]
fn a_window_is_open_again_once_16_others_were_used_and_no_sooner() {
    let (budget, campaign) = (budget(UNLIMITED), capped(1));
    let over = |number: usize| over(&budget, &campaign, NOON + HOUR * i64::try_from(number).unwrap());
    assert!(!(0..MOST_KEPT).any(over));
    // What is refused counts as no use.
    assert!((0..MOST_KEPT).all(over));
    assert_eq!([over(MOST_KEPT), over(1), over(0)], [false, true, false]);
}

fn listed(starts: &[i64], id: &str) -> Campaign {
    let unit = if starts[1] - starts[0] > 2 * DAY / 1000 { "month" } else { "day" };
    let windows = ListedWindows::parse(&json!({ "unit": unit, "starts": starts })).unwrap();
    Campaign { windows: Some(windows), id: id.to_owned(), ..capped(1) }
}

#[test]
fn windows_of_one_campaign_do_not_push_out_those_of_another_which_may_be_months() {
    let (budget, noon) = (budget(UNLIMITED), NOON / 1000);
    let months = listed(&[noon, noon + 31 * DAY / 1000], "months");
    assert!(!over(&budget, &months, NOON));
    for hour in 0..28 {
        assert!(!over(&budget, &capped(1), NOON + hour * HOUR));
    }
    assert!(over(&budget, &months, NOON + 30 * DAY));
    assert!(!over(&budget, &months, NOON + 31 * DAY));
    // Beyond the list no new window begins, and none before it.
    assert!(over(&budget, &months, NOON + 1000 * DAY) && over(&budget, &months, NOON - 1000 * DAY));
}

#[test]
fn an_epoch_that_lists_windows_a_little_later_renews_no_cap() {
    let budget = budget(UNLIMITED);
    let starts = |later: i64| (-4..5).map(move |day| NOON / 1000 + day * DAY / 1000 + later * 3600).collect::<Vec<_>>();
    let epoch = |later| listed(&starts(later), "words");
    assert!(!over(&budget, &epoch(0), NOON + HOUR));
    for hours in [2, 3, 20] {
        assert!(over(&budget, &epoch(hours), NOON + hours * HOUR + HOUR / 2));
    }
    assert!(!over(&budget, &epoch(1), NOON + 25 * HOUR + HOUR / 2));
}

#[test]
fn a_damaged_record_is_refused_and_left_as_it_is() {
    let store = Store::in_memory().unwrap();
    let budget = Budget::new(store.clone(), UNLIMITED).unwrap();
    let pairs = |number| json!({ "words/reports": vec![json!([0, 1]); number] });
    assert_eq!(pairs(0)["words/reports"], json!([]));
    let damaged = [
        Value::Null,
        json!([]),
        json!("{}"),
        json!({ "words/reports": {} }),
        json!({ "words/reports": [[0]] }),
        json!({ "words/reports": [[0, -1]] }),
        json!({ "words/reports": [[0, 0.5]] }),
        json!({ "words/reports": [["0", 1]] }),
        json!({ "words/reports": [[-1, 1]] }),
        pairs(17),
    ];
    for record in damaged {
        store.change(|records| records.put("allowance", &record)).unwrap();
        assert_eq!(take(&budget, &capped(1), Discovery, 1, NOON), Some(Kind::Format), "{record}");
        assert_eq!(store.change(|records| records.get("allowance")).unwrap(), Some(record));
    }
    assert_eq!(spent(&budget), 0.0);
    store.change(|records| records.put("allowance", &pairs(16))).unwrap();
    assert_eq!(take(&budget, &capped(1), Reports, 1, NOON), None);
}
