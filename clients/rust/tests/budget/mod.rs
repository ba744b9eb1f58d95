//! What is charged, to the billionth, and when no more is left.

#![allow(clippy::float_cmp, reason = "sums of units are exact")]

mod allowance;
mod days;
mod processes;
mod records;
mod words;

use std::thread;

use super::last_changed::MOST_KEPT;
use super::units::{EPSILON_DIGITS, cost_units, limit_units, of_units};
use super::{Budget, Limits, Request, SpentOn, WhenSpent};
use crate::campaigns::campaign::{Campaign, Stream};
use crate::errors::{Kind, Result};
use crate::store::Store;
use crate::store::tests::support::{Folder, said, say, task};
use crate::vectors::support::campaign;
use Stream::{Discovery, Reports};

/// 2026-11-23T12:00:00Z.
const NOON: i64 = 1_795_435_200_000;
const DAY: i64 = 86_400_000;
const UNLIMITED: Limits = Limits { per_day: f64::INFINITY, lifetime: f64::INFINITY, when_spent: WhenSpent::Other };

/// A campaign with both streams: a frequency report costs so much, a discovery report 1.
fn words(epsilon: f64) -> Campaign {
    Campaign { epsilon, id: "words".to_owned(), ..campaign("both") }
}

fn remembering(epsilon: f64, memory_values: u64) -> Campaign {
    Campaign { memory: true, memory_values, ..words(epsilon) }
}

fn budget(limits: Limits) -> Budget {
    Budget::new(Store::in_memory().unwrap(), limits).unwrap()
}

fn per_day(per_day: f64) -> Limits {
    Limits { per_day, ..UNLIMITED }
}

fn lifetime(lifetime: f64) -> Limits {
    Limits { lifetime, ..UNLIMITED }
}

/// Charge in no window.
fn try_charge(budget: &Budget, campaign: &Campaign, stream: Stream, number: u64, now: i64) -> Result<u64> {
    let request = Request { campaign, stream, number, due: None, repeats: false };
    budget.charge(&[request], None, now).map(|telling| telling[0])
}

fn charge(budget: &Budget, campaign: &Campaign, stream: Stream, number: u64, now: i64) -> u64 {
    try_charge(budget, campaign, stream, number, now).unwrap()
}

fn repeat(budget: &Budget, campaign: &Campaign, number: u64) -> Result<u64> {
    let request = Request { campaign, stream: Reports, number, due: None, repeats: true };
    budget.charge(&[request], None, NOON).map(|telling| telling[0])
}

fn spent(budget: &Budget) -> f64 {
    budget.spent_at(NOON).unwrap().epsilon
}

/// Whole numbers that look random (splitmix64).
fn numbers() -> impl FnMut(u64) -> u64 {
    let mut state = 0u64;
    move |below| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb) % below
    }
}

#[test]
fn a_cost_is_the_least_number_of_billionths_that_is_not_below_the_decimal_number() {
    let mut number = numbers();
    for _ in 0..10_000 {
        // At most 15 digits, so that the nearest double has this shortest decimal number.
        let (digits, places, times, parts) =
            (number(10u64.pow(15)), number(20) as u32, 1 + number(1000), 1 + number(9));
        let value: f64 = format!("{digits}e-{places}").parse().unwrap();
        let (above, below) = (u128::from(digits) * u128::from(times), 10u128.pow(places) * u128::from(parts));
        let cost = (above * 1_000_000_000).div_ceil(below).min(u64::MAX.into());
        assert_eq!(u128::from(cost_units(value, EPSILON_DIGITS, times, parts)), cost, "{value}");
        let limit = (u128::from(digits) * 1_000_000_000 / 10u128.pow(places)).min(10u128.pow(15));
        assert_eq!(u128::from(limit_units(value)), limit, "{value}");
    }
}

#[test]
fn costs_of_any_number_are_defined_and_never_too_small() {
    let cost = |value, times, parts| cost_units(value, EPSILON_DIGITS, times, parts);
    for value in [f64::NAN, f64::INFINITY, -1.0, f64::MAX, 1e29, 1e300] {
        assert_eq!(cost(value, 1, 1), u64::MAX, "{value}");
    }
    assert_eq!([5e-324, 1e-300, 1e-48, 1e-10].map(|value| cost(value, 1, u64::MAX)), [1; 4]);
    assert_eq!([cost(0.0, u64::MAX, 1), cost(-0.0, 1, 0), cost(5e-324, u64::MAX, 1)], [0, 0, 1]);
    assert_eq!(
        [cost(0.1, 3, 1), cost(1.0, u64::MAX, 1), cost(2.0, u64::MAX, u64::MAX)],
        [300_000_000, u64::MAX, 2_000_000_000]
    );
    assert_eq!([f64::INFINITY, f64::NAN, -1.0].map(limit_units), [10u64.pow(15), 10u64.pow(15), 0]);
    assert_eq!([of_units(9_000_000_001, 9), of_units(1, 18), of_units(0, 9)], [9.000_000_001, 1e-18, 0.0]);
}

