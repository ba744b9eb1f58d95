//! Mechanisms of vectors, and what is wrong with a packed report.

use num_bigint::BigUint;
use serde_json::Value;

use super::support::text;
use crate::campaigns::sections::MechanismTerms;
use crate::errors::Result;
use crate::oracles::design::Design;
use crate::oracles::mechanism::Mechanism;
use crate::wire::subsets::{Form, SubsetField};

/// What a refusal says, by its reason.
pub(super) const SAID: &[(&str, &[&str])] = &[
    ("epsilon_out_of_range", &["epsilon is "]),
    ("probability_out_of_range", &["probability must be in"]),
    ("keep_out_of_range", &["p must be above 0 and below 1"]),
    ("width_out_of_range", &["width is "]),
    ("size_out_of_range", &["s is "]),
    ("says_nothing", &["p must be above s/m, at which reports say nothing"]),
    ("unknown_mechanism", &["mechanism must be one of grr, "]),
    ("missing_parameter", &["lacks the parameter"]),
    ("unknown_parameter", &["takes only these parameters"]),
    ("parameter_out_of_range", &["must be"]),
    ("wrong_type", &["must be an integer", "must be a number"]),
    ("domain_out_of_range", &["domain is "]),
    ("needs_dictionary", &["needs a dictionary"]),
    ("unknown_design", &["design must be width-size-digest"]),
    ("spends_more", &["it spends more than epsilon"]),
];

/// Return the mechanism of an entry with its domain; `designs` are the app's.
pub(super) fn built(entry: &Value, designs: &[Design]) -> Result<Mechanism> {
    let terms = &entry["mechanism"];
    let terms = MechanismTerms {
        name: text(terms, "name").to_owned(),
        epsilon: terms["epsilon"].as_f64().unwrap(),
        parameters: terms["parameters"].as_object().unwrap().clone(),
    };
    // No domain is negative in this client; -1 becomes 2**64 - 1, which must be refused too.
    Mechanism::build(&terms, entry["domain"].as_i64().map(|domain| domain as u64), designs)
}

/// The file of designs that Python has.
pub(super) fn shipped() -> Vec<u8> {
    std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../hushcount/designs/designs.json")).unwrap()
}

/// What different reports there are.
pub(super) struct Layout {
    pub(super) answers: BigUint,
    pub(super) length: usize,
    pub(super) codes: BigUint,
    pub(super) subset: Option<SubsetField>,
}

/// Return why these bytes are no report of a layout, as a server that unpacks it names the reason.
///
/// A client packs only, so what it must not make is told from what its layout says.
pub(super) fn fault(packed: &[u8], layout: &Layout) -> Option<&'static str> {
    let integer = BigUint::from_bytes_le(packed);
    if packed.len() != layout.length {
        return Some("wrong_length");
    }
    if integer >= layout.answers {
        return Some("not_below_answers");
    }
    let code = integer / (&layout.answers / &layout.codes);
    let SubsetField { form, bound, count } = layout.subset?;
    match form {
        Form::Rank => None,
        Form::Bitmap => (code.count_ones() != count).then_some("wrong_number_of_cells"),
        Form::List => {
            let step = u64::BITS - (bound - 1).leading_zeros();
            let cells: Vec<BigUint> =
                (0..count).map(|place| (&code >> (place * u64::from(step))) % (1u64 << step)).collect();
            let is_outside = cells.iter().any(|cell| *cell >= BigUint::from(bound));
            let ascends = cells.is_sorted_by(|one, other| one < other);
            is_outside.then_some("cell_out_of_range").or((!ascends).then_some("not_ascending"))
        }
    }
}
