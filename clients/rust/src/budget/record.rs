//! The record of all charges, and of the opt-out, in a store: units are decimal digits.

use serde_json::{Value, json};

use super::last_changed::MOST_KEPT;
use super::ledger::{Charged, Line, SpentOn};
use crate::errors::{Error, Result};
use crate::formats::fields::{Fields, IDENTIFIER};
use crate::formats::json::MOST_INTEGER;
use crate::formats::times::parse_time;
use crate::store::Records;

/// The name of the record.
const RECORD: &str = "budget";

impl Charged {
    /// Read the charges in a step of the store.
    ///
    /// # Errors
    /// `Format`: the record is damaged or of another version. Such a record is never replaced.
    pub(crate) fn read(records: &Records<'_>) -> Result<Self> {
        let damaged = |_| {
            Error::format(
                "the budget's record is damaged or of another version: restore it; removing it would renew the budget, \
                 although sent reports cannot be taken back",
            )
        };
        records.get(RECORD)?.map_or(Ok(Self::default()), |data| Self::parse(&data).map_err(damaged))
    }

    /// Write the charges in a step of the store.
    pub(crate) fn write(&self, records: &Records<'_>) -> Result<()> {
        let days: Vec<_> = self.days.iter().map(|(day, epsilon)| json!([day, epsilon.to_string()])).collect();
        let lines = self.lines.iter().map(|((campaign, kind), line)| {
            let Line { reports, blank, epsilon, delta } = line;
            let (epsilon, delta) = (epsilon.to_string(), delta.to_string());
            let line = json!({ "reports": reports, "blank": blank, "epsilon": epsilon, "delta": delta });
            (format!("{campaign}/{}", kind.name()), line)
        });
        let lines = Value::Object(lines.collect());
        records.put(RECORD, &json!({ "format": 1, "days": days, "optedOut": self.opted_out, "lines": lines }))
    }

    fn parse(data: &Value) -> Result<Self> {
        let fields = Fields::of(data, RECORD, &["format", "days", "optedOut", "lines"], &[])?;
        fields.whole("format", 1, 1)?;
        let days: Option<_> = fields.list("days", MOST_KEPT)?.iter().map(day_of).collect();
        let lines = fields.get("lines").and_then(Value::as_object).ok_or_else(|| fields.wrong("lines", "an object"))?;
        Ok(Self {
            days: days.ok_or_else(|| fields.wrong("days", "a list of days with their epsilon"))?,
            opted_out: fields.boolean("optedOut")?,
            lines: lines.iter().map(|(key, line)| line_of(key, line)).collect::<Result<_>>()?,
        })
    }
}

fn day_of(data: &Value) -> Option<(String, u64)> {
    let [day, epsilon] = data.as_array()?.as_slice() else { return None };
    let day = day.as_str().filter(|day| parse_time(&format!("{day}T00:00:00Z")).is_some())?;
    Some((day.to_owned(), units_of(epsilon)?))
}

fn line_of(key: &str, data: &Value) -> Result<((String, SpentOn), Line)> {
    let fields = Fields::of(data, RECORD, &["reports", "blank", "epsilon", "delta"], &[])?;
    let (campaign, name) = key.rsplit_once('/').unwrap_or_default();
    let kind = SpentOn::ALL.into_iter().find(|kind| kind.name() == name && IDENTIFIER.fits(campaign));
    let units =
        |field| fields.get(field).and_then(units_of).ok_or_else(|| fields.wrong(field, "units in decimal digits"));
    let line = Line {
        reports: fields.whole("reports", 0, MOST_INTEGER)?,
        blank: fields.whole("blank", 0, MOST_INTEGER)?,
        epsilon: units("epsilon")?,
        delta: units("delta")?,
    };
    Ok(((campaign.to_owned(), kind.ok_or_else(|| fields.wrong("lines", "charges of campaigns"))?), line))
}

fn units_of(data: &Value) -> Option<u64> {
    data.as_str().filter(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()))?.parse().ok()
}
