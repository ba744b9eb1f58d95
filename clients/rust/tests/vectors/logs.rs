//! Logs of campaigns, and campaigns that continue what a client kept.

use serde_json::{Value, json};

use super::support::{array, campaign, entries, require_refused};
use crate::campaigns::campaign::Campaign;
use crate::errors::{Kind, Result};
use crate::formats::bytes::hex;
use crate::store::Store;
use crate::trust::delegation::CampaignSignature;
use crate::trust::log::{CampaignLog, LOG_BYTES, MOST_EPOCHS, head_of};
use crate::trust::newest::keep;

/// What a refusal says, by the reason in the vectors.
const SAID: &[(&str, &[&str])] = &[
    ("malformed", &["the log"]),
    ("not_ascending", &["epochs must ascend"]),
    ("older_epoch", &["is older than epoch"]),
    ("another_file", &["is another file than"]),
    ("another_history", &["does not continue epoch"]),
    ("replaced_publisher", &["was signed under the delegation"]),
    ("jump", &["is more than 4096 epochs after epoch"]),
];
const KEY: &str = "newest/vectors.grr";

fn read(log: &Value) -> Result<CampaignLog> {
    CampaignLog::parse(log.to_string().as_bytes())
}

/// Return a campaign of the vectors as another epoch.
fn offered(entry: &Value) -> Campaign {
    let mut made = campaign("grr");
    made.epoch = entry["epoch"].as_u64().unwrap();
    made.fingerprint = array(entry, "fingerprint");
    made.previous = entry["previous"].as_str().map(|_| array(entry, "previous"));
    made.head = head_of(made.previous.as_ref(), &made.fingerprint);
    made
}

/// Return the heads of a log, or what a client keeps.
fn check(entry: &Value) -> Result<Value> {
    let log = entry.get("log").map(read).transpose()?;
    if entry["rule"] == "heads" {
        return Ok(log.unwrap().heads.iter().map(|head| Value::from(hex(head))).collect());
    }
    let store = Store::in_memory()?;
    if !entry["kept"].is_null() {
        store.change(|records| records.put(KEY, &entry["kept"]))?;
    }
    let signature = entry.get("signature").map(|said| CampaignSignature::of(said, "the signature")).transpose()?;
    let made = keep(&store, &offered(&entry["offered"]), log.as_ref(), signature.as_ref());
    let kept = store.change(|records| records.get(KEY))?.unwrap_or_default();
    // A client that refuses a campaign keeps nothing that came with it.
    assert!(made.is_ok() || kept == entry["kept"]);
    made.map(|()| kept)
}

#[test]
fn what_continues_is_kept() {
    let accept = entries("logs", "accept");
    assert!(accept.len() >= 31);
    for entry in accept {
        let kept = json!({"epoch": entry["offered"]["epoch"], "head": entry["head"], "serial": entry["serial"]});
        assert_eq!(check(&entry).unwrap(), *entry.get("heads").unwrap_or(&kept));
    }
}

#[test]
fn what_does_not_continue_is_refused() {
    let refuse = entries("logs", "refuse");
    assert!(refuse.len() >= 46);
    for entry in refuse {
        let made = check(&entry);
        let kind = if entry["rule"] == "heads" { Kind::Format } else { Kind::Untrusted };
        assert_eq!(made.as_ref().unwrap_err().kind(), kind);
        require_refused(made, &entry, SAID);
    }
}

#[test]
fn the_longest_log_fits_its_bound_and_a_longer_one_is_refused() {
    let log = |epochs: usize| {
        let entries: Vec<_> =
            (1..=epochs).map(|epoch| json!({"epoch": epoch, "fingerprint": "ab".repeat(32)})).collect();
        json!({"format": 1, "campaign": "w".repeat(64), "entries": entries})
    };
    assert_eq!(read(&log(MOST_EPOCHS)).unwrap().heads.len(), MOST_EPOCHS);
    let error = read(&log(MOST_EPOCHS + 1)).unwrap_err();
    assert!(error.to_string().contains("entries must be a list of at most 4096"));
    let mut text = log(1).to_string();
    text.push_str(&" ".repeat(LOG_BYTES));
    assert!(CampaignLog::parse(text.as_bytes()).unwrap_err().to_string().contains("at most 8388608"));
}
