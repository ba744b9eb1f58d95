//! The thread of a sender, which delivers what is due until the sender is stopped.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::delivering::Deliverer;
use super::events::What;
use crate::errors::{Error, Kind, Result};

const LONGEST_SLEEP: i64 = 60_000;

/// Runs rounds of delivery in one thread; threads may share it.
#[derive(Default)]
pub(crate) struct Background {
    thread: Mutex<Option<JoinHandle<()>>>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    woken: Condvar,
}

#[derive(Default)]
struct State {
    is_ending: bool,
    is_woken: bool,
    /// When the thread wakes, while it sleeps.
    wakes_at: Option<i64>,
}

impl Background {
    /// Return whether the thread runs.
    pub(crate) fn is_running(&self) -> bool {
        self.thread().as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Start the thread, unless it runs.
    ///
    /// # Errors
    /// `Store`: the operating system gives no thread.
    pub(crate) fn start(&self, deliverer: &Arc<Deliverer>) -> Result<()> {
        let mut thread = self.thread();
        if thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return Ok(());
        }
        *self.shared.state() = State::default();
        let (deliverer, shared) = (deliverer.clone(), self.shared.clone());
        let started = thread::Builder::new().name("hushcount".to_owned()).spawn(move || run(&deliverer, &shared));
        *thread =
            Some(started.map_err(|error| Error::store(format!("cannot start the thread of the sender: {error}")))?);
        Ok(())
    }

    /// Begin a round now if the thread sleeps longer than until `due`.
    pub(crate) fn wake_before(&self, due: i64) {
        let mut state = self.shared.state();
        if state.wakes_at.is_none_or(|at| due < at) {
            state.is_woken = true;
            self.shared.woken.notify_all();
        }
    }

    /// Let the thread end after the round that runs; the first round always runs, to send what waited before.
    pub(crate) fn let_end(&self) {
        self.shared.state().is_ending = true;
        self.shared.woken.notify_all();
    }

    /// End the thread, and wait for its last round.
    pub(crate) fn end(&self) {
        self.let_end();
        let thread = self.thread().take();
        // A thread cannot wait for itself, as when an app's `Http` stops the sender.
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != thread::current().id()) {
            // The rounds catch all panics.
            let _ = thread.join();
        }
    }

    fn thread(&self) -> MutexGuard<'_, Option<JoinHandle<()>>> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Do some work of a sender. A panic, as of an app's `Http`, becomes an error, so that telemetry ends no app.
///
/// # Errors
/// That of the work; `Store`: it panicked.
pub(crate) fn caught<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    // Locks are taken whether they are poisoned or not, and each change of the store is whole or undone.
    let done = catch_unwind(AssertUnwindSafe(work));
    done.unwrap_or_else(|_| {
        Err(Error::new(Kind::Store, "the sender failed: report this fault of Hushcount or of the app's Http"))
    })
}

fn run(deliverer: &Deliverer, shared: &Shared) {
    loop {
        {
            let mut state = shared.state();
            (state.wakes_at, state.is_woken) = (None, false);
        }
        let began = deliverer.common.clock.now();
        let round = caught(|| {
            deliverer.deliver(false)?;
            deliverer.time_to_wait(began)
        });
        let sleep = round.unwrap_or_else(|error| {
            deliverer.common.log.tell(What::Again, &error.to_string(), 0, None);
            LONGEST_SLEEP
        });
        // The queue is read once a minute, because other processes may queue reports, and the clock may be set.
        let sleep = sleep.clamp(0, LONGEST_SLEEP);
        let mut state = shared.state();
        state.wakes_at = Some(deliverer.common.clock.now() + sleep);
        let sleeps = |state: &mut State| !state.is_ending && !state.is_woken;
        let time = Duration::from_millis(sleep.unsigned_abs());
        let woken = shared.woken.wait_timeout_while(state, time, sleeps);
        state = woken.unwrap_or_else(PoisonError::into_inner).0;
        if state.is_ending {
            return;
        }
    }
}
