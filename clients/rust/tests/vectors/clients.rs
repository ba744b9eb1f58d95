//! A client as a whole: `clients.json`.

use serde_json::Value;

use super::support::{Given, LONE, array, bytes, entries, require_refused, text, vectors_of_any_text};
use crate::campaigns::campaign::{Campaign, Stream};
use crate::errors::Result;
use crate::formats::times::parse_time;
use crate::making::{Offer, ReportMaker};
use crate::store::Store;
use crate::trust::policy::Policy;
use crate::value::{Value as Reported, coordinates_of};

const SAID: &[(&str, &[&str])] = &[
    ("value_too_long", &["must have at most"]),
    ("no_such_stream", &["carries no discovery reports", "carries no frequency reports"]),
    ("no_hash_key", &["holds no hash key"]),
    ("another_dictionary", &["the dictionary is not the campaign's", "the dictionary has more items than"]),
    ("no_valid_key", &["is not valid now"]),
];

/// Return the report of an entry, which must draw all that the entry states.
fn made(entry: &Value, campaigns: &[Value]) -> Result<Vec<u8>> {
    let file = &campaigns.iter().find(|each| each["name"] == entry["campaign"]).unwrap()["file"];
    let campaign = Campaign::parse(&serde_json::to_vec(file).unwrap(), &[])?;
    let stream = if text(entry, "stream") == "reports" { Stream::Reports } else { Stream::Discovery };
    let length = campaign.sealed_bytes(stream);
    let lines = |items: &Vec<Value>| items.iter().flat_map(|item| [item.as_str().unwrap(), "\n"]).collect::<String>();
    let dictionary = entry["items"].as_array().map(lines).map(String::into_bytes);
    let (now, store) = (parse_time(text(entry, "at")).unwrap(), Store::in_memory()?);
    let offer = Offer { campaign, signature: None, log: None, dictionary };
    let maker = ReportMaker::open(offer, &Policy::trusting(), &store, now)?;
    maker.require_valid(&[stream], now)?;
    let mut random = Given::words(entry, "words");
    // With noise, the box for the analyzer comes first.
    let secrets = ["ephemeral_secret", "layer_secret"].into_iter().filter(|field| entry[*field].is_string());
    random.secrets = secrets.map(|field| array(entry, field)).collect();
    // A control character stands for a lone surrogate, which no `str` has: neither may be in an item.
    let value = entry["value"].as_str().map(|value| value.replace(LONE, "\0"));
    let report = match stream {
        Stream::Reports => {
            let by: Vec<_> = entry["by"].as_object().into_iter().flatten().collect();
            let by: Vec<_> =
                by.iter().map(|(axis, value)| (axis.as_str(), Reported::Text(value.as_str().unwrap()))).collect();
            maker.report(value.as_deref(), &coordinates_of(&by), now, &mut random)?
        }
        Stream::Discovery => {
            let format = maker.require_discovery()?;
            if let Some(new) = maker.new_of(value.as_deref().unwrap_or_default()) {
                format.require_short(&new)?;
            }
            maker.discovery_report(value.as_deref(), &mut random)?
        }
    };
    random.require_used();
    assert_eq!(report.len(), length);
    Ok(report)
}

fn sides(side: &str) -> (Vec<Value>, Vec<Value>) {
    (vectors_of_any_text("clients")[side].as_array().unwrap().clone(), entries("campaigns", "accept"))
}

#[test]
fn accept() {
    let (all, campaigns) = sides("accept");
    assert!(all.len() > 50);
    for entry in all {
        assert_eq!(made(&entry, &campaigns).unwrap(), bytes(&entry, "report"), "{entry}");
    }
}

#[test]
fn refuse() {
    let (all, campaigns) = sides("refuse");
    assert!(all.len() > 30);
    for entry in all {
        require_refused(made(&entry, &campaigns), &entry, SAID);
    }
}
