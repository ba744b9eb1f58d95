//! What a client shows to a collector or an evaluator: its token, or a pass of the issuer in the token's place.

use serde_json::{Value, json};

use super::queue::Queue;
use super::site::is_header;
use super::token::{client_token, key_of, secret_of};
use crate::errors::{Error, Result};
use crate::formats::bytes::hex;
use crate::formats::json::parse;
use crate::passes::slots::Slot;

const FACT: &str = "passes";
/// Of three days, each of at most 24 passes of half a kilobyte.
const MOST_BYTES: usize = 1 << 18;
const DAY: i64 = 86_400;

/// A pass that is kept.
pub(crate) struct Pass {
    role: String,
    name: String,
    begins: i64,
    /// The value of the header Authorization.
    header: String,
}

impl Pass {
    /// Return a pass with its header.
    pub(crate) fn new(slot: &Slot<'_>, header: String) -> Self {
        Self { role: slot.role.name().to_owned(), name: slot.name.to_owned(), begins: slot.begins, header }
    }

    /// Whether this is the pass of a slot.
    pub(crate) fn is_of(&self, slot: &Slot<'_>) -> bool {
        self.key() == (slot.role.name(), slot.name, slot.begins)
    }

    fn key(&self) -> (&str, &str, i64) {
        (&self.role, &self.name, self.begins)
    }
}

/// Return the header by which a client shows its token; none: there is no pass for it.
///
/// The slot begins when the window of the first attempt began. `period` is how many seconds a pass is good; 0: the
/// campaign asks for no passes.
///
/// # Errors
/// `Store`: the secret or the passes cannot be read.
pub(crate) fn shown(queue: &Queue, slot: Slot<'_>, period: u64) -> Result<Option<(&'static str, String)>> {
    if period == 0 {
        let secret = queue.secret()?;
        return Ok(Some(("Client-Token", client_token(&secret, &slot))));
    }
    let period = i64::try_from(period).unwrap_or(DAY);
    let slot = Slot { begins: slot.begins - slot.begins.rem_euclid(period), ..slot };
    let mut kept = queue.passes()?.into_iter();
    Ok(kept.find(|pass| pass.is_of(&slot)).map(|pass| ("Authorization", pass.header)))
}

impl Queue {
    /// Return the secret of the client's tokens; the first call draws it.
    ///
    /// # Errors
    /// `Store`: it cannot be read or written.
    pub(crate) fn secret(&self) -> Result<[u8; 32]> {
        self.change(|tables| secret_of(tables.records, &self.campaign))
    }

    /// Return the passes that are kept.
    pub(crate) fn passes(&self) -> Result<Vec<Pass>> {
        passes_of(self.fact(FACT)?.as_deref())
    }

    /// Keep passes of a day that begins at `day`, in seconds since 1970, and delete those of days
    /// before yesterday, and of days that only a wrong clock showed.
    /// Nothing is kept if an opt-out deleted the secret that they were made with.
    pub(crate) fn keep_passes(&self, secret: &[u8; 32], made: Vec<Pass>, day: i64) -> Result<()> {
        self.change(|tables| {
            let kept = tables.records.get(&key_of(&self.campaign))?;
            if kept.as_ref().and_then(Value::as_str) != Some(hex(secret).as_str()) {
                return Ok(());
            }
            let mut passes = passes_of(tables.fact(FACT)?.as_deref())?;
            let days = day - 2 * DAY..day + 3 * DAY;
            passes.retain(|pass| days.contains(&pass.begins) && made.iter().all(|new| new.key() != pass.key()));
            passes.extend(made);
            let rows: Vec<_> =
                passes.iter().map(|pass| json!([pass.role, pass.name, pass.begins, pass.header])).collect();
            tables.note(FACT, &Value::from(rows).to_string())
        })
    }
}

fn passes_of(fact: Option<&str>) -> Result<Vec<Pass>> {
    let Some(fact) = fact else { return Ok(Vec::new()) };
    let name = "what is kept of passes";
    let rows = parse(fact.as_bytes(), MOST_BYTES, name)?;
    let pass = |row: &Value| {
        let text = |place: usize| row[place].as_str().map(str::to_owned);
        Some(Pass {
            role: text(0)?,
            name: text(1)?,
            begins: row[2].as_i64()?,
            header: text(3).filter(|text| is_header(text))?,
        })
    };
    let passes = rows.as_array().and_then(|rows| rows.iter().map(pass).collect());
    passes.ok_or_else(|| Error::format(format!("{name} is damaged: restore the store")))
}
