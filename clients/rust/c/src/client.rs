//! The client: makes sealed reports for an app that delivers them itself.

use std::ffi::c_char;
use std::slice;

use hushcount::{Budget, Client, ClientOptions, Stream, Value};

use crate::errors::{attempt, free, given, hushcount_error, make, place};
use crate::files::{designs_of, hushcount_budget, policy_of};
use crate::texts::{coordinates, hushcount_bytes, hushcount_coordinate, owned, value};

/// Privatises and seals values of one person for one campaign. Threads may share it.
pub struct hushcount_client(Client, Budget);

/// The options of a client. Take them from `hushcount_client_options_of`, then change what differs.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct hushcount_client_options {
    /// The campaign file.
    pub campaign: hushcount_bytes,
    /// The app's policy, from `hushcount campaign policy`.
    pub policy: hushcount_bytes,
    /// The campaign's signature.
    pub signature: hushcount_bytes,
    /// The campaign's log; needed if the client missed an epoch.
    pub log: hushcount_bytes,
    /// The campaign's dictionary, text or gzip.
    pub dictionary: hushcount_bytes,
    /// The designs of a campaign with mechanism `wss`.
    pub designs: hushcount_bytes,
    /// The person's budget.
    pub budget: hushcount_budget,
    /// Length of the operator's windows.
    pub window_seconds: u64,
}

/// Return the options of a campaign file, a policy and a store, with all others as by default.
#[unsafe(no_mangle)]
pub extern "C" fn hushcount_client_options_of(
    campaign: hushcount_bytes,
    policy: hushcount_bytes,
    store: *const c_char,
) -> hushcount_client_options {
    hushcount_client_options {
        campaign,
        policy,
        signature: hushcount_bytes::NONE,
        log: hushcount_bytes::NONE,
        dictionary: hushcount_bytes::NONE,
        designs: hushcount_bytes::NONE,
        budget: hushcount_budget::unlimited(store),
        window_seconds: 86_400,
    }
}

/// Check a campaign, and store its client in `client`, or NULL if it fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hushcount_client_open(
    options: *const hushcount_client_options,
    client: *mut *mut hushcount_client,
) -> *mut hushcount_error {
    let work = || {
        let options = unsafe { given("options", options) }?;
        let campaign = unsafe { options.campaign.copied() };
        let campaign = campaign.ok_or_else(|| hushcount_error::usage("campaign must not be NULL"))?;
        let mut own = ClientOptions::new(campaign, unsafe { policy_of(options.policy) }?);
        unsafe {
            own.signature = options.signature.copied();
            own.log = options.log.copied();
            own.dictionary = options.dictionary.copied();
            own.designs = designs_of(options.designs)?;
        }
        let (store, budget) = unsafe { options.budget.opened() }?;
        // A client whose campaign needs a store must not take one in memory for it.
        own.store = Some(store).filter(|_| !options.budget.store.is_null());
        (own.budget, own.window_seconds) = (Some(budget.clone()), options.window_seconds);
        Ok(Box::into_raw(Box::new(hushcount_client(Client::open(own)?, budget))))
    };
    unsafe { make("client", client, work) }
}

/// Return the length of every sealed frequency report, or with `discovery` of every discovery report, in bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hushcount_client_report_bytes(client: *const hushcount_client, discovery: bool) -> usize {
    let stream = if discovery { Stream::Discovery } else { Stream::Reports };
    unsafe { client.as_ref() }.map_or(0, |client| client.0.sealed_bytes(stream))
}

/// Return the fingerprint of the campaign file, which a post to the collector names; free the text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hushcount_client_fingerprint(client: *const hushcount_client) -> *mut c_char {
    owned(&unsafe { client.as_ref() }.map_or_else(String::new, |client| client.0.fingerprint()))
}

/// Make one sealed frequency report of a text. `report` has room for `length` bytes, which must be
/// `hushcount_client_report_bytes(client, false)`. Without coordinates `by` is NULL and `axes` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hushcount_client_report(
    client: *const hushcount_client,
    text: *const c_char,
    by: *const hushcount_coordinate,
    axes: usize,
    report: *mut u8,
    length: usize,
) -> *mut hushcount_error {
    unsafe { made(client, value(text), (by, axes), report, length) }
}

/// Make one sealed frequency report of a number, as `hushcount_client_report`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hushcount_client_report_number(
    client: *const hushcount_client,
    number: f64,
    by: *const hushcount_coordinate,
    axes: usize,
    report: *mut u8,
    length: usize,
) -> *mut hushcount_error {
    unsafe { made(client, Value::Number(number), (by, axes), report, length) }
}

/// Make one sealed discovery report of a text; of NULL a blank one. `length` must be
/// `hushcount_client_report_bytes(client, true)`. Campaigns with an evaluator need a sender.
///
/// A text that is longer than the campaign allows is an error of kind usage, and costs nothing. If the app then sends no
/// report, the missing report reveals this: send a blank one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hushcount_client_discovery_report(
    client: *const hushcount_client,
    text: *const c_char,
    report: *mut u8,
    length: usize,
) -> *mut hushcount_error {
    attempt(|| {
        let (client, room) = unsafe { room_of(client, Stream::Discovery, report, length) }?;
        let text = (!text.is_null()).then(|| unsafe { value(text) });
        room.copy_from_slice(&client.discovery_report(text)?);
        Ok(())
    })
}

/// Opt the person out for good, as `hushcount_sender_forget`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hushcount_client_forget(client: *const hushcount_client) -> *mut hushcount_error {
    attempt(|| Ok(unsafe { given("client", client) }?.0.forget()?))
}

/// Let the person make reports again, who opted out; what was spent stays spent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hushcount_client_opt_in(client: *const hushcount_client) -> *mut hushcount_error {
    attempt(|| Ok(unsafe { given("client", client) }?.1.opt_in()?))
}

/// Store in `words` what the person's reports cost, one sentence a line; free the text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hushcount_client_spent(
    client: *const hushcount_client,
    words: *mut *mut c_char,
) -> *mut hushcount_error {
    unsafe { make("words", words, || Ok(owned(&given("client", client)?.0.spent()?.words().join("\n")))) }
}

/// Free a client; NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hushcount_client_free(client: *mut hushcount_client) {
    unsafe { free(client) };
}

unsafe fn made(
    client: *const hushcount_client,
    value: Value<'_>,
    (by, axes): (*const hushcount_coordinate, usize),
    report: *mut u8,
    length: usize,
) -> *mut hushcount_error {
    attempt(|| {
        let (client, room) = unsafe { room_of(client, Stream::Reports, report, length) }?;
        room.copy_from_slice(&client.report_with(value, &unsafe { coordinates(by, axes) }, None)?);
        Ok(())
    })
}

/// Return the client and the room for a report, before anything is charged.
unsafe fn room_of<'a>(
    client: *const hushcount_client,
    stream: Stream,
    report: *mut u8,
    length: usize,
) -> Result<(&'a Client, &'a mut [u8]), hushcount_error> {
    let client = &unsafe { given("client", client) }?.0;
    unsafe { place("report", report) }?;
    let wanted = client.sealed_bytes(stream);
    if length != wanted {
        return Err(hushcount_error::usage(&format!("length is {length}, must be {wanted}")));
    }
    Ok((client, unsafe { slice::from_raw_parts_mut(report, length) }))
}
