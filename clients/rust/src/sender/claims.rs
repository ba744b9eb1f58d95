//! Claims: which process sends which reports, and what becomes of them.

use rusqlite::{OptionalExtension, Row, Transaction, named_params, params};

use super::arrived::{Arrived, FACT};
use super::queue::Queue;
use super::tables::{COLUMNS, Tables, waiting_of};
use super::waiting::{Claimed, Held, Settled, Turn, Waiting, new_claim};
use super::waits::LONGEST_WAIT;
use crate::campaigns::campaign::Stream;
use crate::errors::Result;

/// What to claim.
#[derive(Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) now: i64,
    /// Most reports of one claim.
    pub(crate) most_rows: usize,
    /// Most bytes of all claimed reports together; one report is claimed even if it is longer.
    pub(crate) most_bytes: usize,
    /// Whether to claim plain values too.
    pub(crate) plain: bool,
    /// Whether to claim also reports that are not due yet.
    pub(crate) early: bool,
    /// Whether there is a pass for the present window; without one, no untried report that needs it goes.
    pub(crate) passes: bool,
}

/// A row that may be claimed. The rows of a claim are alike in the columns of `ALIKE`.
struct Found {
    id: i64,
    waiting: Waiting,
    window: i64,
    is_tried: bool,
}

/// A stored time that is too far ahead was stored before the clock was set back, and counts as past. Twice the lease is
/// added: once because a claim lasts so long, and once because another process may have read the clock later. An
/// evaluation waits for a delay of at most a day, and then for its answer, also at most a day. The report of the
/// evaluation then waits for another delay of at most a day. A report that was refused because its window had not begun
/// waits for its window, even if the delivery is early.
const FREE: &str = "campaign = :campaign AND (:plain OR fingerprint <> '') AND (:passes OR NOT period OR is_tried)
    AND NOT (claimed_until > :now AND claimed_until <= :now + 2 * :lease
        + :day * CASE WHEN claim LIKE 'evaluation-%' THEN 2 ELSE 0 END)
    AND (:early AND coalesce(first_window, :window) <= :window OR NOT (due > :now AND due <= :now + 2 * :lease
        + :day * CASE WHEN claim LIKE 'evaluation-%' THEN 3 ELSE 1 END))";
const ALIKE: &str = "(fingerprint, stream, collector, cap, period, coalesce(first_window, :window))
    = (:fingerprint, :stream, :collector, :cap, :period, :of_window)";

impl Queue {
    /// Claim due reports of one campaign file, stream and token, the earliest first; none if no report is due.
    ///
    /// Each claimed report has a place under the cap. Reports for which there is no room are removed, and so are those
    /// that name a window that is over, because they would count in no other one.
    pub(crate) fn claim(&self, wanted: Wanted, turn: Turn) -> Result<Option<Claimed>> {
        let claim = new_claim()?;
        self.change(|tables| {
            let found = tables.sql(|sql, campaign| self.found(sql, campaign, wanted, turn))?;
            let Some(first) = found.first() else { return Ok(None) };
            let (of, window) = (first.waiting.clone(), first.window);
            let ids: Vec<_> = found.iter().map(|row| row.id).collect();
            let is_late = of.window.is_some_and(|window| window < turn.window);
            let rows = match of.stream {
                _ if is_late => Vec::new(),
                Some(stream) if !of.is_plain() => placed(tables, found, stream, turn.least)?,
                _ => found.into_iter().map(held).collect(),
            };
            let found = ids.len();
            let over = tables.remove(ids.into_iter().filter(|id| rows.iter().all(|row| row.id != *id)))?;
            let until = wanted.now + self.lease;
            tables.sql(|sql, _| {
                let mut update = sql.prepare("UPDATE queue SET claim = ?, claimed_until = ? WHERE id = ?")?;
                let each = rows.iter().map(|row| update.execute(params![claim, until, row.id]));
                let going: usize = each.sum::<rusqlite::Result<_>>()?;
                // In a damaged database a row may be there that no change reaches: it would be sent for ever.
                if over + going == found { Ok(()) } else { Err(rusqlite::Error::StatementChangedRows(going)) }
            })?;
            let usable = (wanted.now, wanted.now + self.lease / 2);
            Ok(Some(Claimed { claim, of, rows, window, over, is_late, usable }))
        })
    }

    /// Return due rows that are alike, the earliest first.
    fn found(&self, sql: &Transaction<'_>, campaign: &str, wanted: Wanted, turn: Turn) -> rusqlite::Result<Vec<Found>> {
        let Wanted { now, most_rows, most_bytes, plain, early, passes } = wanted;
        let (lease, window) = (self.lease, turn.window);
        let select = format!("SELECT {COLUMNS}, id, coalesce(first_window, :window), is_tried FROM queue WHERE {FREE}");
        let first = format!("{select} ORDER BY due, id LIMIT 1");
        let known = named_params! {
            ":campaign": campaign, ":now": now, ":lease": lease, ":day": LONGEST_WAIT, ":plain": plain, ":early": early,
            ":passes": passes, ":window": window,
        };
        let Some(first) = sql.query_row(&first, known, found_of).optional()? else { return Ok(Vec::new()) };
        let of = &first.waiting;
        let rows = most_rows.min(most_bytes / of.body.len().max(1)).max(1) as u64;
        let stream = of.stream.map_or("", Stream::name);
        let mut alike = sql.prepare(&format!("{select} AND {ALIKE} ORDER BY due, id LIMIT :rows"))?;
        let known = named_params! {
            ":campaign": campaign, ":now": now, ":lease": lease, ":day": LONGEST_WAIT, ":plain": plain, ":early": early,
            ":passes": passes, ":window": window, ":fingerprint": of.fingerprint, ":stream": stream,
            ":collector": of.collector, ":cap": of.cap, ":period": of.period, ":of_window": first.window, ":rows": rows,
        };
        let found = alike.query_map(known, found_of)?;
        found.collect()
    }

