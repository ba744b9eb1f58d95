//! The maker of the present epoch's reports, from the kept documents or from newer ones that the policy accepts.
//!
//! A request for the campaign file at the moment of use would reveal the time of use, which the random delay of reports
//! hides. So once a campaign file is kept, making a report causes no request. Rounds of delivery ask for the campaign
//! file again, at a time that is drawn when the file comes and is kept with the file. A round that begins after the
//! drawn time waits another random time before it asks for the file, because the process may just have started, or the
//! machine may have slept. A process that ends before the drawn time asks for the file in a round that sends reports,
//! because the collector sees the arrival of these reports in any case.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::common::Common;
use super::documents::{Documents, LEAST_AGE, keep_documents, kept_documents, note_refresh};
use super::events::What;
use super::publication::Reading;
use super::waits::{LONGEST_WAIT, is_ahead, random_time};
use crate::errors::{Error, Kind, Result};
use crate::making::ReportMaker;

const WITHOUT_FILE: i64 = 60_000;
/// Twice the longest time between two rounds of delivery. A process whose next round is later than this has slept.
const SLEPT: i64 = 120_000;
const LONGEST: i64 = LONGEST_WAIT / 2 * 3;

/// Why a round may ask for the campaign file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// The request is due.
    Due,
    /// This round sends reports, so a request that is due need not wait another random time.
    Sends,
    /// An epoch was closed.
    Anyway,
}

/// The maker of the newest campaign file that was accepted; threads may share it.
///
/// If a new campaign file cannot be fetched or is refused, the earlier file stays in use.
pub(crate) struct Present {
    pub(crate) common: Arc<Common>,
    pub(crate) reading: Reading,
    pub(crate) state: Mutex<State>,
    /// Held during a request, so that one thread asks at a time.
    pub(crate) asking: Mutex<()>,
}

/// What is known.
#[derive(Default)]
pub(crate) struct State {
    is_read: bool,
    documents: Option<Documents>,
    /// Whether a campaign file was ever kept, also one that cannot be used.
    is_kept: bool,
    maker: Option<Arc<ReportMaker>>,
    pub(crate) due: i64,
    pub(crate) drawn: Option<i64>,
    failure: Option<Error>,
}

impl Present {
    /// Return the maker at once, without asking the collector; none if there is no maker yet.
    ///
    /// # Errors
    /// `Store`, `Format`: the kept documents cannot be read.
    pub(crate) fn maker(&self) -> Result<Option<Arc<ReportMaker>>> {
        Ok(self.read()?.maker.clone())
    }

    /// Why there is no maker, or why the last attempt to get a campaign file failed; none if that attempt succeeded.
    pub(crate) fn failure(&self) -> Option<Error> {
        self.state().failure.clone()
    }

    /// Return the maker; if no campaign file was ever kept, first ask for one.
    ///
    /// The collector is asked once a minute at most, or with `once` only a single time.
    ///
    /// # Errors
    /// As `maker`.
    pub(crate) fn first(&self, once: bool) -> Result<Option<Arc<ReportMaker>>> {
        let _asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        let state = self.read()?;
        let never = state.maker.is_none() && !state.is_kept && !(once && state.failure.is_some());
        drop(state);
        if never && self.is_time(When::Due)? {
            self.try_to_ask()?;
        }
        self.maker()
    }