#[test]
fn as_many_reports_fit_as_the_decimal_numbers_say() {
    let cases = [
        // Floats add up 0.1 + 0.1 + 0.1 to more than 0.3, and ten tenths to less than 1.
        (0.1, 0.3, 3),
        (0.1, 1.0, 10),
        (0.7, 2.1, 3),
        (1.1, 3.3, 3),
        (0.5, 1.0, 2),
        (0.5, 0.999_999_999, 1),
        (0.5, 0.499_999_999_9, 0),
        (0.5, 0.5, 1),
        // Below a billionth: costs are rounded up, limits down.
        (0.500_000_000_1, 1.0, 1),
        (0.500_000_000_1, 1.000_000_002, 2),
        (0.5, 1.000_000_000_9, 2),
        (0.5, 0.999_999_999_9, 1),
        (1.0 / 3.0, 1.0, 2),
        (1.0 / 3.0, 1.000_000_002, 3),
        (2.0, 0.0, 0),
        (40.0, 1e6, 25_000),
        (2.0, f64::INFINITY, 500_000),
    ];
    for (epsilon, limit, fit) in cases {
        for limits in [per_day(limit), lifetime(limit)] {
            let (all, campaign) = (budget(limits), words(epsilon));
            assert_eq!(charge(&all, &campaign, Reports, 1_000_000, NOON), fit, "{epsilon} {limit}");
            assert_eq!(charge(&all, &campaign, Reports, 1_000_000, NOON), 0, "{epsilon} {limit}");
            let one = budget(limits);
            let sum: u64 = (0..12).map(|_| charge(&one, &campaign, Reports, 1, NOON)).sum();
            assert_eq!(sum, fit.min(12), "{epsilon} {limit}");
        }
    }
}

#[test]
fn campaigns_epochs_and_streams_spend_one_budget() {
    let budget = budget(Limits { per_day: 5.0, lifetime: 9.5, ..UNLIMITED });
    let campaign = words(1.5);
    assert_eq!(charge(&budget, &campaign, Reports, 1, NOON), 1);
    assert_eq!(charge(&budget, &Campaign { epoch: 3, ..words(1.5) }, Reports, 1, NOON), 1);
    assert_eq!(charge(&budget, &Campaign { id: "other".to_owned(), ..words(1.5) }, Discovery, 1, NOON), 1);
    assert_eq!(charge(&budget, &campaign, Reports, 1, NOON), 0);
    // What is left is enough for a cheaper one.
    assert_eq!(charge(&budget, &campaign, Discovery, 1, NOON), 1);
    assert_eq!(charge(&budget, &campaign, Reports, 9, NOON + DAY), 3);
    assert_eq!(charge(&budget, &words(0.0001), Reports, 9, NOON + 2 * DAY), 0);
    let spent = budget.spent_at(NOON + 2 * DAY).unwrap();
    assert_eq!([spent.today, spent.epsilon, spent.delta, spent.left_today, spent.left], [0.0, 9.5, 2e-8, 0.0, 0.0]);
    let streams: Vec<_> = spent
        .streams
        .iter()
        .map(|each| (each.campaign.as_str(), each.stream, each.reports, each.blank, each.epsilon))
        .collect();
    let expected = [
        ("other", SpentOn::Discovery, 1, 0, 1.0),
        ("words", SpentOn::Discovery, 1, 0, 1.0),
        ("words", SpentOn::Reports, 5, 16, 7.5),
    ];
    assert_eq!(streams, expected);
}

#[test]
fn clients_that_remember_are_charged_the_whole_epoch_once() {
    let budget = budget(per_day(7.0));
    let (first, second) = (remembering(2.0, 3), Campaign { epoch: 3, ..remembering(2.0, 3) });
    assert_eq!(charge(&budget, &first, Reports, 0, NOON), 0);
    assert_eq!(spent(&budget).to_bits(), 0);
    assert_eq!(charge(&budget, &first, Reports, 5, NOON), 5);
    assert_eq!(repeat(&budget, &first, 100).unwrap(), 100);
    assert_eq!(spent(&budget), 6.0);
    // Another epoch does not fit, whole or in part; answers that were charged do.
    assert_eq!(charge(&budget, &second, Reports, 2, NOON), 0);
    assert_eq!(repeat(&budget, &first, 1).unwrap(), 1);
    assert_eq!(charge(&budget, &second, Reports, 2, NOON + DAY), 2);
    assert_eq!(spent(&budget), 12.0);
    // Only frequency reports repeat answers.
    assert_eq!(charge(&budget, &first, Discovery, 3, NOON), 1);
}