    /// End a claim. The claimed reports become due at `due`; if it is none, their due times do not change.
    pub(crate) fn give_back(&self, claimed: &Claimed, due: Option<i64>) -> Result<()> {
        self.change(|tables| give_back(tables, claimed, due, 0))
    }

    /// End a claim of reports that came before their window: they have not arrived, and become due at `due`.
    ///
    /// A report of which an earlier attempt may have arrived keeps its place.
    pub(crate) fn put_off(&self, claimed: &Claimed, due: i64) -> Result<()> {
        let end = "UPDATE queue SET is_tried = is_tried AND NOT ?, claim = '', claimed_until = 0, due = ?
            WHERE id = ? AND claim = ?";
        self.change(|tables| {
            tables.sql(|sql, _| {
                let mut update = sql.prepare(end)?;
                claimed
                    .rows
                    .iter()
                    .try_for_each(|row| update.execute(params![row.is_new, due, row.id, claimed.claim]).map(drop))
            })
        })
    }

    /// Replace a claimed report, and return true; if it is gone or claimed by another process, only return false.
    pub(crate) fn replace(&self, claim: &str, row: i64, waiting: &[Waiting]) -> Result<bool> {
        let delete = "DELETE FROM queue WHERE id = ? AND claim = ?";
        self.change(|tables| {
            let is_there = tables.sql(|sql, _| sql.execute(delete, params![row, claim]))? > 0;
            if is_there {
                tables.insert(waiting)?;
            }
            Ok(is_there)
        })
    }

    /// Extend claims of reports that wait for an answer, to `until` at least; return which ones are still there.
    pub(crate) fn renew(&self, claims: &[&str], until: i64) -> Result<Vec<bool>> {
        let last_longer = "UPDATE queue SET claimed_until = CASE WHEN claimed_until > :until + :longest THEN :until
            ELSE max(claimed_until, :until) END WHERE campaign = :campaign AND claim = :claim";
        self.change(|tables| {
            tables.sql(|sql, campaign| {
                let mut update = sql.prepare(last_longer)?;
                let longest = 2 * LONGEST_WAIT;
                let there = claims.iter().map(|claim| {
                    let known =
                        named_params! { ":until": until, ":longest": longest, ":campaign": campaign, ":claim": claim };
                    Ok(update.execute(known)? > 0)
                });
                there.collect()
            })
        })
    }

    /// End claims of reports that waited for an answer, all at once; return how many reports were still there.
    pub(crate) fn settle(&self, settled: &[Settled]) -> Result<usize> {
        let end = "UPDATE queue SET claim = '', claimed_until = 0, due = ?, body = coalesce(?, body)
            WHERE campaign = ? AND claim = ?";
        self.change(|tables| {
            tables.sql(|sql, campaign| {
                let mut update = sql.prepare(end)?;
                settled.iter().map(|one| update.execute(params![one.due, one.body, campaign, one.claim])).sum()
            })
        })
    }
}

/// End a claim of reports, which others than the collector refused `refused` times more.
pub(crate) fn give_back(tables: &Tables<'_>, claimed: &Claimed, due: Option<i64>, refused: u64) -> Result<()> {
    let end = "UPDATE queue SET claim = '', claimed_until = 0, due = coalesce(?, due), refusals = refusals + ?
        WHERE id = ? AND claim = ?";
    tables.sql(|sql, _| {
        let mut update = sql.prepare(end)?;
        claimed.rows.iter().try_for_each(|row| update.execute(params![due, refused, row.id, claimed.claim]).map(drop))
    })
}

/// Return tried reports and those for which there is room, and give the latter their places.
///
/// A report may arrive in its window or in any later one, so it needs room beside the reports that came in any of them,
/// and beside all tried reports, which may arrive too.
fn placed(tables: &Tables<'_>, found: Vec<Found>, stream: Stream, least: i64) -> Result<Vec<Held>> {
    let Some(first) = found.first() else { return Ok(Vec::new()) };
    let (window, cap) = (first.window, first.waiting.cap);
    let tried = "SELECT count(*) FROM queue WHERE campaign = ? AND stream = ? AND is_tried";
    let places: u64 = tables.sql(|sql, campaign| sql.query_row(tried, [campaign, stream.name()], |row| row.get(0)))?;
    let came = Arrived::read(tables.fact(FACT)?.as_deref())?.came(stream, window, least);
    let mut room = cap.saturating_sub(places).saturating_sub(came);
    let mut going = Vec::new();
    for row in found {
        if !row.is_tried && room == 0 {
            continue;
        }
        room -= u64::from(!row.is_tried);
        going.push(held(row));
    }
    tables.sql(|sql, _| {
        let mut update = sql.prepare("UPDATE queue SET first_window = ?, is_tried = 1 WHERE id = ?")?;
        going.iter().filter(|row| row.is_new).try_for_each(|row| update.execute([window, row.id]).map(drop))
    })?;
    Ok(going)
}

fn held(row: Found) -> Held {
    Held { id: row.id, waiting: row.waiting, is_new: !row.is_tried }
}

fn found_of(row: &Row<'_>) -> rusqlite::Result<Found> {
    Ok(Found { id: row.get(9)?, waiting: waiting_of(row)?, window: row.get(10)?, is_tried: row.get(11)? })
}
