//! What a report costs, made and sealed, beside sealing alone: `cargo bench`. CPU times of one core; other work disturbs.

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

use hushcount::{Client, ClientOptions, Clock, Kind, Policy, Store, Stream};
use serde_json::Value;

const REPORTS: u32 = 2000;
const DAY: i64 = 86_400_000;

/// A clock that each look at it moves by a day, so that no report is over the cap.
struct Days(AtomicI64);

impl Clock for Days {
    fn now(&self) -> i64 {
        self.0.fetch_add(DAY, Ordering::Relaxed)
    }
}

fn main() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/v1/campaigns.json");
    let campaigns: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    println!("{:<24} {:>7.1} us", "sealed alone", sealing());
    for campaign in campaigns["accept"].as_array().unwrap() {
        if let Some(micros) = report(&campaign["file"]) {
            println!("{:<24} {micros:>7.1} us", campaign["name"].as_str().unwrap());
        }
    }
}

/// Return the microseconds of a sealed box, the limit of a report.
fn sealing() -> f64 {
    let key = crypto_box::SecretKey::from([7; 32]).public_key();
    let mut random = crypto_box::aead::OsRng;
    let begin = Instant::now();
    for _ in 0..REPORTS {
        black_box(key.seal(&mut random, &[0; 24]).unwrap());
    }
    begin.elapsed().as_secs_f64() * 1e6 / f64::from(REPORTS)
}

/// Return the microseconds of a frequency report; none if the campaign asks this client for none, lists
/// windows that end, or has another dictionary or design.
fn report(file: &Value) -> Option<f64> {
    let mut options = ClientOptions::new(serde_json::to_vec(file).unwrap(), Policy::trusting());
    options.dictionary = Some("one\ntwo\nthree\ngrößer\n".into());
    options.store = Some(Store::in_memory().unwrap());
    options.clock = Arc::new(Days(AtomicI64::new(1_795_000_000_000)));
    let client = Client::open(options).map_err(|error| assert_eq!(error.kind(), Kind::Format, "{error}")).ok()?;
    client.report("one").ok()?;
    let begin = Instant::now();
    for _ in 0..REPORTS {
        assert_eq!(black_box(client.report("one").ok()?).len(), client.sealed_bytes(Stream::Reports));
    }
    Some(begin.elapsed().as_secs_f64() * 1e6 / f64::from(REPORTS))
}
