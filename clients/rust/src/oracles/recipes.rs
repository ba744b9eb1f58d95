//! How the named frequency oracles are made of an encoder and a responder.

use serde_json::Value;

use super::design::Design;
use super::encoder::{Affine, Encoder, Hadamard, prime_of};
use super::mechanism::Mechanism;
use super::parameters::Parameters;
use super::pool::Pool;
use super::responder::Responder;
use super::weighted::WeightedRows;
use crate::errors::{Error, Result};
use crate::formats::canonical_json::number_text;
use crate::maths::thresholds::{WORD_VALUES, probability_threshold, spending_flip, spending_threshold};

const HALF: i128 = WORD_VALUES / 2;
const MOST_TALLY_CELLS: i128 = 1 << 28;
const MOST_POINTS: i128 = 256;

/// Build the mechanism of a name in the catalogue.
///
/// # Errors
/// `Format`: a parameter is of the wrong type or out of range; the error names it.
pub(super) fn build(name: &str, given: &Parameters<'_>) -> Result<Mechanism> {
    let (epsilon, items) = (given.epsilon, given.items());
    let over_items = |responder| Ok(Mechanism::new(given.domain, Encoder::Identity { cells: items }, responder));
    let signs = |blocks| cell_of(given, Encoder::Signs(Hadamard::new(items, blocks)));
    match name {
        "grr" => over_items(kept_cell(epsilon, items)?),
        "sue" => over_items(Responder::symmetric(epsilon, items)?),
        "oue" => over_items(Responder::unary(items, HALF, spending_flip(epsilon, HALF)?)?),
        "ss" => {
            let size = given.integer("s")?;
            over_items(Responder::subset(items, size, spending_threshold(epsilon, items.into(), size)?)?)
        }
        "wss" => weighted(given),
        "rappor" | "apple-cms" => {
            let pool = pool_of(given)?;
            Ok(Mechanism::new(None, Encoder::Pool(pool), Responder::symmetric(epsilon, pool.cells())?))
        }
        "hcms" => {
            let pool = pool_of(given)?;
            let encoder = Encoder::PoolSigns(pool, Hadamard::new(pool.cells(), 1));
            Ok(Mechanism::new(None, encoder, kept_cell(epsilon, 2)?))
        }
        "gcms" | "gcms-target" => pool_subset(given),
        "he" | "hr" => signs(1),
        "rhr" => signs(blocks_of(given)?),
        "ais" => windows(given),
        "line" => line(given),
        // blh, olh, and ocms with all its variants.
        _ => cell_of(given, Encoder::Affine(Affine::new(prime_of(given.domain), given.integer("B")?)?)),
    }
}

/// Return the responder that spends epsilon on one of its cells.
fn kept_cell(epsilon: f64, cells: u64) -> Result<Responder> {
    Responder::randomised_response(cells, spending_threshold(epsilon, cells.into(), 1)?)
}

fn cell_of(given: &Parameters<'_>, encoder: Encoder) -> Result<Mechanism> {
    let responder = kept_cell(given.epsilon, encoder.cells())?;
    Ok(Mechanism::new(given.domain, encoder, responder))
}

fn blocks_of(given: &Parameters<'_>) -> Result<u64> {
    let (bits, most) = (given.integer("b")?, given.items().ilog2() + 1);
    if !(1..=i128::from(most)).contains(&bits) {
        return Err(Error::format(format!("b is {bits}, must be in 1..{most}")));
    }
    Ok(1 << (bits - 1))
}

fn windows(given: &Parameters<'_>) -> Result<Mechanism> {
    let (prime, size) = (prime_of(given.domain), given.integer("s")?);
    let responder = Responder::interval(prime, size, spending_threshold(given.epsilon, prime.into(), size)?)?;
    Ok(Mechanism::new(given.domain, Encoder::Affine(Affine::new(prime, prime.into())?), responder))
}

fn line(given: &Parameters<'_>) -> Result<Mechanism> {
    let (points, spare) = (given.integer("m")?, given.integer("b")?);
    if given.domain != Some(2) {
        return Err(Error::format("mechanism line needs a dictionary of one item"));
    }
    if !(2..=MOST_POINTS).contains(&points) {
        return Err(Error::format(format!("m must be in 2..{MOST_POINTS}")));
    }
    if !(0..=points).contains(&spare) {
        return Err(Error::format(format!("b must be in 0..{points}")));
    }
    let (cells, size) = (points + 2 * spare, 2 * spare + 1);
    let keep = spending_threshold(given.epsilon, cells, size)?;
    let responder = Responder::interval(cells as u64, size, keep)?;
    Ok(Mechanism::new(Some(points as u64), Encoder::Points { cells: cells as u64 }, responder))
}

fn pool_of(given: &Parameters<'_>) -> Result<Pool> {
    let (k, m) = (given.integer("k")?, given.integer("m")?);
    let pool = Pool::new(k, m, given.values.get("seed").unwrap_or(&Value::Null))?;
    if k > 1 && k * m > MOST_TALLY_CELLS {
        return Err(Error::format("k times m must be at most 2**28 cells of the tally"));
    }
    Ok(pool)
}

fn pool_subset(given: &Parameters<'_>) -> Result<Mechanism> {
    let (pool, size) = (pool_of(given)?, given.integer("s")?);
    let most = spending_threshold(given.epsilon, pool.cells().into(), size)?;
    let stated = given.values.get("p").map(|p| p.as_f64().ok_or_else(|| Error::format("p must be a number")));
    let stated = stated.transpose()?;
    let keep = stated.map_or(Ok(most), |p| probability_threshold(p, "p"))?;
    let responder = Responder::subset(pool.cells(), size, keep)?;
    if keep > most {
        let [p, epsilon] = [stated.unwrap_or_default(), given.epsilon].map(number_text);
        return Err(Error::format(format!("p is {p}: it spends more than epsilon, {epsilon}")));
    }
    Ok(Mechanism::new(None, Encoder::Pool(pool), responder))
}

fn weighted(given: &Parameters<'_>) -> Result<Mechanism> {
    let name = given.values.get("design").and_then(Value::as_str).unwrap_or_default();
    let design = Design::named(name, given.designs)?;
    if design.width() < given.items() {
        let cells = design.width();
        return Err(Error::format(format!("the design has {cells} cells, must have one for each item")));
    }
    if given.values.get("s").is_some_and(|size| size.as_f64() != Some(design.size() as f64)) {
        return Err(Error::format(format!("s must be {}, or left out", design.size())));
    }
    let encoder = Encoder::Identity { cells: design.width() };
    Ok(Mechanism::new(given.domain, encoder, Responder::Rows(WeightedRows::new(given.epsilon, design)?)))
}
