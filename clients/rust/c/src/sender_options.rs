//! The options of a sender.

use std::ffi::c_char;
use std::ptr;
use std::sync::Arc;

use hushcount::{Budget, Issuer, SenderOptions, Site};

use crate::errors::hushcount_error;
use crate::files::{designs_of, hushcount_budget, policy_of};
use crate::texts::{hushcount_bytes, option};

/// The options of a sender. Take them from `hushcount_sender_options_of`, then change what differs.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct hushcount_sender_options {
    /// The collector's address, as in `https://collector.example.com`.
    pub collector: *const c_char,
    /// The token of the app, for collectors that demand one; or NULL.
    pub app_token: *const c_char,
    /// The collector's name, if the campaign has several collectors; or NULL.
    pub collector_name: *const c_char,
    /// The evaluator's address, if it does not answer at the collector's; or NULL.
    pub evaluator: *const c_char,
    /// The issuer's address, if the campaign asks for passes; or NULL.
    pub issuer: *const c_char,
    /// What the issuer demands before it gives passes: the whole value of the header Authorization; or NULL.
    pub issuer_authorization: *const c_char,
    /// The app's policy, from `hushcount campaign policy`.
    pub policy: hushcount_bytes,
    /// The designs of a campaign with mechanism `wss`.
    pub designs: hushcount_bytes,
    /// The person's budget; its store also has the queue.
    pub budget: hushcount_budget,
    /// Keep the plain value with a report on this device, so that a report that is too late can be made anew.
    pub keep_values: bool,
    /// Length of the operator's windows, or of the shortest that a campaign may list.
    pub window_seconds: u64,
    /// Each report waits a random time of at most this length, so that its arrival does not reveal the time of use.
    pub delay_seconds: u64,
    /// How long an evaluation without an answer is asked for again.
    pub answer_within_seconds: u64,
    /// How many reports may wait.
    pub most_queued: u64,
}

/// Return the options of a collector, a policy and a store, with all others as by default.
#[unsafe(no_mangle)]
pub extern "C" fn hushcount_sender_options_of(
    collector: *const c_char,
    policy: hushcount_bytes,
    store: *const c_char,
) -> hushcount_sender_options {
    hushcount_sender_options {
        collector,
        app_token: ptr::null(),
        collector_name: ptr::null(),
        evaluator: ptr::null(),
        issuer: ptr::null(),
        issuer_authorization: ptr::null(),
        policy,
        designs: hushcount_bytes::NONE,
        budget: hushcount_budget::unlimited(store),
        keep_values: false,
        window_seconds: 86_400,
        delay_seconds: 600,
        answer_within_seconds: 3600,
        most_queued: 1000,
    }
}

/// Read options of C; return also the budget that they have.
pub(crate) unsafe fn options_of(given: &hushcount_sender_options) -> Result<(SenderOptions, Budget), hushcount_error> {
    let text = |name, text| unsafe { option(name, text) };
    let mut site = Site::from(text("collector", given.collector)?.unwrap_or_default());
    site.app_token = text("app_token", given.app_token)?.map(str::to_owned);
    site.name = text("collector_name", given.collector_name)?.map(str::to_owned);
    let (store, budget) = unsafe { given.budget.opened() }?;
    let mut options = SenderOptions::new(site, unsafe { policy_of(given.policy) }?, store);
    options.budget = Some(budget.clone());
    options.evaluator = text("evaluator", given.evaluator)?.map(Site::from);
    options.issuer = text("issuer", given.issuer)?
        .map(Site::from)
        .map(|site| {
            let authorization = text("issuer_authorization", given.issuer_authorization)?;
            let authorization = authorization.filter(|text| !text.is_empty());
            let missing = || hushcount_error::usage("issuer_authorization must not be NULL or empty with an issuer");
            let authorization = authorization.ok_or_else(missing)?.to_owned();
            Ok::<_, hushcount_error>(Issuer { site, authorization: Arc::new(move || authorization.clone()) })
        })
        .transpose()?;
    options.designs = unsafe { designs_of(given.designs) }?;
    options.keep_values = given.keep_values;
    options.window_seconds = given.window_seconds;
    options.delay_seconds = given.delay_seconds;
    options.answer_within_seconds = given.answer_within_seconds;
    options.most_queued = given.most_queued;
    Ok((options, budget))
}
