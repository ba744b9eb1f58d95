//! The newest epoch of each campaign that a client accepted: an older epoch, or another history, is refused.
//!
//! Only a statement that is signed with the operator's own key, and has a greater serial than all earlier statements,
//! allows another history.

use serde_json::{Value, json};

use super::delegation::CampaignSignature;
use super::log::{CampaignLog, MOST_EPOCHS};
use super::restart::GREATEST_EPOCH;
use crate::campaigns::campaign::Campaign;
use crate::errors::{Error, Result};
use crate::formats::bytes::hex;
use crate::formats::fields::Fields;
use crate::store::Store;

/// What a client keeps of the newest epoch that it accepted.
struct Kept {
    epoch: u64,
    /// The head of the campaign's log.
    head: [u8; 32],
    /// The greatest serial of the operator's statements.
    serial: u64,
    /// Whether the campaign has noise of the mixes.
    noise: bool,
}

impl Kept {
    fn of(data: &Value, name: &str) -> Result<Self> {
        let fields = Fields::of(data, name, &["epoch", "head", "serial"], &["noise"])?;
        Ok(Self {
            epoch: fields.whole("epoch", 1, GREATEST_EPOCH)?,
            head: fields.bytes("head")?,
            serial: fields.whole("serial", 0, GREATEST_EPOCH)?,
            noise: fields.get("noise").is_some() && fields.boolean("noise")?,
        })
    }
}

/// Keep a campaign's head durably, before anything is reported under this campaign file.
///
/// `log` is the campaign's log, which is needed if the client missed an epoch. `signature` is the campaign's verified
/// signature. A restart in it replaces the accepted history if it is newer than the operator's earlier statements. With a
/// store in memory, the client accepts an older epoch after its next start.
///
/// # Errors
/// `Untrusted`: the campaign file is of an older epoch, or is another file of the same epoch; or only one of it and the
/// accepted epoch has noise of the mixes; or it does not continue the accepted epoch, and if an epoch was missed, only the
/// log can show this. Or the operator replaced the publisher that signed the file, or more epochs were missed than a log
/// can hold. `Format`: the record is damaged. `Store`: it cannot be written.
pub(crate) fn keep(
    store: &Store,
    campaign: &Campaign,
    log: Option<&CampaignLog>,
    signature: Option<&CampaignSignature>,
) -> Result<()> {
    let key = format!("newest/{}", campaign.id);
    let noise = campaign.noise.is_some();
    store.change(|records| {
        let mut serial = signature.map_or(0, CampaignSignature::serial);
        if let Some(data) = records.get(&key)? {
            let mut last = Kept::of(&data, &format!("record {key} of the store"))?;
            require_same_noise(campaign, &last)?;
            if let Some(restart) = signature.and_then(|signature| signature.restart.as_ref()) {
                let said = restart.statement.serial;
                if said > last.serial {
                    last = Kept { epoch: restart.epoch, head: restart.head, serial: said, noise };
                }
            }
            require_publisher(campaign, &last, signature)?;
            require_continued(campaign, &last, log)?;
            serial = serial.max(last.serial);
        }
        let mut head = json!({"epoch": campaign.epoch, "head": hex(&campaign.head), "serial": serial});
        if noise {
            head["noise"] = Value::Bool(true);
        }
        records.put(&key, &head)
    })
}

fn require_same_noise(campaign: &Campaign, last: &Kept) -> Result<()> {
    if last.noise == campaign.noise.is_some() {
        return Ok(());
    }
    let has = if last.noise { "no noise" } else { "noise" };
    let (name, before) = names(campaign, last);
    Err(Error::untrusted(format!(
        "{name} has {has} of the mixes, unlike {before}: ask the operator for another campaign"
    )))
}

/// Require that the operator did not replace the publisher, and that it did not skip more epochs than a log can show.
fn require_publisher(campaign: &Campaign, last: &Kept, signature: Option<&CampaignSignature>) -> Result<()> {
    let Some(delegation) = signature.and_then(|signature| signature.delegation.as_ref()) else { return Ok(()) };
    let ((name, before), serial) = (names(campaign, last), delegation.statement.serial);
    if serial < last.serial {
        return Err(Error::untrusted(format!(
            "{name} was signed under the delegation {serial}, but the operator's newest serial is {}: fetch the newest \
             file",
            last.serial
        )));
    }
    if campaign.epoch.saturating_sub(last.epoch) > MOST_EPOCHS as u64 {
        return Err(Error::untrusted(format!(
            "{name} is more than {MOST_EPOCHS} epochs after {before}: the operator must sign it"
        )));
    }
    Ok(())
}

fn require_continued(campaign: &Campaign, last: &Kept, log: Option<&CampaignLog>) -> Result<()> {
    let (name, before) = names(campaign, last);
    if campaign.epoch < last.epoch {
        return Err(Error::untrusted(format!("{name} is older than {before}: fetch the newest file")));
    }
    if campaign.epoch == last.epoch && campaign.head != last.head {
        return Err(Error::untrusted(format!(
            "{name} is another file than the one that was accepted before: one of the two may have been made for a few \
             clients only; ask the operator"
        )));
    }
    if campaign.epoch > last.epoch && !campaign.previous.is_some_and(|head| follows(&head, &last.head, log)) {
        return Err(Error::untrusted(format!(
            "{name} does not continue {before}: give the campaign's log; if the log does not connect the two epochs, ask \
             the operator"
        )));
    }
    Ok(())
}

/// Return whether a head is the kept one, or a later one in a log that has the kept one.
fn follows(head: &[u8; 32], kept: &[u8; 32], log: Option<&CampaignLog>) -> bool {
    let heads = log.map_or(&[][..], |log| &log.heads);
    head == kept || heads.iter().skip_while(|one| *one != kept).any(|one| one == head)
}

fn names(campaign: &Campaign, last: &Kept) -> (String, String) {
    let name = format!("epoch {} of campaign {}", campaign.epoch, campaign.id);
    (name, format!("epoch {}, which was accepted before", last.epoch))
}
