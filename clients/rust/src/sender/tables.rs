//! The tables of a sender in its client's store: rows that wait, facts, and documents.

use rusqlite::{OptionalExtension, Row, Transaction, named_params, params};

use super::token::key_of;
use super::waiting::{Measurement, Waiting};
use crate::campaigns::campaign::Stream;
use crate::errors::Result;
use crate::formats::bytes::unhex_exact;
use crate::store::{Records, Store};

/// `first_window` is when the window of the first attempt began; NULL before it. `is_tried`: whether an attempt may
/// have arrived, or may still arrive. `is_bound`: whether the report names `first_window` itself, and counts in no
/// other one.
const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS queue (id INTEGER PRIMARY KEY AUTOINCREMENT, campaign TEXT NOT NULL,
        fingerprint TEXT NOT NULL, stream TEXT NOT NULL, collector TEXT NOT NULL, cap INTEGER NOT NULL,
        period INTEGER NOT NULL, body BLOB NOT NULL, value BLOB, due INTEGER NOT NULL, claim TEXT NOT NULL DEFAULT '',
        claimed_until INTEGER NOT NULL DEFAULT 0, refusals INTEGER NOT NULL DEFAULT 0, first_window INTEGER,
        is_tried INTEGER NOT NULL DEFAULT 0, is_bound INTEGER NOT NULL DEFAULT 0);
    CREATE TABLE IF NOT EXISTS facts (campaign TEXT NOT NULL, name TEXT NOT NULL, fact TEXT NOT NULL,
        PRIMARY KEY (campaign, name));
    CREATE TABLE IF NOT EXISTS documents (campaign TEXT NOT NULL, name TEXT NOT NULL, data BLOB NOT NULL,
        signature BLOB, refresh_at INTEGER NOT NULL, PRIMARY KEY (campaign, name));";

/// The tables of one campaign within one change of a store.
pub(crate) struct Tables<'a> {
    pub(crate) records: &'a Records<'a>,
    campaign: &'a str,
}

