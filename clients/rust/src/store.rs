//! A client's records and queue: one `SQLite` database, in memory or in a file that only its user can read.
//!
//! A change is tried once: when it ends, either all of it is on the disk or nothing of it. A connection to a file is
//! open during one change only, so threads and processes may share the file.

use std::fmt::Display;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Transaction, TransactionBehavior, params};
use serde_json::Value;

use crate::errors::{Error, Result};

#[cfg(test)]
#[path = "../tests/store/mod.rs"]
pub(crate) mod tests;

const BUSY: Duration = Duration::from_secs(30);
/// `SQLite` neither makes the file, because other users could read it, nor reads its name as a URI or as `:memory:`.
const FLAGS: OpenFlags = OpenFlags::SQLITE_OPEN_READ_WRITE.union(OpenFlags::SQLITE_OPEN_NO_MUTEX);
/// Held while a file is made: closing the descriptor that made it would release the locks of another thread's
/// `SQLite`.
static MAKING: Mutex<()> = Mutex::new(());
/// The journal is truncated, not removed, so that the end of a commit changes only the journal file, which `SQLite`
/// syncs, and not the folder. Deleted rows are overwritten, because they contain plain values if the app keeps plain
/// values.
const SETTINGS: &str = "PRAGMA journal_mode = TRUNCATE; PRAGMA synchronous = FULL; PRAGMA secure_delete = ON;
    PRAGMA trusted_schema = OFF; PRAGMA temp_store = MEMORY;
    CREATE TABLE IF NOT EXISTS records (name TEXT PRIMARY KEY, value TEXT NOT NULL);";

/// Where a client keeps what must outlive its process: budget, answers, accepted epochs, and reports that wait.
///
/// A store is for one person. Threads may share it; processes may open the same file.
#[derive(Clone)]
pub struct Store {
    place: Place,
}

#[derive(Clone)]
enum Place {
    File(PathBuf),
    /// With the process that made it.
    Memory(Arc<Mutex<Connection>>, u32),
}

impl Store {
    /// Keep the records in a file of mode 0600, which is made if it is missing, in a folder that only its user can
    /// change.
    ///
    /// A missing or empty file begins a new budget; an older copy of the file forgets later charges.
    ///
    /// # Errors
    /// `Usage`: the folder is missing, other users can read the file or change the folder, or the file is no regular
    /// file. `Store`: it cannot be made or read. `Format`: it is damaged.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        let unusable =
            |error| Error::usage(format!("the store's path is {}, must name a file: {error}", path.display()));
        // Otherwise the records would change with the working directory.
        let path = std::path::absolute(&path).map_err(unusable)?;
        // Who can write to the folder could replace the file, or give it a journal, which is where a link leads.
        for path in [&path, &fs::canonicalize(&path).unwrap_or_default()] {
            path.parent().map_or(Ok(()), require_folder)?;
        }
        let store = Self { place: Place::File(path) };
        store.change(|_| Ok(()))?;
        Ok(store)
    }

    /// Keep the records in memory: they end with the process, and the budget begins anew with the next one.
    ///
    /// # Errors
    /// `Store`: there is no memory.
    pub fn in_memory() -> Result<Self> {
        let connection =
            Connection::open_in_memory().and_then(connected).map_err(|error| failed("in memory", &error))?;
        Ok(Self { place: Place::Memory(Arc::new(Mutex::new(connection)), std::process::id()) })
    }

    /// Whether another store has the same records.
    pub(crate) fn is(&self, other: &Self) -> bool {
        match (&self.place, &other.place) {
            (Place::File(one), Place::File(other)) => one == other,
            (Place::Memory(one, _), Place::Memory(other, _)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }

    /// Whether the records outlive the process.
    pub(crate) fn is_durable(&self) -> bool {
        matches!(self.place, Place::File(_))
    }

    /// Read and write in one step: no other thread or process changes anything between this step's reading and
    /// writing.
    ///
    /// # Errors
    /// That of the step, after which nothing is written; or as `open`. After `Store` the change is on the disk only if
    /// nothing but the last sync failed.
    pub(crate) fn change<T>(&self, step: impl FnOnce(&Records<'_>) -> Result<T>) -> Result<T> {
        match &self.place {
            Place::Memory(_, process) if *process != std::process::id() => Err(Error::usage(
                "another process made this store before a fork, and would spend the same budget again: make a store of \
                 this process",
            )),
            Place::Memory(connection, _) => {
                let mut connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
                changed(&mut connection, "in memory", step)
            }
            Place::File(path) => {
                require_private(path)?;
                let name = path.display().to_string();
                let mut connection = Connection::open_with_flags(path, FLAGS)
                    .and_then(connected)
                    .map_err(|error| failed(&name, &error))?;
                changed(&mut connection, &name, step)
            }
        }
    }
}

/// The records of a store within one change.
pub(crate) struct Records<'a> {
    transaction: Transaction<'a>,
    name: &'a str,
}

impl Records<'_> {
    /// Return the record of a name, if there is one.
    ///
    /// # Errors
    /// `Format`: the record is damaged.
    pub(crate) fn get(&self, name: &str) -> Result<Option<Value>> {
        let query = "SELECT value FROM records WHERE name = ?";
        let text: Option<String> = self.sql(|sql| sql.query_row(query, [name], |row| row.get(0)).optional())?;
        text.map(|text| serde_json::from_str(&text).map_err(|_| damaged(self.name))).transpose()
    }

    /// Write the record of a name.
    pub(crate) fn put(&self, name: &str, value: &Value) -> Result<()> {
        let put = "INSERT INTO records VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value";
        self.sql(|sql| sql.execute(put, params![name, value.to_string()])).map(drop)
    }

    /// Delete all records whose names begin with `prefix`.
    pub(crate) fn remove(&self, prefix: &str) -> Result<()> {
        let remove = "DELETE FROM records WHERE name BETWEEN ?1 AND ?1 || char(0x10FFFF)";
        self.sql(|sql| sql.execute(remove, [prefix])).map(drop)
    }

    /// Return the number of records whose names begin with `prefix`.
    pub(crate) fn count(&self, prefix: &str) -> Result<u64> {
        let count = "SELECT count(*) FROM records WHERE name BETWEEN ?1 AND ?1 || char(0x10FFFF)";
        self.sql(|sql| sql.query_row(count, [prefix], |row| row.get(0)))
    }

    /// Use the database itself, for tables of the caller's own.
    pub(crate) fn sql<T>(&self, work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>) -> Result<T> {
        work(&self.transaction).map_err(|error| failed(self.name, &error))
    }
}

