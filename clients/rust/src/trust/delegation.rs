//! The signature of a campaign: by the operator, or by a publisher with a delegation from the operator's key.
//!
//! The publisher's key signs the files of further epochs. These files may change only the dictionary and the values that
//! are drawn or planned for this dictionary, and nothing that makes reports cost a client more.

use std::slice;

use serde_json::Value;

use super::restart::{GREATEST_EPOCH, Numbered, Restart};
use super::signatures::{Signature, VerifyKey, verify};
use crate::campaigns::campaign::Campaign;
use crate::errors::{Error, Kind, Result};
use crate::formats::bytes::{hex, unhex_exact};
use crate::formats::fields::Fields;
use crate::formats::json;
use crate::formats::times::time_text;

/// The longest signature file.
pub(crate) const SIGNATURE_BYTES: usize = 4096;
const MOST_KEYS: usize = 32;

/// Who may publish which campaign, under which terms, up to which epoch, with the operator's signature.
#[derive(Clone, Debug)]
pub(crate) struct Delegation {
    pub(crate) statement: Numbered,
    pub(crate) terms: [u8; 32],
    pub(crate) publisher: VerifyKey,
    pub(crate) last_epoch: u64,
    /// The evaluator's keys that the publisher may name. If the publisher could name its own key, it could test guesses
    /// of values.
    pub(crate) evaluator_keys: Vec<[u8; 32]>,
}

impl Delegation {
    fn of(data: &Value, name: &str) -> Result<Self> {
        let needed =
            ["format", "campaign", "serial", "terms", "publisher", "last_epoch", "evaluator_keys", "signature"];
        let fields = Fields::of(data, name, &needed, &[])?;
        let publisher = fields.get("publisher").unwrap_or(&Value::Null);
        let listed = fields.list("evaluator_keys", MOST_KEYS)?.iter();
        let keys: Option<_> = listed.map(|key| key.as_str().and_then(unhex_exact)).collect();
        Ok(Self {
            statement: Numbered::of(data, &fields, name)?,
            terms: fields.bytes("terms")?,
            publisher: VerifyKey::of(publisher, &format!("{name}: publisher"))?,
            last_epoch: fields.whole("last_epoch", 1, GREATEST_EPOCH)?,
            evaluator_keys: keys.ok_or_else(|| fields.wrong("evaluator_keys", "texts of the form [0-9a-f]{64}"))?,
        })
    }

    /// Check that the publisher may sign this campaign.
    fn require(&self, campaign: &Campaign, restart: Option<&Restart>) -> Result<()> {
        let (id, epoch, Numbered { campaign: delegated, serial, .. }) = (&campaign.id, campaign.epoch, &self.statement);
        if let Some(ended) = restart.map(|restart| restart.statement.serial).filter(|ended| serial < ended) {
            return Err(refused(format!(
                "serial of the delegation of campaign {id} is {serial}, but the operator's restart ended all below \
                 {ended}: the operator must delegate anew"
            )));
        }
        if delegated != id || self.terms != campaign.terms {
            let (signed, allowed) = (hex(&campaign.terms), hex(&self.terms));
            return Err(refused(format!(
                "the publisher signed campaign {id} with the terms {signed}, but the operator delegated campaign \
                 {delegated} with the terms {allowed}: the publisher may change only the dictionary and what is drawn \
                 or planned for it; the operator must sign any other change"
            )));
        }
        let named = campaign.keys.evaluator.as_ref().is_none_or(|named| self.evaluator_keys.contains(&named.key));
        if epoch > self.last_epoch || !named {
            let (last, with) = (self.last_epoch, if named { "" } else { " with an evaluator's key that is delegated" });
            return Err(refused(format!(
                "the publisher signed epoch {epoch} of campaign {id}, must be at most {last}{with}: the operator must \
                 delegate anew"
            )));
        }
        Ok(())
    }
}

/// A signature of a campaign's fingerprint; with a delegation it is the publisher's signature.
#[derive(Clone, Debug)]
pub(crate) struct CampaignSignature {
    pub(crate) signature: Signature,
    pub(crate) delegation: Option<Delegation>,
    pub(crate) restart: Option<Restart>,
}

impl CampaignSignature {
    /// Read the bytes of a signature file, or of the header of an answer; `name` names it in messages.
    ///
    /// # Errors
    /// `Format`: the error names the file and the field.
    pub(crate) fn parse(bytes: &[u8], name: &str) -> Result<Self> {
        Self::of(&json::parse(bytes, SIGNATURE_BYTES, name)?, name)
    }

    /// Read a campaign's signature from a file's data.
    ///
    /// # Errors
    /// `Format`: the error names the file and the field.
    pub(crate) fn of(data: &Value, name: &str) -> Result<Self> {
        let fields = Fields::of(data, name, &["key_id", "signature"], &["delegation", "restart"])?;
        let given = |field| fields.get(field).filter(|data| !data.is_null());
        let delegation = given("delegation").map(|data| Delegation::of(data, &format!("{name}: delegation")));
        let restart = given("restart").map(|data| Restart::of(data, &format!("{name}: restart")));
        Ok(Self {
            signature: Signature::in_fields(&fields)?,
            delegation: delegation.transpose()?,
            restart: restart.transpose()?,
        })
    }

    /// Return the greatest serial of the operator's statements; 0 if there is no statement.
    pub(crate) fn serial(&self) -> u64 {
        let delegation = self.delegation.as_ref().map_or(0, |said| said.statement.serial);
        delegation.max(self.restart.as_ref().map_or(0, |said| said.statement.serial))
    }
}

/// Check a campaign's signature, and return the keys that vouch for it: the signer's, then the operator's.
///
/// `now` is in milliseconds since 1970: a signature does not state when it was made, so the keys must be valid now.
///
/// # Errors
/// `Signature`: as `verify`; or a key is not valid now; or the delegation has other terms, does not reach this epoch or
/// has ended; or the restart is of another campaign.
pub(crate) fn verify_campaign<'a>(
    keys: &'a [VerifyKey],
    campaign: &Campaign,
    signature: &'a CampaignSignature,
    now: i64,
) -> Result<Vec<&'a VerifyKey>> {
    let (mut signers, mut vouching) = (keys, Vec::new());
    if let Some(delegation) = &signature.delegation {
        let said = &delegation.statement;
        vouching.push(verify(keys, &said.signed, "delegation", &said.signature)?);
        delegation.require(campaign, signature.restart.as_ref())?;
        signers = slice::from_ref(&delegation.publisher);
    }
    if let Some(Restart { statement: said, .. }) = &signature.restart {
        vouching.push(verify(keys, &said.signed, "restart", &said.signature)?);
        if said.campaign != campaign.id {
            let (of, id) = (&said.campaign, &campaign.id);
            return Err(refused(format!("the restart is of campaign {of}, must be of {id}: ask the operator")));
        }
    }
    vouching.insert(0, verify(signers, &campaign.fingerprint, "campaign", &signature.signature)?);
    for key in &vouching {
        require_valid(key, now)?;
    }
    Ok(vouching)
}

fn require_valid(key: &VerifyKey, now: i64) -> Result<()> {
    if (key.not_before..key.not_after).contains(&now) {
        return Ok(());
    }
    let (id, [from, to, at]) = (hex(&key.id), [key.not_before, key.not_after, now].map(time_text));
    Err(refused(format!(
        "the campaign was signed with key {id}, valid from {from} to {to}, and it is {at}: fetch the newest campaign"
    )))
}

fn refused(message: String) -> Error {
    Error::new(Kind::Signature, message)
}
