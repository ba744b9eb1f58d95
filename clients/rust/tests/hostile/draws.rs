//! Draws mutations of bytes and of JSON: always the same ones of a seed.

use serde_json::{Value, json};

use crate::formats::bytes::hash;

/// A text that is longer than an id, and otherwise has the form of one.
pub(crate) const MARK: &str = "hostile-hostile-hostile-hostile-hostile-hostile-hostile-hostile-hostile-hostile-";
/// What JSON and the numbers in it are written with, and what they must not be.
const TOKENS: [&str; 28] = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "\\ud800",
    "\\u0000",
    "-",
    "-0",
    "0",
    "1e400",
    "1e-400",
    "0.5",
    "1e308",
    "9007199254740991",
    "9007199254740992",
    "18446744073709551615",
    "18446744073709551616",
    "null",
    "true",
    "\u{feff}",
    "\u{202e}",
    "\u{10ffff}",
    " ",
    "\n",
];

fn stated(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} must be a number")))
}

/// Return how many cases to draw in place of so many.
pub(crate) fn number(cases: usize) -> usize {
    cases * stated("HUSHCOUNT_TIMES").unwrap_or(1) as usize
}

/// Pseudorandom choices of one subject.
pub(crate) struct Draws(u64);

impl Draws {
    pub(crate) fn new(subject: &str) -> Self {
        let seed = stated("HUSHCOUNT_SEED").unwrap_or(0).to_le_bytes();
        Self(u64::from_le_bytes(hash(&[&seed, subject.as_bytes()], "hostile draws")))
    }

    /// Draw a word (`SplitMix64`).
    pub(crate) fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let word = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    }

    /// Draw a number below a bound, which may be 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.word() % bound.max(1) as u64) as usize
    }

    pub(crate) fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    /// Draw a length, more often a small one: 1 to 128.
    pub(crate) fn length(&mut self) -> usize {
        let most = 1 << self.below(8);
        1 + self.below(most)
    }

    /// Return a seed with 1 to 3 mutations, of its data if it is JSON, or of its bytes.
    pub(crate) fn mutated(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        let mut made = self.one(seeds).clone();
        for _ in 0..=self.below(3) {
            let other = self.one(seeds);
            made = match (self.below(3), serde_json::from_slice(&made)) {
                (1.., Ok(mut data)) => {
                    self.change(&mut data, &serde_json::from_slice(other).unwrap_or_default());
                    serde_json::to_vec(&data).unwrap()
                }
                _ => self.broken(made, other),
            };
        }
        made
    }

    fn broken(&mut self, mut bytes: Vec<u8>, other: &[u8]) -> Vec<u8> {
        let (at, long) = (self.below(bytes.len() + 1), self.length());
        let end = bytes.len().min(at + long);
        match self.below(8) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..end)),
            2 => drop(bytes.splice(at..at, bytes[at..end].to_vec())),
            3 => drop(bytes.splice(at.., other[self.below(other.len())..].iter().copied())),
            4 => drop(bytes.splice(at..at, self.one(&["[", "{\"a\":", "\""]).repeat(long).into_bytes())),
            5 => drop(bytes.splice(at..end, self.one(&TOKENS).bytes())),
            6 => drop(bytes.splice(at..at, MARK.bytes())),
            _ if at < bytes.len() => bytes[at] ^= 1 << self.below(8),
            _ => bytes.push(self.word() as u8),
        }
        bytes
    }

    /// Change one part of data, at any depth, perhaps to that of other data.
    fn change(&mut self, place: &mut Value, donor: &Value) {
        let goes_on = self.below(8) > 0;
        match place {
            Value::Object(fields) if goes_on && !fields.is_empty() => {
                let at = self.below(fields.len());
                if let Some((name, value)) = fields.iter_mut().nth(at) {
                    self.change(value, donor.get(name).unwrap_or(donor));
                }
            }
            Value::Array(values) if goes_on && !values.is_empty() => {
                let at = self.below(values.len());
                self.change(&mut values[at], donor.get(at).unwrap_or(donor));
            }
            _ => match self.below(4) {
                0 => *place = self.extreme(),
                1 => place.clone_from(donor),
                _ => self.bend(place),
            },
        }
    }

    /// Return a value that hardly any field may have.
    fn extreme(&mut self) -> Value {
        let numbers = [json!(-1), json!(0), json!(1), json!(0.5), json!(1e308), json!(5e-324), json!((1u64 << 53) - 1)];
        let large = [json!(u64::MAX), json!(i64::MIN), json!((1u64 << 31) - 1), json!(1u64 << 24), json!(40), json!(2)];
        let others = [json!(null), json!(true), json!(""), json!(MARK), json!([]), json!({}), json!("é\u{0}\u{202e}")];
        let nested = (0..self.below(40)).fold(json!([]), |inner, _| json!([inner]));
        let long = json!(vec![self.below(9); 5000]);
        self.one(&[&numbers[..], &large, &others, &[nested, long]].concat()).clone()
    }

    /// Change a value a little.
    fn bend(&mut self, value: &mut Value) {
        match value {
            Value::Object(fields) => match fields.keys().nth(self.below(fields.len() + 1)).cloned() {
                Some(name) => drop(fields.remove(&name)),
                None => drop(fields.insert(MARK.to_owned(), json!(1))),
            },
            Value::Array(values) if !values.is_empty() => {
                let at = self.below(values.len());
                let one = values[at].clone();
                match self.below(3) {
                    0 => drop(values.remove(at)),
                    1 => values.insert(at, one),
                    _ => values.swap(at, 0),
                }
            }
            Value::Number(number) => {
                let old = number.as_f64().unwrap_or_default();
                let new = *self.one(&[old + 1.0, old - 1.0, -old, old * 2.0, old / 2.0, old * 1e9, old.sqrt()]);
                *value = if new.fract() == 0.0 && new.abs() < 9e15 { json!(new as i64) } else { json!(new) };
            }
            Value::String(text) => *text = String::from_utf8_lossy(&self.broken(text.as_bytes().to_vec(), b"a")).into(),
            _ => *value = self.extreme(),
        }
    }
}
