//! All charges of a budget, and the step that adds charges.

use std::collections::BTreeMap;

use super::costs::Cost;
use super::last_changed::{Counts, change_count, count_of};
use super::limits::{Limits, WhenSpent};
use super::units::{EPSILON_DIGITS, WHOLE_DELTA, limit_units, of_units};
use crate::campaigns::campaign::{Campaign, Stream};
use crate::errors::{Error, Kind, Result};
use crate::formats::json::MOST_INTEGER;
use crate::formats::times::day_text;

/// The last millisecond of the year 9999: a clock that shows more shows this day.
const LAST_MILLIS: i64 = 253_402_300_799_999;

/// The reports that are charged apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SpentOn {
    /// Discovery reports.
    Discovery,
    /// Frequency reports that are randomised.
    Reports,
    /// Frequency reports of a campaign with noise of the mixes, which are sealed, and not randomised.
    Sealed,
}

impl SpentOn {
    /// All kinds.
    pub(crate) const ALL: [Self; 3] = [Self::Discovery, Self::Reports, Self::Sealed];

    /// The name in the record.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Discovery => "discovery",
            Self::Reports => "reports",
            Self::Sealed => "sealed",
        }
    }

    fn of(campaign: &Campaign, stream: Stream) -> Self {
        match stream {
            Stream::Discovery => Self::Discovery,
            Stream::Reports if campaign.noise.is_some() => Self::Sealed,
            Stream::Reports => Self::Reports,
        }
    }
}

/// Reports that are about to be made.
pub(crate) struct Request<'a> {
    pub(crate) campaign: &'a Campaign,
    pub(crate) stream: Stream,
    pub(crate) number: u64,
    /// When the reports are due, in milliseconds since 1970, if they count in the window of this moment; none: now.
    pub(crate) due: Option<i64>,
    /// The client repeats an answer of this epoch, which was charged when it was drawn.
    pub(crate) repeats: bool,
}

/// The cost of the reports of one kind of a campaign, in units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    /// Reports that were charged, or that repeat a charged answer.
    pub(crate) reports: u64,
    /// Reports that depend on no value, because the budget was spent.
    pub(crate) blank: u64,
    pub(crate) epsilon: u64,
    pub(crate) delta: u64,
}

/// All charges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Charged {
    /// Epsilon that was charged, by UTC day, such as 2026-11-23, for the last days that the clock showed.
    pub(crate) days: Counts<String, u64>,
    pub(crate) opted_out: bool,
    /// By the campaign's id and what was charged.
    pub(crate) lines: BTreeMap<(String, SpentOn), Line>,
}

impl Charged {
    /// Return all epsilon that was charged, in units.
    pub(crate) fn total(&self) -> u64 {
        self.lines.values().fold(0, |sum, line| sum.saturating_add(line.epsilon))
    }

    /// Return the epsilon that was charged on a day, in units.
    pub(crate) fn on(&self, day: &str) -> u64 {
        count_of(&self.days, &day.to_owned()).unwrap_or(0)
    }

    /// Return the units that are left of the day's and of the lifetime's limit; 0 if a limit is below the spent
    /// amount.
    pub(crate) fn left(&self, limits: &Limits, day: &str) -> (u64, u64) {
        let today = limit_units(limits.per_day).saturating_sub(self.on(day));
        (today, limit_units(limits.lifetime).saturating_sub(self.total()))
    }

    /// Require that the person did not opt out.
    ///
    /// # Errors
    /// `OptedOut`.
    pub(crate) fn require_opted_in(&self) -> Result<()> {
        if self.opted_out {
            let message = "the person opted out: nothing is made until Budget::opt_in is called";
            return Err(Error::new(Kind::OptedOut, message));
        }
        Ok(())
    }

    /// Charge reports that are about to be made. Return how many of the reports may depend on values: the first of
    /// them, and not the other reports.
    ///
    /// Of reports that repeat answers, either all may depend on values, or none. Nothing here depends on a value.
    ///
    /// # Errors
    /// `OptedOut`; `BudgetSpent`: not all reports fit, and the app then wants none; `Usage`: the campaign has no such
    /// reports.
    pub(crate) fn charge(&mut self, limits: &Limits, request: &Request<'_>, now: i64) -> Result<u64> {
        self.require_opted_in()?;
        let Request { campaign, stream, number, .. } = *request;
        let (day, cost) = (day_of_clock(now), Cost::of(campaign, stream)?);
        let left = self.left(limits, &day);
        let (telling, charges) = fitting(cost, left.0.min(left.1), request);
        if telling < number && limits.when_spent == WhenSpent::Nothing {
            return Err(refusal(request, cost, &day, left));
        }
        let epsilon = charges.saturating_mul(cost.epsilon);
        let line = self.lines.entry((campaign.id.clone(), SpentOn::of(campaign, stream))).or_default();
        line.reports = more(line.reports, telling);
        line.blank = more(line.blank, number - telling);
        line.epsilon = line.epsilon.saturating_add(epsilon);
        line.delta = line.delta.saturating_add(charges.saturating_mul(cost.delta)).min(WHOLE_DELTA);
        let epsilon = self.on(&day).saturating_add(epsilon);
        change_count(&mut self.days, day, epsilon);
        Ok(telling)
    }
}

/// Return the UTC day that a clock shows, of the years 1970 to 9999.
pub(crate) fn day_of_clock(now: i64) -> String {
    day_text(now.clamp(0, LAST_MILLIS))
}

/// Return how many reports may depend on values, and the number of charges for them.
fn fitting(cost: Cost, left: u64, request: &Request<'_>) -> (u64, u64) {
    if !cost.lasting {
        let telling = request.number.min(left.checked_div(cost.epsilon).unwrap_or(0));
        return (telling, telling);
    }
    let first = u64::from(request.number > 0 && !request.repeats);
    if first.saturating_mul(cost.epsilon) <= left { (request.number, first) } else { (0, 0) }
}

fn refusal(request: &Request<'_>, cost: Cost, day: &str, (today, ever): (u64, u64)) -> Error {
    let Request { campaign, stream, number, .. } = request;
    let epsilon = |units| of_units(units, EPSILON_DIGITS);
    let (left, how) = (epsilon(today.min(ever)), if cost.lasting { "an epoch" } else { "each" });
    let until = if today < ever {
        format!("on {day}: wait for the next day, UTC")
    } else {
        "for the lifetime, which no day renews".to_owned()
    };
    let message = format!(
        "the budget does not allow {number} more {} of campaign {} at epsilon {} {how}: epsilon {left} is left {until}",
        stream.name(),
        campaign.id,
        epsilon(cost.epsilon)
    );
    Error::new(Kind::BudgetSpent, message)
}

/// Add to a count of reports, which a record holds exactly as a double.
fn more(count: u64, added: u64) -> u64 {
    count.saturating_add(added).min(MOST_INTEGER)
}
