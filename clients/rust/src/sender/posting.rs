//! Post a batch of reports to the collector, with the token or the pass of the window of its first attempt.

use super::common::Common;
use super::http::{Failure, post};
use super::queue::Queue;
use super::shown::shown;
use super::site::Site;
use super::verdict::{Answer, Fate, Verdict};
use super::waiting::Claimed;
use crate::campaigns::campaign::Stream;
use crate::errors::Result;
use crate::formats::times::time_text;
use crate::passes::slots::{Role, Slot};

/// Post claimed reports, and return what the answer means for these reports.
///
/// Reports that name their window are taken before it ends, or never.
///
/// # Errors
/// `Store`: the tokens cannot be read.
pub(crate) fn posted(common: &Common, claimed: &Claimed) -> Result<Verdict> {
    let queue = &common.queue;
    let (of, window) = (&claimed.of, claimed.window);
    let slot = Slot { role: Role::Collector, campaign: &queue.campaign, name: &of.collector, begins: window / 1000 };
    // The pass is too old to be kept. The bytes may have arrived under it, so they do not get another one.
    let Some(token) = shown(queue, slot, of.period)? else { return Ok(told(Fate::Dropped, "wrong_slot")) };
    let (stream, fingerprint) = (of.stream.map_or("", Stream::name), &of.fingerprint);
    let mut path = format!("{}/{stream}?fingerprint={fingerprint}&window={}", base(queue), window_name(window));
    if of.window.is_some() {
        path.push_str("&until=");
        path.push_str(&window_name(common.arrivals.starts().after(window)));
    }
    Ok(match post(&*common.http, &common.site, &path, &claimed.body(), token) {
        Ok(answer) => answer.answer().verdict(claimed.rows.len(), window),
        Err(failure) => told(Fate::Again, failure.name()),
    })
}

/// Ask for the evaluation of one blinded element, with a token for the evaluator.
pub(crate) fn asked(
    common: &Common,
    site: &Site,
    (fingerprint, blinded): (&str, &[u8]),
    token: (&'static str, String),
) -> std::result::Result<Answer, Failure> {
    let path = format!("{}/evaluations?fingerprint={fingerprint}", base(&common.queue));
    Ok(post(&*common.http, site, &path, blinded, token)?.answer())
}

/// Return a verdict without a time.
pub(crate) fn told(fate: Fate, reason: &str) -> Verdict {
    Verdict { fate, reason: reason.to_owned(), wait: 0, at: None }
}

fn base(queue: &Queue) -> String {
    format!("/v1/campaigns/{}", queue.campaign)
}

/// Return the name of a window, as in 20261201T000000Z; windows begin with a second.
fn window_name(begins: i64) -> String {
    time_text(begins).replace(['-', ':'], "").replace(".000", "")
}
