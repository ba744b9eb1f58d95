//! Primes, coefficients of pools, cells of items, mechanisms that no campaign may have, and files of designs.

use serde_json::{Value, json};

use super::mechanisms::{SAID, built, shipped};
use super::support::{entries, require_refused, text};
use crate::maths::primes::prime_at_least;
use crate::oracles::design::Design;
use crate::oracles::encoder::{Affine, Encoder, Hadamard, prime_of};
use crate::oracles::pool::Pool;

fn made(entry: &Value) -> Value {
    let large = |field| text(entry, field).parse::<u64>().unwrap();
    let small = |field: &str| entry[field].as_u64().unwrap();
    match text(entry, "encoder") {
        "prime" => json!({ "prime": prime_at_least(small("domain")).to_string() }),
        "pool" => {
            let pool = Pool::new(small("k").into(), small("m").into(), &entry["seed"]).unwrap();
            let cell = Encoder::Pool(pool).cell(large("item"), &[small("row")]);
            let coefficients = pool.coefficients(small("row")).map(|number| number.to_string());
            json!({ "coefficients": coefficients, "cell": cell.to_string() })
        }
        "affine" => {
            let prime = prime_of(entry["domain"].as_u64());
            let encoder = Encoder::Affine(Affine::new(prime, large("buckets").into()).unwrap());
            let named: Vec<u64> =
                ["slope", "shift"].into_iter().filter(|name| !entry[*name].is_null()).map(large).collect();
            assert_eq!(encoder.fields().len(), named.len());
            json!({ "prime": prime.to_string(), "cell": encoder.cell(large("item"), &named).to_string() })
        }
        "hadamard" => {
            let encoder = Encoder::Signs(Hadamard::new(small("domain"), small("blocks")));
            let cell = encoder.cell(large("item"), &[small("column")]);
            json!({ "order": encoder.fields()[0].bound, "cell": cell.to_string() })
        }
        encoder => panic!("{encoder} is not known"),
    }
}

#[test]
fn accepts() {
    let entries = entries("encoders", "accept");
    assert!(entries.len() >= 62);
    for entry in &entries {
        for (name, value) in made(entry).as_object().unwrap() {
            assert_eq!(*value, entry[name], "{name} of {entry}");
        }
    }
}

#[test]
fn refuses() {
    let entries = entries("encoders", "refuse");
    assert!(entries.len() >= 69);
    let designs = Design::parse(&shipped()).unwrap();
    for entry in &entries {
        require_refused(built(entry, &designs), entry, SAID);
    }
}

#[test]
fn a_file_is_refused_if_its_design_is_another_one_than_its_digest_says() {
    let mut file: Value = serde_json::from_slice(&shipped()).unwrap();
    file["designs"][0]["weights"][0] = json!(1);
    let said = Design::parse(file.to_string().as_bytes()).unwrap_err().to_string();
    assert!(said.contains("digest is not that of the design"), "{said}");
}
