//! The log of a campaign: all epochs that were ever published, as a hash chain, whose newest head covers all epochs.

use serde_json::Value;

use super::delegation::CampaignSignature;
use super::restart::GREATEST_EPOCH;
use crate::errors::{Error, Result};
use crate::formats::bytes::hash;
use crate::formats::fields::{Fields, IDENTIFIER};
use crate::formats::json;

/// The largest number of epochs in a log: eleven years of one epoch a day.
pub(crate) const MOST_EPOCHS: usize = 4096;
/// The longest file of a log.
pub(crate) const LOG_BYTES: usize = 1 << 23;
const NAME: &str = "the log";

/// Return the head of a log after an epoch; `previous` is the head before it, none before the first.
pub(crate) fn head_of(previous: Option<&[u8; 32]>, fingerprint: &[u8; 32]) -> [u8; 32] {
    hash(&[previous.unwrap_or(&[0; 32]), fingerprint], "campaign log")
}

/// The log of a campaign, without the signatures of its entries, which no client needs.
#[derive(Clone, Debug)]
pub(crate) struct CampaignLog {
    /// The head of the log after each epoch, the oldest first.
    pub(crate) heads: Vec<[u8; 32]>,
}

impl CampaignLog {
    /// Read the bytes of a log's file.
    ///
    /// # Errors
    /// `Format`: the error names the field.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self> {
        let data = json::parse(bytes, LOG_BYTES, NAME)?;
        let fields = Fields::of(&data, NAME, &["format", "campaign", "entries"], &[])?;
        fields.whole("format", 1, 1)?;
        fields.text("campaign", &IDENTIFIER)?;
        let (mut heads, mut before) = (Vec::new(), 0);
        for entry in fields.list("entries", MOST_EPOCHS)? {
            let (epoch, fingerprint) = entry_of(entry)?;
            if epoch <= before {
                let message = format!("{NAME}: epoch {epoch} follows {before}, epochs must ascend");
                return Err(Error::format(message));
            }
            heads.push(head_of(heads.last(), &fingerprint));
            before = epoch;
        }
        Ok(Self { heads })
    }
}

/// Return epoch and fingerprint of one published epoch; its signature may be absent.
fn entry_of(data: &Value) -> Result<(u64, [u8; 32])> {
    let fields = Fields::of(data, "the log: entries", &["epoch", "fingerprint"], &["signature"])?;
    if let Some(signature) = fields.get("signature").filter(|data| !data.is_null()) {
        CampaignSignature::of(signature, "the log: entries: signature")?;
    }
    Ok((fields.whole("epoch", 1, GREATEST_EPOCH)?, fields.bytes("fingerprint")?))
}
