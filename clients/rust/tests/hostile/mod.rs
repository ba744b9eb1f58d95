//! Mutated files, answers and values: nothing panics, whatever another party says, and every error is of a kind that
//! its parser states, is short, and repeats no text of the other party beyond an id.
//!
//! Each run draws the same cases. `HUSHCOUNT_SEED=<a number>` draws others, and `HUSHCOUNT_TIMES=<a number>` draws so
//! many times more: `HUSHCOUNT_TIMES=100 cargo test hostile`.

mod answers;
mod draws;
mod files;
mod values;

pub(crate) use draws::{Draws, MARK, number};

use std::ops::RangeInclusive;

use crate::errors::{Error, Kind, Result};
use crate::formats::bytes::hex;

/// The most characters of a message; the longest name 16 collectors or 21 mechanisms.
const MOST_MESSAGE: usize = 1500;
/// The longest id.
const MOST_ID: usize = 64;

/// A case, which is told if its test panics.
struct Case<'a>(&'a str, Vec<u8>);

impl Drop for Case<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("case of {}: {}\nin hexadecimal: {}", self.0, String::from_utf8_lossy(&self.1), hex(&self.1));
        }
    }
}

/// Let a parser read, and use what it accepts of, all seeds, which it must accept, and `cases` mutations of them.
///
/// `share` is what it accepts of a hundred mutations, whatever the seed; `kinds` are those of its errors.
fn attack(
    subject: &str,
    (cases, share): (usize, RangeInclusive<usize>),
    seeds: &[Vec<u8>],
    kinds: &[Kind],
    mut read: impl FnMut(&[u8]) -> Result<()>,
) {
    assert!(!seeds.is_empty(), "{subject} has no seeds");
    for seed in seeds {
        read(seed).unwrap_or_else(|error| panic!("{subject}: {}: {error}", String::from_utf8_lossy(seed)));
    }
    let (mut draws, mut accepted, cases) = (Draws::new(subject), 0, number(cases));
    for _ in 0..cases {
        let case = Case(subject, draws.mutated(seeds));
        match read(&case.1) {
            Ok(()) => accepted += 1,
            Err(error) => require_fit(&error, kinds),
        }
    }
    println!("{subject}: {cases} cases, {accepted} accepted");
    assert!(share.contains(&(100 * accepted / cases)), "{subject}: {accepted} of {cases} were accepted");
}

/// Require that an error is of one of these kinds, is short, and repeats no long or invisible text.
pub(crate) fn require_fit(error: &Error, kinds: &[Kind]) {
    assert!(kinds.contains(&error.kind()), "{error:?}");
    require_short(&error.to_string());
}

/// Require that a message is short, and repeats no long or invisible text.
pub(crate) fn require_short(message: &str) {
    assert!(message.chars().count() <= MOST_MESSAGE, "{message}");
    assert!(!message.contains(&MARK[..=MOST_ID]) && !message.contains(char::is_control), "{message:?}");
}
