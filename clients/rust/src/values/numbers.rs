//! Numbers: a client replaces a number by the name of its bin, or for a mean by one of two points beside it.

use serde_json::Value;

use crate::campaigns::campaign::NAME;
use crate::campaigns::sections::{Listed, MechanismTerms};
use crate::errors::{Error, Result};
use crate::formats::bytes::hash;
use crate::formats::fields::{Fields, whole_of};
use crate::randomness::Randomness;

const MOST_EDGES: usize = 1023;
/// The most characters of a text that is read as a number; the text of a double has at most 25.
const MOST_DIGITS: usize = 40;
const MOST_UNIT: usize = 16;
/// The mechanism of a mean.
const LINE: &str = "line";

/// The section of a campaign file on numbers.
#[derive(Clone, Debug)]
pub(crate) enum Numbers {
    /// Bins, with rising edges, and the name of each bin, the lowest first.
    Bins { edges: Vec<f64>, names: Vec<String> },
    /// A mean: the ends of a range, low below high, and the highest point of the mechanism's line, at least 1.
    Mean { low: f64, high: f64, last: u64 },
}

/// What stands for a number.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Bin {
    /// The name of a bin, in the dictionary; the empty text counts as "other".
    Name(String),
    /// The item of a line, which is drawn: its mean is the number.
    Item(u64),
}

/// The fields of the section.
struct Section<'a> {
    edges: Vec<&'a str>,
    values: Vec<f64>,
    unit: &'a str,
    mean: bool,
}

impl Numbers {
    /// Check the section, together with the others that it needs. A campaign without terms and discovery has noise.
    ///
    /// # Errors
    /// `Format`: the section has a wrong field, the dictionary does not list its names in random order, or the campaign
    /// has discovery, or another mechanism than the section needs.
    pub(crate) fn parse(
        data: &Value,
        terms: Option<&MechanismTerms>,
        dictionary: Option<&Listed>,
        has_discovery: bool,
    ) -> Result<Self> {
        let Some(Section { edges, values, unit, mean }) = section_of(data) else {
            let message = format!("number must have 1 to {MOST_EDGES} decimal edges that rise, a unit, and mean");
            return Err(Error::format(message));
        };
        let names = names_of(&edges, unit, mean);
        let digest = digest_of(&names);
        let is_listed = dictionary.is_some_and(|listed| listed.items == names.len() as u64 && listed.digest == digest);
        let line = terms.filter(|terms| terms.name == LINE);
        let points = line.and_then(|terms| terms.parameters.get("m")).and_then(whole_of);
        let has_all = is_listed && !has_discovery && line.is_some() == mean;
        match (&values[..], points) {
            (&[low, high], Some(points @ 2..)) if has_all => Ok(Self::Mean { low, high, last: points - 1 }),
            _ if has_all && !mean => Ok(Self::Bins { edges: values, names }),
            // The mechanism itself, which is built later, would refuse it too.
            _ if has_all => Err(Error::format(format!("{NAME}: mechanism: m must be a whole number of at least 2"))),
            _ => Err(Error::format(
                "number needs its mechanism, no discovery, and a dictionary of its items in random order",
            )),
        }
    }

    /// Return what stands for a text; a mean takes one word, whatever the text is.
    pub(crate) fn bin_of(&self, text: &str, random: &mut dyn Randomness) -> Bin {
        let number = number_of(text);
        match self {
            Self::Bins { edges, names } => {
                let place = number.map(|number| edges.partition_point(|&edge| edge <= number));
                Bin::Name(place.and_then(|place| names.get(place)).cloned().unwrap_or_default())
            }
            &Self::Mean { low, high, last } => {
                let number = number.unwrap_or(low).max(low).min(high);
                let place = (number - low) / (high - low) * last as f64;
                let below = place.floor().min((last - 1) as f64);
                let is_above = ((random.word() >> 11) as f64) < (place - below) * (1u64 << 53) as f64;
                Bin::Item(last - below as u64 - u64::from(is_above))
            }
        }
    }
}

/// Return the names of the items: of each bin, the lowest first, or for a mean of the upper end alone.
///
/// A bin of one count has the count's name.
pub(crate) fn names_of(edges: &[&str], unit: &str, mean: bool) -> Vec<String> {
    let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
    let last = edges.last().unwrap_or(&"");
    if mean {
        return vec![format!("{last}{unit}")];
    }
    let are_counts = edges.iter().enumerate().all(|(place, edge)| *edge == (place + 1).to_string());
    let lowers = std::iter::once(None).chain(edges.iter().map(Some));
    let below = lowers.zip(edges).enumerate().map(|(place, (lower, upper))| match lower {
        _ if are_counts => format!("{place}{unit}"),
        None => format!("below {upper}{unit}"),
        Some(lower) => format!("{lower} to {upper}{unit}"),
    });
    below.chain([format!("{last}{unit} or more")]).collect()
}

/// Return the digest of the dictionary that lists names in random order, by the hash of each name.
fn digest_of(names: &[String]) -> [u8; 32] {
    let mut placed: Vec<&String> = names.iter().collect();
    placed.sort_by_cached_key(|name| hash::<16>(&[name.as_bytes()], "hushcount order"));
    let lines: Vec<String> = placed.into_iter().map(|name| format!("{name}\n")).collect();
    hash(&[lines.concat().as_bytes()], "")
}

/// Return the section's fields, if each has its form.
fn section_of(data: &Value) -> Option<Section<'_>> {
    let fields = Fields::of(data, "number", &["edges", "unit", "mean"], &[]).ok()?;
    let is_visible = |sign| matches!(sign, '!'..='~' | '°' | 'µ' | 'Ω' | '€');
    let unit = fields.get("unit")?.as_str().filter(|unit| unit.chars().all(is_visible));
    let mean = fields.boolean("mean").ok()?;
    let edges = fields.list("edges", MOST_EDGES).ok()?.iter();
    let edges: Vec<&str> = edges.map(|edge| edge.as_str().filter(|edge| is_edge(edge))).collect::<Option<_>>()?;
    let values: Vec<f64> = edges.iter().map(|edge| edge.parse().ok()).collect::<Option<_>>()?;
    let is_form = !edges.is_empty() && values.is_sorted_by(|one, other| one < other) && (!mean || edges.len() == 2);
    let unit = unit.filter(|unit| is_form && unit.chars().count() <= MOST_UNIT)?;
    Some(Section { edges, values, unit, mean })
}

/// Return whether a text writes an edge: decimal digits, none of which adds nothing.
fn is_edge(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    match digits.split_once('.') {
        None => text == "0" || (are_digits(digits) && digits.len() <= 21 && !digits.starts_with('0')),
        Some((whole, fraction)) => {
            let is_whole = are_digits(whole) && whole.len() <= 15 && (whole == "0" || !whole.starts_with('0'));
            is_whole && are_digits(fraction) && fraction.len() <= 20 && !fraction.ends_with('0')
        }
    }
}

/// Return the number that a text writes in decimal digits, the nearest double; none if it writes none.
fn number_of(text: &str) -> Option<f64> {
    if text.len() > MOST_DIGITS {
        return None;
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (decimal, exponent) = digits.split_once('e').unwrap_or((digits, "0"));
    let (whole, fraction) = decimal.split_once('.').unwrap_or((decimal, "0"));
    let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    let is_number = digits == "Infinity" || [whole, fraction, exponent].into_iter().all(are_digits);
    if is_number { text.parse().ok() } else { None }
}

fn are_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}
