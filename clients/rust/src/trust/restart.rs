//! The operator's statement that sets clients back to a history, whatever other history they have accepted.
//!
//! A client that accepted a forged history refuses every other history. Only a statement signed with the operator's own
//! key can correct this.

use serde_json::Value;

use super::signatures::Signature;
use crate::errors::Result;
use crate::formats::canonical_json::canonical_json;
use crate::formats::fields::{Fields, IDENTIFIER};

/// The greatest epoch, and the greatest serial, that databases can store.
pub(crate) const GREATEST_EPOCH: u64 = (1 << 31) - 1;

/// A statement that the operator signs about a campaign. Restarts and delegations share one series of serials.
#[derive(Clone, Debug)]
pub(crate) struct Numbered {
    pub(crate) campaign: String,
    /// Clients refuse a statement whose serial is smaller than an earlier statement's serial.
    pub(crate) serial: u64,
    pub(crate) signature: Signature,
    /// The bytes of the statement that the operator signs.
    pub(crate) signed: Vec<u8>,
}

impl Numbered {
    /// Return the common part of the operator's statements, from the data and the fields of a file.
    ///
    /// # Errors
    /// `Format`: the error names the file and the field.
    pub(crate) fn of(data: &Value, fields: &Fields<'_>, name: &str) -> Result<Self> {
        fields.whole("format", 1, 1)?;
        let mut signed = data.clone();
        let signature = signed.as_object_mut().and_then(|fields| fields.remove("signature")).unwrap_or_default();
        Ok(Self {
            campaign: fields.text("campaign", &IDENTIFIER)?.to_owned(),
            serial: fields.whole("serial", 1, GREATEST_EPOCH)?,
            signature: Signature::of(&signature, &format!("{name}: signature"))?,
            signed: canonical_json(&signed),
        })
    }
}

/// The epoch from which clients continue. The restart also ends every delegation with a smaller serial.
#[derive(Clone, Debug)]
pub(crate) struct Restart {
    pub(crate) statement: Numbered,
    pub(crate) epoch: u64,
    pub(crate) head: [u8; 32],
}

impl Restart {
    /// Read a restart from a file's data.
    ///
    /// # Errors
    /// `Format`: the error names the file and the field.
    pub(crate) fn of(data: &Value, name: &str) -> Result<Self> {
        let needed = ["format", "campaign", "serial", "epoch", "head", "signature"];
        let fields = Fields::of(data, name, &needed, &[])?;
        Ok(Self {
            statement: Numbered::of(data, &fields, name)?,
            epoch: fields.whole("epoch", 1, GREATEST_EPOCH)?,
            head: fields.bytes("head")?,
        })
    }
}