/// Read and write the tables of a campaign in one step, as `Store::change` does.
///
/// # Errors
/// As `Store::change`.
pub(crate) fn change<T>(store: &Store, campaign: &str, step: impl FnOnce(&Tables<'_>) -> Result<T>) -> Result<T> {
    store.change(|records| {
        records.sql(|sql| sql.execute_batch(SCHEMA))?;
        step(&Tables { records, campaign })
    })
}

impl Tables<'_> {
    /// Use the database itself; the campaign's id is given to the work.
    pub(crate) fn sql<T>(&self, work: impl FnOnce(&Transaction<'_>, &str) -> rusqlite::Result<T>) -> Result<T> {
        self.records.sql(|sql| work(sql, self.campaign))
    }

    /// Return the fact that is stored under a name.
    pub(crate) fn fact(&self, name: &str) -> Result<Option<String>> {
        let query = "SELECT fact FROM facts WHERE campaign = ? AND name = ?";
        self.sql(|sql, campaign| sql.query_row(query, [campaign, name], |row| row.get(0)).optional())
    }

    /// Store a fact under a name; an older fact with this name is replaced.
    pub(crate) fn note(&self, name: &str, fact: &str) -> Result<()> {
        let put = "INSERT OR REPLACE INTO facts VALUES (?, ?, ?)";
        self.sql(|sql, campaign| sql.execute(put, [campaign, name, fact])).map(drop)
    }

    /// Return how many reports and plain values wait.
    pub(crate) fn count(&self) -> Result<u64> {
        let query = "SELECT count(*) FROM queue WHERE campaign = ?";
        self.sql(|sql, campaign| sql.query_row(query, [campaign], |row| row.get(0)))
    }

    /// Remove rows; return how many of them were there.
    pub(crate) fn remove(&self, rows: impl IntoIterator<Item = i64>) -> Result<usize> {
        self.sql(|sql, _| {
            let mut delete = sql.prepare("DELETE FROM queue WHERE id = ?")?;
            rows.into_iter().map(|row| delete.execute([row])).sum()
        })
    }

    /// Queue reports and plain values.
    pub(crate) fn insert(&self, waiting: &[Waiting]) -> Result<()> {
        self.sql(|sql, campaign| {
            let mut insert = sql.prepare(
                "INSERT INTO queue (campaign, fingerprint, stream, collector, cap, period, body, value, due, claim,
                    claimed_until, first_window, is_bound)
                 VALUES (:campaign, :fingerprint, :stream, :collector, :cap, :period, :body, :value, :due, :claim,
                    :claimed_until, :window, :window IS NOT NULL)",
            )?;
            for one in waiting {
                let stream = one.stream.map_or("", Stream::name);
                insert.execute(named_params! {
                    ":campaign": campaign, ":fingerprint": one.fingerprint, ":stream": stream,
                    ":collector": one.collector, ":cap": one.cap, ":period": one.period, ":body": one.body,
                    ":value": one.measurement.as_ref().map(octets), ":due": one.due, ":claim": one.claim,
                    ":claimed_until": one.claimed_until, ":window": one.window,
                })?;
            }
            Ok(())
        })
    }

    /// See `Queue::clear`.
    pub(crate) fn clear(&self) -> Result<u64> {
        let number = self.count()?;
        self.sql(|sql, campaign| {
            sql.execute("DELETE FROM queue WHERE campaign = ?", [campaign])?;
            sql.execute("DELETE FROM facts WHERE campaign = ?", [campaign])
        })?;
        // After an opt-out no campaign's secret is needed, so it does no harm that this name begins others too.
        self.records.remove(&key_of(self.campaign))?;
        Ok(number)
    }

    /// See `Queue::clear_all`.
    pub(crate) fn clear_all(&self) -> Result<u64> {
        self.records.remove(&key_of(""))?;
        self.sql(|sql, _| {
            sql.execute("DELETE FROM facts", params![])?;
            Ok(sql.execute("DELETE FROM queue", params![])? as u64)
        })
    }
}

/// The columns that `waiting_of` reads.
pub(crate) const COLUMNS: &str =
    "fingerprint, stream, body, value, due, collector, cap, period, CASE WHEN is_bound THEN first_window END";

/// Return what waits in a row, of which the first columns are `COLUMNS`.
pub(crate) fn waiting_of(row: &Row<'_>) -> rusqlite::Result<Waiting> {
    let fingerprint: String = row.get(0)?;
    // A damaged one would become a part of requests.
    if !fingerprint.is_empty() && unhex_exact::<32>(&fingerprint).is_none() {
        return Err(rusqlite::types::FromSqlError::Other("a fingerprint is damaged".into()).into());
    }
    Ok(Waiting {
        fingerprint,
        stream: stream_of(row.get_ref(1)?.as_str()?),
        body: row.get(2)?,
        measurement: row.get::<_, Option<Vec<u8>>>(3)?.map(|octets| measurement(&octets)).transpose()?,
        due: row.get(4)?,
        collector: row.get(5)?,
        cap: row.get(6)?,
        period: row.get(7)?,
        window: row.get(8)?,
        claim: String::new(),
        claimed_until: 0,
    })
}

/// Return the stream of a name; none for the empty text of plain values of all streams.
pub(crate) fn stream_of(name: &str) -> Option<Stream> {
    [Stream::Reports, Stream::Discovery].into_iter().find(|stream| stream.name() == name)
}

fn octets(kept: &Measurement) -> Vec<u8> {
    // Texts have a form in JSON, so nothing fails.
    serde_json::to_vec(&(&kept.value, &kept.by)).unwrap_or_default()
}

fn measurement(octets: &[u8]) -> rusqlite::Result<Measurement> {
    // The parser's own message is left out, because it may repeat the value.
    let damaged = |_| rusqlite::types::FromSqlError::Other("a kept value is damaged".into());
    let (value, by) = serde_json::from_slice(octets).map_err(damaged)?;
    Ok(Measurement { value, by })
}
