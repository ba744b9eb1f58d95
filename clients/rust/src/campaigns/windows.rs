//! When windows begin: by the list or the length of the campaign file, or by the length that the app states.

use serde_json::Value;

use super::campaign::NAME;
use crate::errors::Result;
use crate::formats::fields::{Fields, whole_of};

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;
/// The usual length of a window of each unit, and the least and the greatest, in seconds: zones set their clocks.
const SPANS: [(&str, i64, i64, i64); 3] = [
    ("day", DAY, 17 * HOUR, 2 * DAY),
    ("week", 7 * DAY, 7 * DAY - 7 * HOUR, 8 * DAY),
    ("month", 28 * DAY, 28 * DAY - 7 * HOUR, 32 * DAY),
];
const MOST_STARTS: usize = 500;
/// The last day of windows, 8999-12-31, in seconds since 1970.
const LAST: i64 = 221_845_305_600;

/// When windows of calendar days, weeks or months begin, in seconds since 1970: 2 starts at least, which rise.
#[derive(Clone, Debug)]
pub(crate) struct ListedWindows {
    pub(crate) starts: Vec<i64>,
    /// The length of most windows of the unit, in seconds; of months, the shortest.
    pub(crate) usual: i64,
}

impl ListedWindows {
    /// Read the section of a campaign file.
    ///
    /// # Errors
    /// `Format`: the section is no list of windows of one unit.
    pub(crate) fn parse(data: &Value) -> Result<Self> {
        let name = format!("{NAME}: windows");
        let fields = Fields::of(data, &name, &["unit", "starts"], &[])?;
        let unit = fields.one_of("unit", &SPANS.map(|(unit, ..)| unit))?;
        let Some(&(unit, usual, least, most)) = SPANS.iter().find(|(known, ..)| *known == unit) else {
            return Err(fields.wrong("unit", "a unit"));
        };
        let second = |start| whole_of(start).and_then(|start| i64::try_from(start).ok()).filter(|&start| start <= LAST);
        let starts: Option<Vec<i64>> = fields.list("starts", MOST_STARTS)?.iter().map(second).collect();
        let follows = |one: &i64, next: &i64| (least..=most).contains(&(next - one));
        let starts = starts.filter(|starts| starts.len() >= 2 && starts.is_sorted_by(follows));
        let listed = format!("2 to {MOST_STARTS} whole seconds since 1970, each a {unit} after the one before");
        Ok(Self { starts: starts.ok_or_else(|| fields.wrong("starts", &listed))?, usual })
    }
}

/// When windows begin, all in milliseconds since 1970.
///
/// Of a list, the first window is also before its start, and the last window has no end.
#[derive(Clone, Debug)]
pub(crate) struct Starts {
    length: i64,
    /// Empty: windows tile time from 1970 on.
    listed: Vec<i64>,
}

impl Starts {
    /// Return when windows begin that are listed, or else have this length, in milliseconds.
    pub(crate) fn new(length: i64, listed: Option<&ListedWindows>) -> Self {
        let listed = listed.iter().flat_map(|windows| &windows.starts).map(|start| start * 1000).collect();
        Self { length: length.max(1), listed }
    }

    /// Return when the window of a moment begins; the moment may be of any wrong clock.
    pub(crate) fn at(&self, moment: i64) -> i64 {
        let within = moment.clamp(0, LAST * 1000);
        let first = self.listed.first().copied();
        let last = self.listed.iter().copied().rfind(|&start| start <= within);
        last.or(first).unwrap_or(within - within % self.length)
    }

    /// Return when the window after that of a moment begins.
    pub(crate) fn after(&self, moment: i64) -> i64 {
        let begins = self.at(moment);
        if self.listed.is_empty() {
            return begins.saturating_add(self.length);
        }
        self.listed.iter().copied().find(|&start| start > begins).unwrap_or(LAST * 1000)
    }

    /// Return the least length of a window: no two begin closer together.
    pub(crate) fn least(&self) -> i64 {
        self.listed.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap_or(self.length)
    }
}
