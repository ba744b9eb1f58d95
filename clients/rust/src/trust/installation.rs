//! The layers of an installation, and whether a sample asks it, by a random id of its own (docs/adr/0050).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::campaigns::campaign::Campaign;
use crate::campaigns::sample::{MOST_LAYERS, bucket_of};
use crate::errors::{Error, Kind, Result};
use crate::formats::bytes::hex;
use crate::formats::fields::{Fields, IDENTIFIER};
use crate::randomness::fresh;
use crate::store::Store;

const KEY: &str = "installation";
const YEAR: i64 = 365 * 86_400_000;

/// The id of an installation in hexadecimal digits, when it was drawn, and the layer of each campaign.
struct Kept {
    id: String,
    drawn: i64,
    layers: BTreeMap<String, String>,
}

impl Kept {
    fn of(data: &Value) -> Result<Self> {
        let fields = Fields::of(data, "record installation of the store", &["id", "drawn", "layers"], &[])?;
        let layers = fields.get("layers").and_then(Value::as_object);
        let fits = |text: &&str| IDENTIFIER.fits(text);
        let text = |(campaign, layer): (&String, &Value)| {
            Some((Some(campaign.as_str()).filter(fits)?.to_owned(), layer.as_str().filter(fits)?.to_owned()))
        };
        let layers = layers.and_then(|layers| layers.iter().map(text).collect());
        let drawn = fields.get("drawn").and_then(Value::as_i64);
        Ok(Self {
            id: hex(&fields.bytes::<16>("id")?),
            drawn: drawn.ok_or_else(|| fields.wrong("drawn", "milliseconds since 1970"))?,
            layers: layers.ok_or_else(|| fields.wrong("layers", "names by the ids of campaigns"))?,
        })
    }

    fn drawn(now: i64, layers: BTreeMap<String, String>) -> Result<Self> {
        Ok(Self { id: hex(&fresh::<16>()?), drawn: now, layers })
    }
}

/// Require that the campaign asks this installation, whose id is drawn here if it is missing or a year old.
///
/// `now` is in milliseconds since 1970.
///
/// Privacy: the id is never sent, and the answer is the same for every value.
///
/// # Errors
/// `NotAsked`: the sample does not contain this installation. `Untrusted`: the campaign had another layer before, or this
/// installation is in 3 other layers. `Format`: the record is damaged. `Store`: it cannot be written.
pub(crate) fn require_asked(store: &Store, campaign: &Campaign, now: i64) -> Result<()> {
    let Some(sample) = &campaign.sample else { return Ok(()) };
    let (name, layer) = (&campaign.id, &sample.layer);
    let id = store.change(|records| {
        let kept = records.get(KEY)?.as_ref().map(Kept::of).transpose()?;
        let layers = kept.as_ref().map(|kept| &kept.layers);
        if let Some(layers) = layers {
            require_layer(name, layer, layers)?;
        }
        let is_known = layers.is_some_and(|layers| layers.contains_key(name));
        let mut made = match kept {
            Some(kept) if now.saturating_sub(kept.drawn) < YEAR => {
                if is_known {
                    return Ok(kept.id);
                }
                kept
            }
            old => Kept::drawn(now, old.map(|old| old.layers).unwrap_or_default())?,
        };
        made.layers.insert(name.clone(), layer.clone());
        records.put(KEY, &json!({"id": made.id, "drawn": made.drawn, "layers": made.layers}))?;
        Ok(made.id)
    })?;
    if sample.has(bucket_of(&id, layer)) {
        return Ok(());
    }
    let message = format!("campaign {name} asks a sample of its clients, and not this one: make no report");
    Err(Error::new(Kind::NotAsked, message))
}

/// Require that a campaign keeps its layer, and that an installation takes part in few layers.
fn require_layer(campaign: &str, layer: &String, layers: &BTreeMap<String, String>) -> Result<()> {
    if let Some(before) = layers.get(campaign).filter(|before| *before != layer) {
        return Err(Error::untrusted(format!(
            "layer of campaign {campaign} is {layer}, was {before}: a campaign keeps its layer"
        )));
    }
    let others: BTreeSet<_> = layers.values().filter(|other| *other != layer).map(String::as_str).collect();
    if others.len() < MOST_LAYERS {
        return Ok(());
    }
    let (number, others) = (others.len(), others.into_iter().collect::<Vec<_>>().join(", "));
    Err(Error::untrusted(format!(
        "layer of campaign {campaign} is {layer}, but this installation is in {number} layers already ({others}): give \
         the campaign one of these layers"
    )))
}
