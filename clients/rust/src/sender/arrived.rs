//! What a client keeps of the collector's clock, and of the reports that came.

use serde_json::{Value, json};

use crate::campaigns::campaign::Stream;
use crate::campaigns::windows::Starts;
use crate::errors::{Error, Result};
use crate::formats::json::parse;

/// The name of the fact in the queue.
pub(crate) const FACT: &str = "arrivals";
const MOST_BYTES: usize = 1 << 16;
/// The clock may be wrong, so the counts that changed last are kept, not only the newest count. So a client whose clock
/// was ahead can still report, and a clock that jumps between windows starts no new count.
const MOST_KEPT: usize = 16;

/// Tried reports that were settled, by stream.
type Counts = [u64; 2];

/// What is kept; it begins with zeros.
#[derive(Clone, Default)]
pub(crate) struct Arrived {
    /// When the collector's last answer came, by the device's clock.
    answered: i64,
    /// By how much the collector's clock was ahead of the device's clock at the last answer.
    ahead: i64,
    /// How many tried reports were settled in each of the last windows, by the window's start. The start is none for
    /// reports that were given up since the collector's last answer: they count in every window.
    windows: Vec<(Option<i64>, Counts)>,
}

impl Arrived {
    /// Return the start of the collector's present window.
    pub(crate) fn present(&self, now: i64, starts: &Starts) -> i64 {
        starts.at(if now >= self.answered { now.saturating_add(self.ahead) } else { now })
    }

    /// Return how many reports of a stream count in a window or in a later one; `least` is the least length of a
    /// window.
    ///
    /// Another epoch may list windows that begin a little earlier. They are no earlier windows.
    pub(crate) fn came(&self, stream: Stream, window: i64, least: i64) -> u64 {
        let counts = |start: Option<i64>| start.is_none_or(|start| start > window.saturating_sub(least));
        let counted =
            self.windows.iter().filter(|(start, _)| counts(*start)).map(|(_, number)| number[stream as usize]);
        // The sum of a damaged fact may be beyond all numbers.
        counted.fold(0, u64::saturating_add)
    }

    /// Count more reports in a window; the count that changed last comes last.
    pub(crate) fn add(&mut self, start: Option<i64>, counts: Counts) {
        let before = self.windows.iter().position(|(other, _)| *other == start);
        let [reports, discovery] = before.map_or([0; 2], |place| self.windows.remove(place).1);
        self.windows.push((start, [reports.saturating_add(counts[0]), discovery.saturating_add(counts[1])]));
        self.windows.drain(..self.windows.len().saturating_sub(MOST_KEPT));
    }

    /// Note that the collector answered at `at` by its clock, and at `now` by the device's.
    ///
    /// The count of the next window is kept, because that may have begun at another collector. Counts of later windows
    /// are dropped, because only a wrong clock of a collector can show them.
    pub(crate) fn hear(&mut self, now: i64, at: i64, starts: &Starts) {
        let following = starts.after(at);
        let lost = self.windows.iter().find(|(start, _)| start.is_none()).map(|(_, counts)| *counts);
        self.windows.retain(|(start, _)| start.is_some_and(|start| start <= following));
        (self.answered, self.ahead) = (now, at.saturating_sub(now));
        if let Some(counts) = lost {
            self.add(Some(starts.at(at)), counts);
        }
    }

    /// Return the fact as text.
    pub(crate) fn text(&self) -> String {
        let windows: Vec<_> = self.windows.iter().map(|(start, counts)| json!([start, counts])).collect();
        json!({ "answered": self.answered, "ahead": self.ahead, "windows": windows }).to_string()
    }

    /// Read the fact; without one, nothing came.
    ///
    /// # Errors
    /// `Format`: the fact is damaged.
    pub(crate) fn read(fact: Option<&str>) -> Result<Self> {
        let Some(fact) = fact else { return Ok(Self::default()) };
        let name = "what is kept of arrivals";
        let data = parse(fact.as_bytes(), MOST_BYTES, name)?;
        arrived_of(&data).ok_or_else(|| Error::format(format!("{name} is damaged: restore the store")))
    }
}

/// Return counts of so many reports of a stream; without a stream, no counts.
pub(crate) fn counts_of(stream: Option<Stream>, number: usize) -> Counts {
    let mut counts = [0; 2];
    if let Some(stream) = stream {
        counts[stream as usize] = number as u64;
    }
    counts
}

fn arrived_of(data: &Value) -> Option<Arrived> {
    let windows = data["windows"].as_array()?.iter().map(|window| {
        let start = if window[0].is_null() { None } else { Some(window[0].as_i64()?) };
        Some((start, [window[1][0].as_u64()?, window[1][1].as_u64()?]))
    });
    Some(Arrived {
        answered: data["answered"].as_i64()?,
        ahead: data["ahead"].as_i64()?,
        windows: windows.collect::<Option<_>>()?,
    })
}
