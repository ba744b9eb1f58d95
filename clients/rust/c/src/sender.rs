//! The sender: makes, queues and delivers reports.

use std::ffi::{CStr, c_char, c_int};

use hushcount::{Budget, Reported, Sender, Value};

use crate::errors::{attempt, free, given, hushcount_error, make};
use crate::sender_options::{hushcount_sender_options, options_of};
use crate::texts::{coordinates, hushcount_coordinate, owned, value};

/// Makes the reports of one person for one campaign, and delivers them to one collector. Threads may share it.
pub struct hushcount_sender(Sender, Budget);

/// What became of a value that an app reported.
#[repr(C)]
#[derive(Clone, Copy)]
pub enum hushcount_reported {
    /// The reports wait on this device, and a delivery sends them.
    Queued,
    /// The campaign asks a part of its clients, and not this one.
    NotAsked,
    /// This person has made as many reports as count in this window.
    OverCap,
    /// The person's budget is spent, and the app chose `silent_when_spent`.
    BudgetSpent,
    /// The person opted out.
    OptedOut,
    /// As many reports wait as may wait.
    QueueFull,
    /// No campaign file can be used yet: none was fetched, or its keys are not valid now.
    NotYet,
    /// The policy refuses the collector's campaign file.
    Untrusted,
    /// The store cannot be read or written, or the sender is NULL.
    Storage,
}

/// What one delivery did.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct hushcount_delivery {
    /// Reports that the collector has on its disk.
    pub sent: u64,
    /// Reports that were given up; the log has the reasons.
    pub dropped: u64,
    /// Reports and plain values that wait.
    pub waiting: u64,
    /// Discovery reports without their values, because their evaluations did not come.
    pub blank: u64,
    /// After failures nothing is sent before this moment, in milliseconds since 1970; 0: reports may be sent now.
    pub held_until: i64,
    /// Whether reports wait because the client has no pass for the present window.
    pub no_pass: bool,
}

/// Store a sender in `sender`, or NULL if an option cannot be used. It begins to deliver by `hushcount_sender_start` or
/// `hushcount_sender_deliver`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hushcount_sender_open(
    options: *const hushcount_sender_options,
    sender: *mut *mut hushcount_sender,
) -> *mut hushcount_error {
    let work = || {
        let (options, budget) = unsafe { options_of(given("options", options)?) }?;
        Ok(Box::into_raw(Box::new(hushcount_sender(Sender::open(options)?, budget))))
    };
    unsafe { make("sender", sender, work) }
}

/// Make and queue the reports of a text; return what became of them. Without coordinates `by` is NULL and `axes` is 0.
/// With a NULL sender it returns `HUSHCOUNT_REPORTED_STORAGE`.
///
/// Once a campaign file is kept, it sends no request. The thread of `hushcount_sender_start` fetches the first file;
/// without that thread the first report may fetch it, and the time of this request reveals the time of use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hushcount_sender_report(
    sender: *const hushcount_sender,
    text: *const c_char,
    by: *const hushcount_coordinate,
    axes: usize,
) -> hushcount_reported {
    unsafe { reported(sender, value(text), (by, axes)) }
}

/// Make and queue the reports of a number, as `hushcount_sender_report`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hushcount_sender_report_number(
    sender: *const hushcount_sender,
    number: f64,
    by: *const hushcount_coordinate,
    axes: usize,
) -> hushcount_reported {
    unsafe { reported(sender, Value::Number(number), (by, axes)) }
}

/// Words in the order of `hushcount_reported`.
const WORDS: [&CStr; 9] = [
    c"queued",
    c"not_asked",
    c"over_cap",
    c"budget_spent",
    c"opted_out",
    c"queue_full",
    c"not_yet",
    c"untrusted",
    c"storage",
];

/// Return the word for a `hushcount_reported`, as in "queued", and "unknown" for any other number; it lives for ever.
#[unsafe(no_mangle)]
pub extern "C" fn hushcount_reported_word(reported: c_int) -> *const c_char {
    // C can pass any number, which must not become an enum.
    usize::try_from(reported).ok().and_then(|at| WORDS.get(at)).map_or(c"unknown".as_ptr(), |word| word.as_ptr())
}

