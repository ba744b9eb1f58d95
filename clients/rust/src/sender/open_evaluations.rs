//! The open evaluations of one process. They contain values, so they wait in memory and are never written to a disk.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::waits::{LONGEST_WAIT, is_ahead};
use crate::discovery::oblivious::PendingDiscovery;

/// The evaluation of one discovery report, whose blank waits in the queue.
pub(crate) struct OpenEvaluation {
    /// Claim of the blank in the queue.
    pub(crate) claim: String,
    /// Fingerprint of the campaign file, in hexadecimal.
    pub(crate) fingerprint: String,
    /// When the evaluation is asked for; this time is drawn at random, by the same law for every value.
    pub(crate) due: i64,
    /// If no answer has come by this moment, the report's blank is sent.
    pub(crate) until: i64,
    pub(crate) pending: PendingDiscovery,
    /// When the window of the first attempt began; none before it. Every attempt shows the token of this window, so
    /// that equal bytes never link two tokens.
    pub(crate) window: Option<i64>,
    /// As in `Waiting`.
    pub(crate) period: u64,
}

/// The open evaluations of one process; threads may share them.
#[derive(Default)]
pub(crate) struct OpenEvaluations(Mutex<Vec<OpenEvaluation>>);

impl OpenEvaluations {
    /// Keep evaluations until they are taken.
    pub(crate) fn add(&self, evaluations: impl IntoIterator<Item = OpenEvaluation>) {
        self.open().extend(evaluations);
    }

    /// Remove and return the evaluation that is due first, also one that is not due yet if `early`.
    pub(crate) fn take(&self, now: i64, early: bool) -> Option<OpenEvaluation> {
        let mut open = self.open();
        let is_due = |one: &OpenEvaluation| early || !is_ahead(one.due, now, LONGEST_WAIT);
        let due = open.iter().enumerate().filter(|(_, one)| is_due(one));
        let (place, _) = due.min_by_key(|(_, one)| one.due)?;
        Some(open.remove(place))
    }

    /// Remove and return the evaluations that were not answered in time, or all evaluations if `early`.
    pub(crate) fn take_late(&self, now: i64, early: bool) -> Vec<OpenEvaluation> {
        self.open().extract_if(.., |one| early || !is_ahead(one.until, now, 2 * LONGEST_WAIT)).collect()
    }

    /// Return when the next evaluation is due; none if no evaluation is open.
    pub(crate) fn next_due(&self) -> Option<i64> {
        self.open().iter().map(|one| one.due).min()
    }

    /// Delete all evaluations, with the values in them.
    pub(crate) fn clear(&self) {
        self.open().clear();
    }

    fn open(&self) -> MutexGuard<'_, Vec<OpenEvaluation>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
