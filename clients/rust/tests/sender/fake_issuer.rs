//! An issuer that a test steers, with the key of RFC 9578, appendix B; what signs here is not constant in time.

use num_bigint::BigUint;
use serde_json::{Value, json};

use super::fake_collector::DAY;
use crate::formats::bytes::{hash, hex, unhex};
use crate::formats::times::day_text;
use crate::passes::blind::KEY_BYTES;
use crate::sender::http::{Failure, Request, Response};
use crate::vectors::support::{bytes, entries};

pub(super) const ISSUER: &str = "https://issuer.example";
/// The first day with passes, and how many there are.
const FIRST: i64 = 20_782;
const DAYS: usize = 5;
/// The private exponent of the vectors' key in parts: the key is public.
const EXPONENT: [&str; 5] = [
    "2f309b7738b58cf779f0c915f822dfc9f490dbeadf1e7adfac578ffd5703c6bba2da9d5a49725889b7ba112f8c6ff30551d9473e000bc3",
    "5c50e167ab7fa73a0c2b21965c4b59257c1ac06cbdcf28e863f6718ea8c29043c1c6da84629490fd0491bf52d172c959c1921b96949c72",
    "5747b8a7c7871995fa0b9eb1107ba854c6c32a6f4747c5d1c304c7467d55b080aa233a3a52ffdf26114cbb541ffa6b696b7a096f8dcff6",
    "9ca08ab58efb0fb753aa5185c73001696bbce8c099e3f435dcbbfe05e7dbaad23db2a659c23add521407f150b1af2d9054c4164229d684",
    "0b7a32a4f8481493ae8959cf0aea8def0c3c9f75b9a34c75718b7072c8dbab17cefeca49",
];

fn modulus() -> Vec<u8> {
    bytes(&entries("passes", "accept")[0], "modulus")
}

/// Return the section of a campaign file on passes that are good for a day.
pub(super) fn section(parties: usize) -> Value {
    let days = vec![hex(&hash::<32>(&[&modulus().repeat(parties)], "pass keys")); DAYS];
    json!({"seconds": 86_400, "first": day_text(FIRST * DAY), "days": days})
}

/// What an issuer answers, which may change at any time, and what was posted to it.
#[derive(Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fault of its own")]
pub(super) struct Issuing {
    pub(super) parties: usize,
    /// The query, the authorization, the body.
    pub(super) requests: Vec<(String, String, Vec<u8>)>,
    pub(super) gets: usize,
    pub(super) is_failing: bool,
    pub(super) loses_answers: bool,
    pub(super) has_wrong_keys: bool,
    pub(super) has_wrong_signatures: bool,
}

impl Issuing {
    pub(super) fn exchange(&mut self, request: &Request<'_>) -> Result<Response, Failure> {
        let query = request.url.strip_prefix("https://issuer.example/v1/campaigns/words/passes?").unwrap();
        let Some(body) = request.body else {
            assert!(request.headers.is_empty());
            self.gets += 1;
            let mut keys = modulus().repeat(self.parties);
            keys[100] ^= u8::from(self.has_wrong_keys);
            return Ok(self.answer(keys));
        };
        let shown = request.headers.iter().find(|(name, _)| *name == "Authorization").unwrap();
        self.requests.push((query.to_owned(), shown.1.clone(), body.to_vec()));
        if self.loses_answers {
            return Err(Failure::TooSlow);
        }
        let modulus = BigUint::from_bytes_be(&modulus());
        let exponent = BigUint::from_bytes_be(&unhex(&EXPONENT.concat()).unwrap());
        let exponent = exponent + u32::from(self.has_wrong_signatures);
        let signatures = body.chunks(3 + KEY_BYTES).flat_map(|one| {
            let signed = BigUint::from_bytes_be(&one[3..]).modpow(&exponent, &modulus).to_bytes_be();
            [vec![0; KEY_BYTES - signed.len()], signed].concat()
        });
        Ok(self.answer(signatures.collect()))
    }

    fn answer(&self, body: Vec<u8>) -> Response {
        if self.is_failing {
            let body = json!({"type": "urn:hushcount:problem:rule_failing"}).to_string().into_bytes();
            let headers = vec![("content-type".to_owned(), "application/problem+json".to_owned())];
            return Response { status: 503, headers, body };
        }
        let headers = vec![("Content-Type".to_owned(), "application/octet-stream".to_owned())];
        Response { status: 200, headers, body }
    }
}
