//! The cost of a client's reports so far, as data.

use super::ledger::{Charged, Line, SpentOn, day_of_clock};
use super::limits::{Limits, WhenSpent};
use super::units::{DELTA_DIGITS, EPSILON_DIGITS, WHOLE_DELTA, of_units};
use super::words::words_of;

/// The cost of the reports of one kind of a campaign, over all its epochs.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct StreamSpent {
    /// The campaign's id.
    pub campaign: String,
    /// What was charged.
    pub stream: SpentOn,
    /// The number of reports that were charged, or that repeat a charged answer.
    pub reports: u64,
    /// The number of further reports, which tell nothing about a value, because the budget was spent.
    pub blank: u64,
    /// The sum of epsilon over the charged reports, replace-one.
    pub epsilon: f64,
    /// The sum of delta over the charged reports, replace-one.
    pub delta: f64,
}

/// The cost of all reports under one budget, and the remaining budget.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Spent {
    /// What was spent, by campaign and kind.
    pub streams: Vec<StreamSpent>,
    /// The UTC day that the device's clock shows, as in 2026-11-23.
    pub day: String,
    /// Epsilon charged on the UTC day `day`.
    pub today: f64,
    /// The total charge: all sent reports together are (epsilon, delta)-private, replace-one.
    pub epsilon: f64,
    /// The delta of the total charge.
    pub delta: f64,
    /// The limit of epsilon on a UTC day; infinity without a limit.
    pub per_day: f64,
    /// The limit of epsilon in total; infinity without a limit.
    pub lifetime: f64,
    /// Epsilon that may still be charged on the UTC day `day`; infinity without a limit.
    pub left_today: f64,
    /// Epsilon that may still be charged in total; infinity without a limit.
    pub left: f64,
    /// Whether no reports are made once the budget is spent, instead of reports that tell nothing.
    pub silent: bool,
    /// Whether the person opted out, so that no report is made until the person opts in.
    pub opted_out: bool,
}

impl Spent {
    /// Return the spent budget at a time in milliseconds since 1970.
    pub(crate) fn of(charged: &Charged, limits: &Limits, now: i64) -> Self {
        let day = day_of_clock(now);
        let (today, ever) = charged.left(limits, &day);
        let epsilon = |units| of_units(units, EPSILON_DIGITS);
        let delta = charged.lines.values().fold(0u64, |sum, line| sum.saturating_add(line.delta)).min(WHOLE_DELTA);
        let left = |limit: f64, units| if limit.is_infinite() { limit } else { epsilon(units) };
        Self {
            streams: charged.lines.iter().map(|((campaign, kind), line)| stream_of(campaign, *kind, line)).collect(),
            today: epsilon(charged.on(&day)),
            epsilon: epsilon(charged.total()),
            delta: of_units(delta, DELTA_DIGITS),
            per_day: limits.per_day,
            lifetime: limits.lifetime,
            left_today: left(limits.per_day.min(limits.lifetime), today.min(ever)),
            left: left(limits.lifetime, ever),
            silent: limits.when_spent == WhenSpent::Nothing,
            opted_out: charged.opted_out,
            day,
        }
    }

    /// Return sentences for the person. Each sentence is true by itself, and its figures are rounded so that the
    /// sentence never promises too much.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        words_of(self)
    }
}

fn stream_of(campaign: &str, stream: SpentOn, line: &Line) -> StreamSpent {
    let Line { reports, blank, epsilon, delta } = *line;
    let (epsilon, delta) = (of_units(epsilon, EPSILON_DIGITS), of_units(delta, DELTA_DIGITS));
    StreamSpent { campaign: campaign.to_owned(), stream, reports, blank, epsilon, delta }
}
