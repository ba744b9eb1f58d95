//! The documents of a campaign that a collector serves, not yet checked.
//!
//! A copy of each document is kept, with the time at which to ask for the document again. No request is conditional,
//! because a collector could give each client a different `ETag`, and then recognise the client by it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rusqlite::params;

use super::http::{Http, Response, get};
use super::site::Site;
use super::tables::change;
use super::waits::{LONGEST_WAIT, random_time};
use crate::errors::{Error, Kind, Result};
use crate::store::Store;

/// The least age of a document at which it is fetched again; with a shorter age, a collector would often see when this
/// device is in use.
pub(crate) const LEAST_AGE: i64 = 3_600_000;
const MOST_AGE_DIGITS: usize = 9;

/// One document that a collector served.
#[derive(Clone)]
pub(crate) struct Document {
    pub(crate) data: Vec<u8>,
    /// The signature file, sent in a header as a byte sequence of RFC 8941; none if no signature came.
    pub(crate) signature: Option<Vec<u8>>,
    /// When to ask for the document again.
    pub(crate) refresh_at: i64,
    /// When the collector answered, by its own clock, if that is known.
    pub(crate) at: Option<i64>,
}

/// The documents of a campaign; only the campaign file is always there.
#[derive(Clone)]
pub(crate) struct Documents {
    pub(crate) campaign: Document,
    pub(crate) log: Option<Document>,
    pub(crate) dictionary: Option<Document>,
}

/// Why a document was not fetched.
pub(crate) enum Unfetched {
    /// The collector answered, but its answer is not the document.
    NotServed(Error),
    /// No whole answer came, or this device failed.
    Failed(Error),
}

impl From<Unfetched> for Error {
    fn from(unfetched: Unfetched) -> Self {
        match unfetched {
            Unfetched::NotServed(error) | Unfetched::Failed(error) => error,
        }
    }
}

/// Fetch a document of at most `most` bytes. The request contains no client token, and nothing else that a collector
/// gave to this client alone.
pub(crate) fn fetch(
    http: &dyn Http,
    site: &Site,
    path: &str,
    most: usize,
    now: i64,
) -> std::result::Result<Document, Unfetched> {
    let response = get(http, site, path, most).map_err(|failure| Unfetched::Failed(failure.at(site)))?;
    if response.status != 200 {
        let place = path.split('?').next().unwrap_or_default();
        let said = format!("the collector answered {} to a request for {place}", response.status);
        return Err(Unfetched::NotServed(Error::new(Kind::Delivery, said)));
    }
    let refresh_at = refresh_at(&response, now).map_err(Unfetched::Failed)?;
    let signature = response.header("campaign-signature").and_then(|text| STANDARD.decode(text.trim_matches(':')).ok());
    let answer = response.answer();
    Ok(Document {
        signature: signature.filter(|bytes| !bytes.is_empty()),
        refresh_at,
        at: answer.time(),
        data: answer.body,
    })
}

/// Return when to ask again: after the collector's max-age, limited to 1 to 24 hours, plus a random time.
///
/// The random time is at most half of the max-age; it hides the time of the last request.
fn refresh_at(response: &Response, now: i64) -> Result<i64> {
    let header = response.header("cache-control").unwrap_or_default().to_ascii_lowercase();
    let mut parts = header.split(|letter: char| letter == ',' || letter.is_ascii_whitespace());
    let age = parts.find_map(|part| {
        let digits = part.strip_prefix("max-age=")?;
        let fits = digits.len() <= MOST_AGE_DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.parse::<i64>().ok().filter(|_| fits)
    });
    let age = (age.unwrap_or_default() * 1000).clamp(LEAST_AGE, LONGEST_WAIT);
    Ok(now + age + random_time(age / 2)?)
}

/// Return the documents of a campaign that are kept, if its file is kept.
///
/// # Errors
/// As `Store::change`.
pub(crate) fn kept_documents(store: &Store, campaign: &str) -> Result<Option<Documents>> {
    let query = "SELECT name, data, signature, refresh_at FROM documents WHERE campaign = ?";
    let found: Vec<(String, Document)> = change(store, campaign, |tables| {
        tables.sql(|sql, campaign| {
            let mut select = sql.prepare(query)?;
            let rows = select.query_map([campaign], |row| {
                let (data, signature, refresh_at) = (row.get(1)?, row.get(2)?, row.get(3)?);
                Ok((row.get(0)?, Document { data, signature, refresh_at, at: None }))
            })?;
            rows.collect()
        })
    })?;
    let named = |name: &str| found.iter().find(|(other, _)| other == name).map(|(_, document)| document.clone());
    let (log, dictionary) = (named("log"), named("dictionary"));
    Ok(named("campaign").map(|campaign| Documents { campaign, log, dictionary }))
}

/// Keep these documents, and delete all other documents of the campaign.
///
/// # Errors
/// As `Store::change`.
pub(crate) fn keep_documents(store: &Store, campaign: &str, documents: &Documents) -> Result<()> {
    let named = [
        ("campaign", Some(&documents.campaign)),
        ("log", documents.log.as_ref()),
        ("dictionary", documents.dictionary.as_ref()),
    ];
    change(store, campaign, |tables| {
        tables.sql(|sql, campaign| {
            sql.execute("DELETE FROM documents WHERE campaign = ?", [campaign])?;
            let mut insert = sql.prepare("INSERT INTO documents VALUES (?, ?, ?, ?, ?)")?;
            for (name, document) in named {
                let Some(one) = document else { continue };
                insert.execute(params![campaign, name, one.data, one.signature, one.refresh_at])?;
            }
            Ok(())
        })
    })
}

/// Store when to ask again for the campaign file, which has not changed.
///
/// # Errors
/// As `Store::change`.
pub(crate) fn note_refresh(store: &Store, campaign: &str, refresh_at: i64) -> Result<()> {
    let update = "UPDATE documents SET refresh_at = ? WHERE campaign = ? AND name = 'campaign'";
    change(store, campaign, |tables| tables.sql(|sql, campaign| sql.execute(update, params![refresh_at, campaign])))
        .map(drop)
}
