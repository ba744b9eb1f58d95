//! Which documents of a campaign are fetched, and what they contain.

use super::common::Common;
use super::documents::{Documents, Unfetched, fetch};
use crate::campaigns::campaign::{CAMPAIGN_BYTES, Campaign};
use crate::errors::{Error, Result};
use crate::formats::bytes::hex;
use crate::making::{Offer, ReportMaker};
use crate::oracles::design::Design;
use crate::trust::delegation::CampaignSignature;
use crate::trust::log::{CampaignLog, LOG_BYTES};
use crate::trust::policy::Policy;

/// The longest item of a dictionary in bytes, with the end of its line.
const MOST_LINE_BYTES: usize = 16_384 + 2;
/// The bytes of a byte order mark.
const MARK_BYTES: usize = 3;

/// How a sender reads campaign files.
pub(crate) struct Reading {
    pub(crate) policy: Policy,
    /// The app's designs, for mechanism `wss`.
    pub(crate) designs: Vec<Design>,
    pub(crate) has_issuer: bool,
    /// The least length of a window that the app allows.
    pub(crate) window: i64,
}

impl Reading {
    /// Fetch the current campaign file, and the log and dictionary that belong to this file and are not yet kept.
    ///
    /// # Errors
    /// `NotServed`, `Failed`: a document cannot be fetched now. `Untrusted`, `Format` within `Failed`: the policy
    /// refuses the campaign file, or it is none. Its log and dictionary, which may be long, were then not fetched.
    pub(crate) fn fetched(
        &self,
        common: &Common,
        kept: Option<&Documents>,
        now: i64,
    ) -> std::result::Result<Documents, Unfetched> {
        let (http, site) = (&*common.http, &common.site);
        let base = format!("/v1/campaigns/{}", common.queue.campaign);
        let document = fetch(http, site, &base, CAMPAIGN_BYTES, now)?;
        if let Some(kept) = kept.filter(|kept| kept.campaign.data == document.data) {
            return Ok(Documents { campaign: document, ..kept.clone() });
        }
        let failed = |error| Unfetched::Failed(error);
        let campaign = Campaign::parse(&document.data, &self.designs).map_err(failed)?;
        let signature = signature_of(document.signature.as_deref()).map_err(failed)?;
        self.policy.check(&campaign, signature.as_ref(), now).map_err(failed)?;
        let log = match fetch(http, site, &format!("{base}/log"), LOG_BYTES, now) {
            Ok(log) => Some(log),
            // A missing log is no error here, because the policy checks later whether the log is needed.
            Err(Unfetched::NotServed(_)) => None,
            Err(failed) => return Err(failed),
        };
        let mut fetched = Documents { campaign: document, log, dictionary: None };
        let Some(listed) = &campaign.dictionary else { return Ok(fetched) };
        // Dictionaries are compared by digest, because the dictionary of each epoch has a different file name.
        let before = kept.and_then(|kept| Campaign::parse(&kept.campaign.data, &self.designs).ok()?.dictionary);
        let is_same = before.is_some_and(|before| before.digest == listed.digest);
        fetched.dictionary = kept.and_then(|kept| kept.dictionary.clone()).filter(|_| is_same);
        if fetched.dictionary.is_none() {
            let longest = usize::try_from(listed.items).unwrap_or(usize::MAX).saturating_mul(MOST_LINE_BYTES);
            let most = self.policy.max_dictionary_bytes().min(longest.saturating_add(MARK_BYTES));
            let path = format!("{base}/dictionary?fingerprint={}", hex(&campaign.fingerprint));
            fetched.dictionary = Some(fetch(http, site, &path, most, now)?);
        }
        Ok(fetched)
    }

    /// Check documents with the policy, and return the maker of the campaign's reports.
    ///
    /// # Errors
    /// `Untrusted`, `Format`: the documents cannot be used, or do not belong together. `Store`: the newest epoch cannot
    /// be kept.
    pub(crate) fn opened(&self, common: &Common, documents: &Documents, now: i64) -> Result<ReportMaker> {
        let campaign = Campaign::parse(&documents.campaign.data, &self.designs)?;
        let (id, wanted) = (&campaign.id, &common.queue.campaign);
        if id != wanted {
            return Err(Error::format(format!(
                "the collector serves campaign {id} under the id {wanted}: tell the operator"
            )));
        }
        common.collector(&campaign)?;
        if campaign.passes.is_some() && !self.has_issuer {
            return Err(Error::untrusted(format!("campaign {id} asks for passes of an issuer: give issuer")));
        }
        campaign.require_windows(self.window)?;
        let offer = Offer {
            signature: signature_of(documents.campaign.signature.as_deref())?,
            log: documents.log.as_ref().map(|log| CampaignLog::parse(&log.data)).transpose()?,
            dictionary: documents.dictionary.as_ref().map(|dictionary| dictionary.data.clone()),
            campaign,
        };
        ReportMaker::open(offer, &self.policy, &common.store, now)
    }
}

fn signature_of(bytes: Option<&[u8]>) -> Result<Option<CampaignSignature>> {
    bytes.map(|bytes| CampaignSignature::parse(bytes, "the campaign's signature")).transpose()
}
