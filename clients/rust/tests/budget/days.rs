//! Each day has its limit.

use super::*;

#[test]
fn a_day_is_one_of_utc_and_has_its_limit_whenever_the_clock_shows_it() {
    let folder = Folder::new();
    for store in [Store::in_memory().unwrap(), Store::open(folder.file("store")).unwrap()] {
        let budget = Budget::new(store, per_day(1.0)).unwrap();
        let midnight = NOON + DAY / 2;
        for now in [midnight - 1, midnight - DAY] {
            charge(&budget, &words(1.0), Reports, 1, now);
        }
        assert_eq!(spent(&budget), 1.0);
        assert_eq!(charge(&budget, &words(1.0), Reports, 1, midnight), 1);
        for other in [NOON + 40 * DAY, 0] {
            assert_eq!(charge(&budget, &words(1.0), Reports, 2, other), 1);
        }
        for again in [midnight, NOON, NOON + 40 * DAY, NOON, 0] {
            assert_eq!(charge(&budget, &words(1.0), Reports, 1, again), 0);
            let spent = budget.spent_at(again).unwrap();
            assert_eq!((spent.today, spent.left_today), (1.0, 0.0));
            assert!(crate::formats::times::time_text(again).starts_with(&spent.day));
        }
    }
}

#[test]
fn a_wrong_clock_shows_a_day_too() {
    let budget = budget(per_day(1.0));
    for (now, day) in [(i64::MIN, "1970-01-01"), (-1, "1970-01-01"), (i64::MAX, "9999-12-31")] {
        assert_eq!(charge(&budget, &words(1.0), Reports, 1, now), u64::from(now != -1));
        assert_eq!(budget.spent_at(now).unwrap().day, day);
    }
}

#[test]
fn whoever_sets_the_clock_day_by_day_is_bounded_by_the_lifetime() {
    let budget = budget(Limits { per_day: 1.0, lifetime: 20.5, ..UNLIMITED });
    let campaign = words(1.0);
    let told =
        |number: u64, day: usize| charge(&budget, &campaign, Reports, number, NOON + DAY * i64::try_from(day).unwrap());
    assert!((0..MOST_KEPT).all(|day| told(2, day) == 1));
    assert!((0..MOST_KEPT).all(|day| told(1, day) == 0));
    // One more day: the one that the clock has not shown for the longest time is forgotten, and no other.
    assert_eq!([told(1, MOST_KEPT), told(1, 1), told(1, 0)], [1, 0, 1]);
    assert_eq!((MOST_KEPT + 1..100).map(|day| told(1, day)).sum::<u64>(), 20 - 18);
    assert_eq!(spent(&budget), 20.0);
}
