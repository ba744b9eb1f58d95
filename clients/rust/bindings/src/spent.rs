//! The cost of a client's reports so far.

use hushcount::SpentOn;

/// The reports that are charged apart.
#[uniffi::remote(Enum)]
pub enum SpentOn {
    /// Discovery reports.
    Discovery,
    /// Frequency reports that are randomised.
    Reports,
    /// Frequency reports of a campaign with noise of the mixes, which are sealed, and not randomised.
    Sealed,
}

/// The cost of the reports of one kind of a campaign, over all its epochs.
#[derive(uniffi::Record)]
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
#[derive(uniffi::Record)]
pub struct Spent {
    /// Sentences for the person. Each sentence is true by itself, and its figures are rounded so that the sentence
    /// never promises too much.
    pub words: Vec<String>,
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

impl From<hushcount::StreamSpent> for StreamSpent {
    fn from(spent: hushcount::StreamSpent) -> Self {
        Self {
            campaign: spent.campaign,
            stream: spent.stream,
            reports: spent.reports,
            blank: spent.blank,
            epsilon: spent.epsilon,
            delta: spent.delta,
        }
    }
}

impl From<hushcount::Spent> for Spent {
    fn from(spent: hushcount::Spent) -> Self {
        Self {
            words: spent.words(),
            streams: spent.streams.into_iter().map(Into::into).collect(),
            day: spent.day,
            today: spent.today,
            epsilon: spent.epsilon,
            delta: spent.delta,
            per_day: spent.per_day,
            lifetime: spent.lifetime,
            left_today: spent.left_today,
            left: spent.left,
            silent: spent.silent,
            opted_out: spent.opted_out,
        }
    }
}