fn connected(connection: Connection) -> rusqlite::Result<Connection> {
    connection.busy_timeout(BUSY)?;
    connection.execute_batch(SETTINGS)?;
    Ok(connection)
}

fn changed<T>(connection: &mut Connection, name: &str, step: impl FnOnce(&Records<'_>) -> Result<T>) -> Result<T> {
    let begun = connection.transaction_with_behavior(TransactionBehavior::Immediate);
    let records = Records { transaction: begun.map_err(|error| failed(name, &error))?, name };
    let made = step(&records)?;
    // If only the last sync fails, `SQLite` cannot take the change back.
    let unsure = |error| Error::store(format!("cannot write store {name}: {error}; perhaps nothing changed"));
    records.transaction.commit().map_err(unsure)?;
    Ok(made)
}

fn failed(name: &str, error: &rusqlite::Error) -> Error {
    match error.sqlite_error_code() {
        // Without a code a value has another type than it was written with.
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) | None => damaged(name),
        Some(_) => cannot_write(name, error),
    }
}

fn damaged(name: &str) -> Error {
    Error::format(format!(
        "store {name} is damaged: restore it; removing it would renew the budget, although sent reports cannot be \
         taken back"
    ))
}

fn cannot_write(name: impl Display, error: impl Display) -> Error {
    Error::store(format!("cannot write store {name}: {error}; nothing changed"))
}

/// Make the file if it is missing; refuse what is no regular file, or what other users can read.
fn require_private(path: &Path) -> Result<()> {
    let failed = |error: io::Error| cannot_write(path.display(), error);
    made(path).map_err(failed)?;
    // The file is not opened to read its mode, because closing any descriptor of it would release `SQLite`'s locks on
    // it.
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return Err(Error::usage(format!("store {} is no regular file: give another path", path.display())));
    }
    require_mode("store", path, 0o077, 0o600)
}

fn made(path: &Path) -> io::Result<()> {
    let _alone = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    let mut new = OpenOptions::new();
    new.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut new, 0o600);
    match new.open(path) {
        // The folder is synced, so that no power cut takes the file away.
        #[cfg(unix)]
        Ok(_) => fs::File::open(path.parent().unwrap_or(path))?.sync_all(),
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

fn require_folder(folder: &Path) -> Result<()> {
    if !folder.exists() {
        let cure = "make it first, with mode 0700";
        return Err(Error::usage(format!("the store's folder {} is missing: {cure}", folder.display())));
    }
    require_mode("the store's folder", folder, 0o022, 0o700)
}

/// Refuse a file or folder that gives other users a right, on systems that have modes.
fn require_mode(what: &str, path: &Path, forbidden: u32, cure: u32) -> Result<()> {
    #[cfg(unix)]
    {
        let about = fs::metadata(path).map_err(|error| cannot_write(path.display(), error))?;
        let (mode, path) = (std::os::unix::fs::PermissionsExt::mode(&about.permissions()) & 0o7777, path.display());
        if mode & forbidden != 0 {
            let message = format!("{what} {path} has mode {mode:04o}, must be {cure:04o}: chmod {cure:o} {path}");
            return Err(Error::usage(message));
        }
    }
    #[cfg(not(unix))]
    let _ = (what, path, forbidden, cure);
    Ok(())
}
