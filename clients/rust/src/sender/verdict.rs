//! The meaning of an answer for a batch of reports: sent, to be sent again, to be made again, or given up.

use serde_json::Value;

use crate::formats::json::parse;
use crate::formats::times::parse_time;

/// The longest body of a refusal that is read, because problem details are short.
pub(crate) const PROBLEM_BYTES: usize = 1 << 14;
/// A longer wait that the other side asks for counts as this one, in milliseconds, so that it stops no client for good.
pub(crate) const LONGEST_WAIT: i64 = DAY;
const DAY: i64 = 86_400_000;
/// The length of an IMF-fixdate, as in "Wed, 21 Oct 2026 07:28:00 GMT".
const DATE_BYTES: usize = 29;
/// The first year that no window can have.
const END_YEAR: &str = "9000";
/// From the weekday of 1970-01-01 on.
const WEEKDAYS: [&str; 7] = ["Thu,", "Fri,", "Sat,", "Sun,", "Mon,", "Tue,", "Wed,"];
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// An HTTP answer, whoever sent it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) content_type: Option<String>,
    pub(crate) retry_after: Option<String>,
    pub(crate) date: Option<String>,
    pub(crate) age: Option<String>,
    /// Empty if it was longer than the caller wanted, or broke off.
    pub(crate) body: Vec<u8>,
}

/// What becomes of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The reports are on the collector's disk.
    Sent,
    /// Send the same bytes later.
    Again,
    /// Send the same bytes when their window begins, after the wait.
    Early,
    /// Send the same bytes later, but only a limited number of times, because the answer is not from the collector.
    Refused,
    /// Send fewer reports in one request.
    Smaller,
    /// The collector takes no reports of this campaign file.
    Closed,
    /// No attempt would succeed.
    Dropped,
}

/// The outcome of a batch; times are in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) fate: Fate,
    /// The other side's or this client's name of the problem; letters, digits and underscores only.
    pub(crate) reason: String,
    /// How long the other side asked to wait, a day at most.
    pub(crate) wait: i64,
    /// The time of the collector's answer by its clock, since 1970, if known.
    pub(crate) at: Option<i64>,
}

impl Answer {
    /// The media type in lower case, without parameters.
    pub(crate) fn media(&self) -> String {
        let first = self.content_type.as_deref().and_then(|text| text.split(';').next());
        first.unwrap_or_default().trim().to_ascii_lowercase()
    }

    /// Return the meaning for a batch of so many reports; vectors/v1/answers.json has every case.
    ///
    /// `window` is when the window of their token began, in milliseconds since 1970. Reports are given up at once only
    /// for a collector's own refusal, which names its problem. The answers of a proxy or of a hotel's network say nothing
    /// about the reports, except 413, which from any sender means that a body of this length is not let through.
    pub(crate) fn verdict(&self, reports: usize, window: i64) -> Verdict {
        let problem = self.problem();
        let named = !problem.is_empty();
        let at = if self.status == 202 || named { self.time() } else { None };
        let told = |fate, reason: &str, wait| Verdict { fate, reason: reason.to_owned(), wait, at };
        let named_or = |other: &str| if named { problem.clone() } else { other.to_owned() };
        match (self.status, problem.as_str(), at) {
            (202, ..) => told(Fate::Sent, "", 0),
            (425, "window_not_begun", Some(at)) if at < window => {
                told(Fate::Early, &problem, window.saturating_sub(at).min(LONGEST_WAIT))
            }
            (408 | 425 | 429 | 500.., ..) => {
                told(Fate::Again, &named_or(&format!("status_{}", self.status)), self.asked_wait())
            }
            (413, ..) => told(if reports > 1 { Fate::Smaller } else { Fate::Dropped }, &named_or("too_long"), 0),
            (..400, ..) | (_, "", _) => told(Fate::Refused, "no_collector", 0),
            (_, "epoch_not_begun" | "window_over", _) => told(Fate::Again, &problem, 0),
            (_, "epoch_closed" | "unknown_fingerprint", _) => told(Fate::Closed, &problem, 0),
            _ => told(Fate::Dropped, &problem, 0),
        }
    }

    /// Return the time of the answer in milliseconds since 1970; none without one, or if a cache kept the answer.
    pub(crate) fn time(&self) -> Option<i64> {
        let date = self.date.as_deref().filter(|_| self.age.is_none());
        date.and_then(date_of)
    }

    /// Return the name in the problem details of RFC 9457; empty if the answer is not a collector's refusal.
    fn problem(&self) -> String {
        if self.media() != "application/problem+json" {
            return String::new();
        }
        let data = parse(&self.body, PROBLEM_BYTES, "the answer").unwrap_or_default();
        let name =
            data.get("type").and_then(Value::as_str).and_then(|text| text.strip_prefix("urn:hushcount:problem:"));
        let fits = |name: &&str| {
            (1..=40).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
        };
        name.filter(fits).unwrap_or_default().to_owned()
    }

    /// Return the milliseconds of Retry-After; 0 for a date, because the two clocks may differ.
    fn asked_wait(&self) -> i64 {
        let text = self.retry_after.as_deref().unwrap_or_default();
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return 0;
        }
        // A number that is too large for the type is more than a day.
        text.parse().map_or(LONGEST_WAIT, |seconds: i64| seconds.saturating_mul(1000).min(LONGEST_WAIT))
    }
}

/// Return the milliseconds since 1970 of an IMF-fixdate of RFC 9110; none for another form, or a year before 1970.
fn date_of(header: &str) -> Option<i64> {
    if header.len() != DATE_BYTES {
        return None;
    }
    let parts: Vec<&str> = header.split(' ').collect();
    let [weekday, day, month, year, clock, "GMT"] = parts[..] else { return None };
    let month = MONTHS.iter().position(|name| *name == month)? + 1;
    let moment = parse_time(&format!("{year}-{month:02}-{day}T{clock}Z"))?;
    let place = usize::try_from(moment.div_euclid(DAY).rem_euclid(7)).ok()?;
    (moment >= 0 && year < END_YEAR && WEEKDAYS.get(place) == Some(&weekday)).then_some(moment)
}