#[test]
fn nothing_is_charged_or_made_of_what_does_not_fit_if_the_app_wants_nothing() {
    let silent = |limits| budget(Limits { when_spent: WhenSpent::Nothing, ..limits });
    let budget = silent(per_day(2.5));
    for _ in 0..2 {
        let error = try_charge(&budget, &words(1.0), Reports, 3, NOON).unwrap_err();
        assert_eq!(error.kind(), Kind::BudgetSpent);
        assert_eq!(
            error.to_string(),
            "the budget does not allow 3 more reports of campaign words at epsilon 1 each: epsilon 2.5 is left on \
             2026-11-23: wait for the next day, UTC"
        );
    }
    assert!(budget.spent_at(NOON).unwrap().streams.is_empty());
    assert_eq!(charge(&budget, &words(1.0), Reports, 2, NOON), 2);
    let error = try_charge(&budget, &remembering(2.0, 1), Reports, 1, NOON).unwrap_err().to_string();
    assert!(error.contains("1 more reports of campaign words at epsilon 2 an epoch: epsilon 0.5 is left"), "{error}");
    let error = try_charge(&silent(lifetime(0.5)), &words(1.0), Discovery, 1, NOON).unwrap_err().to_string();
    assert!(error.ends_with("epsilon 0.5 is left for the lifetime, which no day renews"), "{error}");
    assert_eq!(repeat(&budget, &remembering(2.0, 1), 1).unwrap(), 1);
}

#[test]
fn both_streams_are_charged_in_one_step_or_none() {
    let budget = budget(Limits { when_spent: WhenSpent::Nothing, ..lifetime(1.5) });
    let campaign = words(1.0);
    let requests = [Reports, Discovery].map(|stream| Request {
        campaign: &campaign,
        stream,
        number: 1,
        due: None,
        repeats: false,
    });
    assert_eq!(budget.charge(&requests, Some(DAY), NOON).unwrap_err().kind(), Kind::BudgetSpent);
    assert_eq!(spent(&budget), 0.0);
    assert_eq!(budget.charge(&requests[..1], Some(DAY), NOON).unwrap(), [1]);
}

#[test]
fn a_stream_that_the_campaign_lacks_is_refused() {
    let cases = [("grr", Discovery, "has no discovery"), ("discovery-only", Reports, "has no reports")];
    for (name, stream, said) in cases {
        let error = try_charge(&budget(UNLIMITED), &campaign(name), stream, 1, NOON).unwrap_err();
        assert_eq!(error.kind(), Kind::Usage);
        assert!(error.to_string().contains(said), "{error}");
    }
}

#[test]
fn threads_spend_it_together() {
    let folder = Folder::new();
    for store in [Store::in_memory().unwrap(), Store::open(folder.file("store")).unwrap()] {
        let budget = Budget::new(store, lifetime(5.0)).unwrap();
        let one = || (0..5).map(|_| charge(&budget, &words(1.0), Reports, 1, NOON)).sum::<u64>();
        let fit = thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(one)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum::<u64>()
        });
        assert_eq!((fit, spent(&budget)), (5, 5.0));
    }
}

#[test]
fn no_day_and_no_lifetime_exceeds_its_limit_and_as_much_is_charged_as_told() {
    let costs = [(0.3, 300_000_000), (1.0, 1_000_000_000), (1.0 / 3.0, 333_333_334), (2.7, 2_700_000_000)];
    let campaigns = costs.map(|(epsilon, cost)| ([words(epsilon), remembering(epsilon, 1)], cost));
    let mut number = numbers();
    for _ in 0..200 {
        // A model in whole billionths, of the days that the clock shows: no 17 of them in these lists.
        let [most_today, most_ever] = [number(9_000_000_000), number(30_000_000_000)];
        let [per_day, lifetime] = [most_today, most_ever].map(|units| of_units(units, EPSILON_DIGITS));
        let budget = budget(Limits { per_day, lifetime, ..UNLIMITED });
        let mut days = [0u64; 7];
        for _ in 0..number(25) {
            let (campaigns, cost) = &campaigns[number(4) as usize];
            let (memory, asked, day) = (number(2) as usize, number(6), number(7) as usize);
            let (stream, each) = if number(2) == 1 { (Discovery, 1_000_000_000) } else { (Reports, *cost) };
            let left = (most_today - days[day]).min(most_ever - days.iter().sum::<u64>());
            let (fits, charges) = if memory == 0 || stream == Discovery {
                let fits = asked.min(left / each);
                (fits, fits)
            } else if asked > 0 && each <= left {
                (asked, 1)
            } else {
                (0, 0)
            };
            assert_eq!(
                charge(&budget, &campaigns[memory], stream, asked, NOON + DAY * i64::try_from(day).unwrap()),
                fits
            );
            days[day] += each * charges;
        }
        let total = days.iter().sum::<u64>();
        assert!(days.iter().all(|day| *day <= most_today) && total <= most_ever);
        assert_eq!(spent(&budget), of_units(total, EPSILON_DIGITS));
    }
}

#[test]
fn a_limit_must_be_an_epsilon() {
    for limit in [-1.0, -0.1, f64::NAN, -f64::INFINITY, 1e7, 1e300, 1_000_000.000_000_000_1] {
        for (name, limits) in [("per_day", per_day(limit)), ("lifetime", lifetime(limit))] {
            let error = Budget::new(Store::in_memory().unwrap(), limits).err().unwrap();
            assert_eq!(error.kind(), Kind::Usage);
            assert!(error.to_string().starts_with(&format!("{name} is {limit}, must be an epsilon in 0..1,000,000")));
        }
    }
    assert_eq!(Limits::default(), UNLIMITED);
}