/// Start a thread that delivers, unless it runs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hushcount_sender_start(sender: *const hushcount_sender) {
    if let Some(sender) = unsafe { sender.as_ref() } {
        sender.0.start();
    }
}

/// End the thread. With a store in memory, all waiting reports are sent now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hushcount_sender_stop(sender: *const hushcount_sender) {
    if let Some(sender) = unsafe { sender.as_ref() } {
        sender.0.stop();
    }
}

/// Send due reports, and store the result in `delivery`, which may be NULL. `early`: send all reports now; their time
/// of arrival then reveals the time of this call. A network or a collector that fails is no error: reports wait.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hushcount_sender_deliver(
    sender: *const hushcount_sender,
    early: bool,
    delivery: *mut hushcount_delivery,
) -> *mut hushcount_error {
    attempt(|| {
        let mut unwanted = hushcount_delivery::default();
        let place = unsafe { delivery.as_mut() }.unwrap_or(&mut unwanted);
        *place = hushcount_delivery::default();
        let done = unsafe { given("sender", sender) }?.0.deliver(early)?;
        *place = hushcount_delivery {
            sent: done.sent,
            dropped: done.dropped.values().sum(),
            waiting: done.waiting,
            blank: done.blank.values().sum(),
            held_until: done.held_until.unwrap_or(0),
            no_pass: done.no_pass,
        };
        Ok(())
    })
}

/// Opt the person out for good: make and send no more reports, and delete waiting reports and remembered answers. Tell
/// the person if it fails, and call it again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hushcount_sender_forget(sender: *const hushcount_sender) -> *mut hushcount_error {
    attempt(|| Ok(unsafe { given("sender", sender) }?.0.forget()?))
}

/// Let the person make reports again, who opted out; what was spent stays spent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hushcount_sender_opt_in(sender: *const hushcount_sender) -> *mut hushcount_error {
    attempt(|| Ok(unsafe { given("sender", sender) }?.1.opt_in()?))
}

/// Store in `words` what the person's reports cost, one sentence a line; free the text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hushcount_sender_spent(
    sender: *const hushcount_sender,
    words: *mut *mut c_char,
) -> *mut hushcount_error {
    unsafe { make("words", words, || Ok(owned(&given("sender", sender)?.0.spent()?.words().join("\n")))) }
}

/// Return the newest events, one a line, the oldest first: time, event, number of reports, reason. No event has a
/// value. Free the text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hushcount_sender_log(sender: *const hushcount_sender) -> *mut c_char {
    let events = unsafe { sender.as_ref() }.map(|sender| sender.0.log()).unwrap_or_default();
    let line = |event: &hushcount::Event| {
        let reason = event.reason.replace(['\n', '\0'], " ");
        format!("{} {} {} {reason}", event.at, event.what.word(), event.reports).trim_end().to_owned()
    };
    owned(&events.iter().map(line).collect::<Vec<_>>().join("\n"))
}

/// Free a sender, and let its thread end after its round: call `hushcount_sender_stop` first. NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hushcount_sender_free(sender: *mut hushcount_sender) {
    unsafe { free(sender) };
}

unsafe fn reported(
    sender: *const hushcount_sender,
    value: Value<'_>,
    (by, axes): (*const hushcount_coordinate, usize),
) -> hushcount_reported {
    let Some(sender) = (unsafe { sender.as_ref() }) else { return hushcount_reported::Storage };
    match sender.0.report_with(value, &unsafe { coordinates(by, axes) }) {
        Reported::Queued => hushcount_reported::Queued,
        Reported::NotAsked => hushcount_reported::NotAsked,
        Reported::OverCap => hushcount_reported::OverCap,
        Reported::BudgetSpent => hushcount_reported::BudgetSpent,
        Reported::OptedOut => hushcount_reported::OptedOut,
        Reported::QueueFull => hushcount_reported::QueueFull,
        Reported::NotYet => hushcount_reported::NotYet,
        Reported::Untrusted => hushcount_reported::Untrusted,
        Reported::Storage => hushcount_reported::Storage,
    }
}