    /// Ask for the campaign file if a request is due, or anyway; return the maker. Only rounds of delivery call this
    /// method.
    ///
    /// # Errors
    /// As `maker`.
    pub(crate) fn refreshed(&self, when: When) -> Result<Option<Arc<ReportMaker>>> {
        let _asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.read()?);
        if when == When::Anyway || self.is_time(when)? {
            self.try_to_ask()?;
        }
        self.maker()
    }

    /// Return when a round of delivery may ask for the campaign file.
    ///
    /// # Errors
    /// As `maker`.
    pub(crate) fn next_due(&self) -> Result<i64> {
        let state = self.read()?;
        Ok(state.drawn.unwrap_or(state.due))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_time(&self, when: When) -> Result<bool> {
        let (now, mut state) = (self.common.clock.now(), self.state());
        if is_ahead(state.due, now, LONGEST) {
            return Ok(false);
        }
        if state.maker.is_none() || when == When::Sends {
            return Ok(true);
        }
        // Another time is drawn; otherwise a process that slept past the drawn time would ask at the moment at which it
        // wakes.
        let drawn = match state.drawn {
            Some(drawn) if now - drawn <= SLEPT => drawn,
            _ => now + random_time(self.common.delay)?,
        };
        state.drawn = Some(drawn);
        Ok(!is_ahead(drawn, now, LONGEST))
    }

    /// Read the kept documents, if they were not read yet.
    fn read(&self) -> Result<MutexGuard<'_, State>> {
        let mut state = self.state();
        if state.is_read {
            return Ok(state);
        }
        if let Some(documents) = kept_documents(&self.common.store, &self.common.queue.campaign)? {
            state.is_kept = true;
            match self.opened(&documents) {
                Ok(maker) => {
                    state.due = documents.campaign.refresh_at;
                    (state.maker, state.documents) = (Some(maker), Some(documents));
                }
                // Another version of this crate kept the file, the file's keys have expired, or the file is older than
                // the newest one that the policy accepted.
                Err(error) => {
                    self.common.log.tell(What::Refused, &error.to_string(), 0, None);
                    state.failure = Some(error);
                }
            }
        }
        state.is_read = true;
        Ok(state)
    }

    fn opened(&self, documents: &Documents) -> Result<Arc<ReportMaker>> {
        let maker = self.reading.opened(&self.common, documents, self.common.clock.now())?;
        self.common.arrivals.follow(&maker.campaign);
        Ok(Arc::new(maker))
    }

    fn try_to_ask(&self) -> Result<()> {
        let asked = self.ask();
        let mut state = self.state();
        state.drawn = None;
        if let Err(error) = asked {
            let later = LEAST_AGE + random_time(LEAST_AGE / 2)?;
            state.due = self.common.clock.now() + if state.maker.is_none() { WITHOUT_FILE } else { later };
            let what = if error.kind() == Kind::Delivery { What::NotFetched } else { What::Refused };
            self.common.log.tell(what, &error.to_string(), 0, None);
            state.failure = Some(error);
        } else {
            state.failure = None;
        }
        Ok(())
    }

    fn ask(&self) -> Result<()> {
        let (before, has_maker) = {
            let state = self.state();
            (state.documents.clone(), state.maker.is_some())
        };
        let (now, reading) = (self.common.clock.now(), &self.reading);
        let documents = reading.fetched(&self.common, before.as_ref(), now)?;
        // Only now is it known that no page of another network came in the collector's place.
        if let Some(at) = documents.campaign.at {
            self.common.arrivals.heard(at)?;
        }
        let refresh_at = documents.campaign.refresh_at;
        // The signatures are compared too: the same file may have a new signature, because keys that vouched for it
        // expired.
        if has_maker && before.is_some_and(|before| is_same(&before, &documents)) {
            note_refresh(&self.common.store, &self.common.queue.campaign, refresh_at)?;
            self.common.log.tell(What::Unchanged, "", 0, None);
        } else {
            let maker = self.opened(&documents)?;
            let epoch = maker.campaign.epoch;
            {
                let mut state = self.state();
                (state.maker, state.is_kept) = (Some(maker), true);
            }
            keep_documents(&self.common.store, &self.common.queue.campaign, &documents)?;
            self.common.log.tell(What::Fetched, &format!("epoch {epoch}"), 0, None);
        }
        let mut state = self.state();
        (state.documents, state.due) = (Some(documents), refresh_at);
        Ok(())
    }
}

fn is_same(one: &Documents, other: &Documents) -> bool {
    one.campaign.data == other.campaign.data && one.campaign.signature == other.campaign.signature
}
