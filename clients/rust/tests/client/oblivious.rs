//! Discovery reports whose names an evaluator makes (clients/typescript/tests/client.test.ts).

use std::collections::BTreeSet;

use hushcount::{Budget, Client, ClientOptions, Kind, Limits, PendingDiscovery, Store, Stream};
use serde_json::json;
use voprf::{BlindedElement, Group, Ristretto255, VoprfServer};

use super::support::*;

fn evaluator(seed: u8) -> VoprfServer<Ristretto255> {
    VoprfServer::new_from_seed(&[seed; 32], b"").unwrap()
}

fn options_of(key: &[u8; 32]) -> ClientOptions {
    let mut file = file("oblivious", &json!({"shuffle": cap(1000)}));
    file["keys"]["evaluator"] = json!([key_section(key, "evaluator key")]);
    options(&file)
}

fn options_of_evaluator() -> ClientOptions {
    options_of(&Ristretto255::serialize_elem(evaluator(7).get_public_key()).into())
}

/// Answer an evaluation as an evaluator does.
fn answered(evaluation: &[u8], server: &VoprfServer<Ristretto255>) -> Vec<u8> {
    let blinded = BlindedElement::deserialize(evaluation).unwrap();
    let made = server.blind_evaluate(&mut crypto_box::aead::OsRng, &blinded);
    [made.message.serialize().to_vec(), made.proof.serialize().to_vec()].concat()
}

fn begun(client: &Client, value: Option<&str>) -> PendingDiscovery {
    client.pending_discovery(value.map(Into::into)).unwrap()
}

#[test]
fn two_reports_of_a_new_value_have_one_hash_and_one_box_inside() {
    let client = Client::open(options_of_evaluator()).unwrap();
    let inside = |value| {
        let pending = begun(&client, value);
        let finished = pending.finish(&answered(&pending.evaluation, &evaluator(7))).unwrap();
        let length = client.sealed_bytes(Stream::Discovery);
        assert_eq!([pending.evaluation.len(), finished.len(), pending.blank.len()], [32, length, length]);
        assert_eq!(found(&pending.blank).1, None);
        assert_ne!(found(&pending.blank).0, found(&finished).0);
        aux_server().unseal(&finished).unwrap()
    };
    assert_eq!(inside(Some("new")), inside(Some("new")));
    assert_ne!(inside(Some("newer")), inside(Some("new")));
    // A listed value has nothing to discover, and asks as well.
    for value in [None, Some("two"), Some("\0")] {
        assert_ne!(inside(value), inside(value));
    }
    // The hash is that of the evaluator's function: whoever holds the key and a guess can make it, and nobody else.
    let new = inside(Some("new"));
    let output = evaluator(7).evaluate(&[&new[..16], b"new"].concat()).unwrap();
    let hash = blake2b_simd::Params::new().hash_length(32).personal(b"bin hash").key(&output).hash(&[]);
    assert_eq!(new[16..48], *hash.as_bytes());
}

#[test]
fn an_answer_by_another_key_or_of_another_length_is_refused() {
    let client = Client::open(options_of_evaluator()).unwrap();
    let pending = begun(&client, Some("new"));
    let right = answered(&pending.evaluation, &evaluator(7));
    for wrong in [answered(&pending.evaluation, &evaluator(8)), right[1..].to_vec(), [&right[..], &[0]].concat()] {
        assert_eq!(pending.finish(&wrong).unwrap_err().kind(), Kind::Unanswered);
    }
    assert_eq!(found(&pending.finish(&right).unwrap()).1.as_deref(), Some("new"));
}

#[test]
fn a_client_asks_only_in_a_campaign_with_an_evaluator_whose_key_is_one() {
    let (keyed, oblivious) = (open(&certain(0)), Client::open(options_of_evaluator()).unwrap());
    let error = keyed.pending_discovery(Some("new".into())).unwrap_err();
    assert!(error.to_string().contains("has no evaluator: use discovery_report"), "{error}");
    let error = oblivious.discovery_report(Some("new".into())).unwrap_err();
    assert!(error.to_string().contains("has an evaluator: use pending_discovery"), "{error}");
    for client in [keyed, oblivious] {
        assert!(client.spent().unwrap().streams.is_empty());
    }
    for key in [[0; 32], [255; 32]] {
        let error = Client::open(options_of(&key)).unwrap_err();
        assert!(error.to_string().contains("is not a valid ristretto255 public key"), "{error}");
    }
}

#[test]
fn a_pending_report_is_counted_and_charged_when_it_begins() {
    let (store, mut options) = (Store::in_memory().unwrap(), options_of_evaluator());
    options.budget = Some(Budget::new(store.clone(), Limits { lifetime: 1.0, ..Limits::default() }).unwrap());
    options.store = Some(store);
    let client = Client::open(options).unwrap();
    let told = |_| {
        let pending = begun(&client, Some("new"));
        found(&pending.finish(&answered(&pending.evaluation, &evaluator(7))).unwrap())
    };
    let seen: Vec<_> = (0..3).map(told).collect();
    assert_eq!(client.spent().unwrap().epsilon.to_bits(), 1.0f64.to_bits());
    // The budget is spent: reports with nothing to discover follow, and ask as well.
    assert_eq!(seen.iter().map(|(_, value)| value.as_deref()).collect::<Vec<_>>(), [Some("new"), None, None]);
    assert_eq!(seen.iter().map(|(hash, _)| hash).collect::<BTreeSet<_>>().len(), 3);
}
