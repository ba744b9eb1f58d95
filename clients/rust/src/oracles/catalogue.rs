//! The catalogue of frequency oracles: builds a mechanism from its name and its parameters in a campaign file.

use serde_json::Value;

use super::design::Design;
use super::mechanism::Mechanism;
use super::parameters::Parameters;
use super::recipes;
use crate::campaigns::sections::MechanismTerms;
use crate::errors::{Error, Result};

const MOST_ITEMS: u64 = (1 << 31) - 1;

/// What the reports of a mechanism hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// One cell, or a window of cells.
    Cells,
    /// Several items: a subset, or one bit for each item.
    Sets,
    /// Cells of functions that are fixed for the campaign.
    Pools,
    /// A row of a weighted design.
    Weighted,
    /// A window on a line, for the mean of numbers.
    Lines,
}

/// A mechanism: its name, its family, the letters of its parameters, with a question mark after optional letters, and
/// whether it works without a dictionary.
type Line = (&'static str, Family, &'static str, bool);

const CATALOGUE: [Line; 21] = [
    ("grr", Family::Cells, "", false),
    ("ss", Family::Sets, "s", false),
    ("wss", Family::Weighted, "design s?", false),
    ("sue", Family::Sets, "", false),
    ("oue", Family::Sets, "", false),
    ("rappor", Family::Pools, "k m seed", true),
    ("apple-cms", Family::Pools, "k m seed", true),
    ("hcms", Family::Pools, "k m seed", true),
    ("gcms", Family::Pools, "k m seed s p?", true),
    ("gcms-target", Family::Pools, "k m seed s f", true),
    ("he", Family::Cells, "", false),
    ("hr", Family::Cells, "", false),
    ("rhr", Family::Cells, "b", false),
    ("blh", Family::Cells, "B", true),
    ("olh", Family::Cells, "B", true),
    ("ocms", Family::Cells, "B", true),
    ("ocms-mse", Family::Cells, "B f", true),
    ("ocms-l2", Family::Cells, "B", true),
    ("ocms-round", Family::Cells, "B", true),
    ("ais", Family::Cells, "s", true),
    ("line", Family::Lines, "m b", false),
];

/// Return the family of a mechanism.
///
/// # Errors
/// `Format`: no mechanism has this name.
pub(crate) fn family_of(name: &str) -> Result<Family> {
    Ok(line_of(name)?.1)
}

/// Build the mechanism of a campaign; see `Mechanism::build`.
pub(super) fn build(terms: &MechanismTerms, domain: Option<u64>, designs: &[Design]) -> Result<Mechanism> {
    let (name, _, letters, is_open) = line_of(&terms.name)?;
    let values = &terms.parameters;
    let known: Vec<&str> = letters.split_whitespace().map(|letter| letter.trim_end_matches('?')).collect();
    let needed = letters.split_whitespace().filter(|letter| !letter.ends_with('?'));
    if let Some(missing) = needed.into_iter().find(|letter| !values.contains_key(*letter)) {
        return Err(Error::format(format!("mechanism {name} lacks the parameter {missing}")));
    }
    if values.keys().any(|letter| !known.contains(&letter.as_str())) {
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        return Err(Error::format(format!("mechanism {name} takes only these parameters: {known}")));
    }
    match domain {
        Some(items) => require_domain(items)?,
        None if is_open => {}
        None => return Err(Error::format(format!("mechanism {name} needs a dictionary"))),
    }
    if known.contains(&"f") {
        require_share(values.get("f"), name == "ocms-mse")?;
    }
    recipes::build(name, &Parameters { epsilon: terms.epsilon, domain, values, designs })
}

/// Check the number of items, "other" included.
///
/// # Errors
/// `Format`: it is not in 2..2**31.
pub(super) fn require_domain(domain: u64) -> Result<()> {
    if (2..=MOST_ITEMS).contains(&domain) {
        return Ok(());
    }
    Err(Error::format(format!("domain is {domain}, must be in 2..{MOST_ITEMS} items, \"other\" included")))
}

fn line_of(name: &str) -> Result<Line> {
    CATALOGUE.into_iter().find(|line| line.0 == name).ok_or_else(|| {
        let names = CATALOGUE.map(|line| line.0).join(", ");
        Error::format(format!("mechanism must be one of {names}"))
    })
}

fn require_share(share: Option<&Value>, above: bool) -> Result<()> {
    let share = share.and_then(Value::as_f64).filter(|&share| share <= 1.0 && (share > 0.0 || share == 0.0 && !above));
    let from = if above { "(0" } else { "[0" };
    share.map(|_| ()).ok_or_else(|| Error::format(format!("f must be a number in {from}, 1]")))
}
