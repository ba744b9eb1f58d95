//! The passes of one client: asked of the issuer once a day, kept in the queue, shown to collector and evaluator.
//!
//! A client asks for all its passes of the next day at a random second of each day, whether it reports or not, so the
//! request shows no use. Only a client without passes of today, as on its first day, asks at once. The bytes of a
//! request follow from the client's secret, the slots and the keys, so a repeated request is equal, and the issuer
//! answers it again (docs/adr/0053).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::common::Common;
use super::events::What;
use super::holds::Party;
use super::http::{Failure, get, post};
use super::posting::told;
use super::shown::Pass;
use super::site::{Site, is_header};
use super::verdict::{Fate, Verdict};
use crate::campaigns::campaign::Campaign;
use crate::errors::{Error, Kind, Result};
use crate::formats::times::day_text;
use crate::passes::asking::{Issue, MOST_KEYS_BYTES, asking_second, body_of, headers_of, octets_of};
use crate::passes::blind::KEY_BYTES;
use crate::passes::slots::{Role, Slot};

/// Seconds of a day.
const DAY: i64 = 86_400;

/// The issuer of a campaign's passes, and what shows that this installation may ask.
#[derive(Clone)]
pub struct Issuer {
    /// The issuer.
    pub site: Site,
    /// Returns the value of the header Authorization for the issuer's rule, such as a token of the account. It is
    /// called in the delivering thread, once for each request.
    pub authorization: Arc<dyn Fn() -> String + Send + Sync>,
}

/// Asks for the passes of one client; threads and processes may share the queue.
pub(crate) struct Passes {
    pub(crate) common: Arc<Common>,
    /// None: the app names no issuer, so no campaign with passes is accepted.
    pub(crate) issuer: Option<Issuer>,
}

impl Passes {
    /// Ask for passes if that is due; after a failure, the issuer is not asked for a while, as others are not.
    ///
    /// # Errors
    /// `Store`, `Format`: the store cannot be read or written.
    pub(crate) fn ask(&self, campaign: &Campaign) -> Result<()> {
        let (Some(issuer), Some(issue)) = (&self.issuer, issue_of(campaign)) else { return Ok(()) };
        if self.common.budget.opted_out()?
            || self.common.queue.held_until(self.common.clock.now(), Party::Issuer)?.is_some()
        {
            return Ok(());
        }
        let (name, secret) = (self.common.collector(campaign)?, self.common.queue.secret()?);
        for day in self.due(&issue, name, &secret)? {
            let verdict = self.asked(issuer, &issue, (name, &secret), day)?;
            if self.common.budget.opted_out()? {
                return Ok(());
            }
            if verdict.fate != Fate::Sent {
                self.common.queue.hold(self.common.clock.now(), verdict.wait, Party::Issuer)?;
                self.common.log.tell(What::NoPass, &verdict.reason, 0, None);
                return Ok(());
            }
            self.common.queue.release(Party::Issuer)?;
        }
        Ok(())
    }

    /// Return whether the client may send untried reports in a window: it has a pass, or none is needed.
    ///
    /// # Errors
    /// As `ask`.
    pub(crate) fn has(&self, campaign: &Campaign, window: i64) -> Result<bool> {
        let Some(issue) = issue_of(campaign) else { return Ok(true) };
        let (name, begins) = (self.common.collector(campaign)?, issue.period(window / 1000));
        let slot = Slot { role: Role::Collector, campaign: &campaign.id, name, begins };
        Ok(self.common.queue.passes()?.iter().any(|pass| pass.is_of(&slot)))
    }

    /// Return the days for which passes are asked for now, in seconds since 1970.
    fn due(&self, issue: &Issue<'_>, name: &str, secret: &[u8; 32]) -> Result<Vec<i64>> {
        let today = (self.common.arrivals.present()? / 1000).div_euclid(DAY) * DAY;
        let is_later = self.common.clock.now() >= 1000 * (today + asking_second(secret, today));
        let kept = self.common.queue.passes()?;
        let lacks =
            |day: &i64| !issue.own_slots(name, *day).iter().all(|slot| kept.iter().any(|pass| pass.is_of(slot)));
        Ok([Some(today), is_later.then_some(today + DAY)].into_iter().flatten().filter(lacks).collect())
    }

    /// Ask for all passes of a day, and keep them if all are good; return what happened.
    fn asked(&self, issuer: &Issuer, issue: &Issue<'_>, own: (&str, &[u8; 32]), day: i64) -> Result<Verdict> {
        let made = match self.passes_of(issuer, issue, own, day) {
            Ok(made) => made,
            Err(NoPasses::Said(verdict)) => return Ok(verdict),
            Err(NoPasses::Silent(failure)) => return Ok(told(Fate::Again, failure.name())),
            // Keys or signatures that are not those of the campaign file: another answer may come later.
            Err(NoPasses::Useless(error)) => return Ok(told(Fate::Again, &error.to_string())),
        };
        if !self.common.budget.opted_out()? {
            self.common.queue.keep_passes(own.1, made, day)?;
        }
        Ok(told(Fate::Sent, ""))
    }

    fn passes_of(
        &self,
        issuer: &Issuer,
        issue: &Issue<'_>,
        (name, secret): (&str, &[u8; 32]),
        day: i64,
    ) -> std::result::Result<Vec<Pass>, NoPasses> {
        let text = day_text(1000 * day).replace('-', "");
        let path = format!("/v1/campaigns/{}/passes?day={text}", issue.campaign);
        let keys = get(&*self.common.http, &issuer.site, &path, MOST_KEYS_BYTES)?.answer();
        let pending = issue.pending(secret, name, day, octets_of(&keys, None)?)?;
        let shown = ("Authorization", shown_by(issuer)?);
        let answer =
            post(&*self.common.http, &issuer.site, &format!("{path}&collector={name}"), &body_of(&pending), shown)?;
        let answer = answer.answer();
        let headers = headers_of(&pending, octets_of(&answer, Some(pending.len() * KEY_BYTES))?)?;
        Ok(pending.iter().zip(headers).map(|(one, header)| Pass::new(&one.slot, header)).collect())
    }
}

/// Why there are no passes.
enum NoPasses {
    Silent(Failure),
    Said(Verdict),
    Useless(Error),
}

impl From<Failure> for NoPasses {
    fn from(failure: Failure) -> Self {
        Self::Silent(failure)
    }
}

impl From<Verdict> for NoPasses {
    fn from(verdict: Verdict) -> Self {
        Self::Said(verdict)
    }
}

impl From<Error> for NoPasses {
    fn from(error: Error) -> Self {
        Self::Useless(error)
    }
}

/// Return what the app gives for the issuer's rule; the error lacks its text.
fn shown_by(issuer: &Issuer) -> Result<String> {
    let refused = |said| Err(Error::new(Kind::Delivery, said));
    match catch_unwind(AssertUnwindSafe(|| (issuer.authorization)())) {
        Ok(shown) if is_header(&shown) => Ok(shown),
        Ok(_) => refused("the authorization for the issuer must be printable ASCII text"),
        Err(_) => refused("the app's function for the authorization at the issuer failed"),
    }
}

fn issue_of(campaign: &Campaign) -> Option<Issue<'_>> {
    let has_evaluator = campaign.discovery.as_ref().is_some_and(|discovery| discovery.is_oblivious);
    let terms = campaign.passes.as_ref()?;
    Some(Issue { campaign: &campaign.id, collectors: &campaign.collectors, has_evaluator, terms })
}
