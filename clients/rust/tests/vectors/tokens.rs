//! Client tokens as in the vectors.

use serde_json::Value;

use super::support::{array, entries, require_refused, text};
use crate::errors::{Kind, Result};
use crate::passes::slots::{EVALUATOR, Role, Slot};
use crate::sender::token::{client_token, collector_name, secret_of};
use crate::store::Store;

pub(super) fn role_of(entry: &Value) -> Role {
    if text(entry, "role") == EVALUATOR { Role::Evaluator } else { Role::Collector }
}

fn token(entry: &Value) -> Result<String> {
    let (role, campaign) = (role_of(entry), text(entry, "campaign"));
    let collectors: Vec<String> = serde_json::from_value(entry["collectors"].clone()).unwrap();
    let name = match role {
        Role::Evaluator => EVALUATOR,
        Role::Collector => collector_name(campaign, &collectors, entry["site"].as_str())?,
    };
    let slot = Slot { role, campaign, name, begins: entry["window"].as_i64().unwrap() };
    Ok(client_token(&array(entry, "secret"), &slot))
}

#[test]
fn tokens_are_those_of_the_vectors() {
    let (accept, refuse) = (entries("tokens", "accept"), entries("tokens", "refuse"));
    assert!(accept.len() >= 10 && refuse.len() >= 7);
    for entry in &accept {
        assert_eq!(token(entry).unwrap(), text(entry, "token"), "{entry}");
    }
    for entry in &refuse {
        let made = token(entry);
        assert!(made.as_ref().is_err_and(|error| error.kind() == Kind::Untrusted), "{entry}");
        require_refused(made, entry, &[("collector_name", &["must be one of the collectors of campaign"])]);
    }
}

#[test]
fn a_campaign_has_one_secret_until_it_is_deleted() {
    let store = Store::in_memory().unwrap();
    let secret = |campaign: &str| store.change(|records| secret_of(records, campaign)).unwrap();
    let first = secret("one");
    assert_eq!(secret("one"), first);
    assert_ne!(secret("two"), first);
    store.change(|records| records.remove("token/")).unwrap();
    assert_ne!(secret("one"), first);
}
