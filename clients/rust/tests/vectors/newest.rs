//! What the vectors of logs do not reach: a client's life after its publisher's key was stolen.

use super::support::campaign;
use crate::campaigns::campaign::Campaign;
use crate::campaigns::noise::Noise;
use crate::errors::{Kind, Result};
use crate::store::Store;
use crate::trust::delegation::{CampaignSignature, Delegation};
use crate::trust::log::{CampaignLog, MOST_EPOCHS, head_of};
use crate::trust::newest::keep;
use crate::trust::restart::{GREATEST_EPOCH, Numbered, Restart};
use crate::trust::signatures::{Signature, VerifyKey};

/// Return an epoch after another one; `mark` makes its content another one.
fn epoch(number: u64, before: Option<&Campaign>, mark: u8) -> Campaign {
    let mut made = campaign("grr");
    made.epoch = number;
    made.fingerprint = [mark; 32];
    made.previous = before.map(|before| before.head);
    made.head = head_of(made.previous.as_ref(), &made.fingerprint);
    made
}

/// Return a signature, by the operator or under a delegation of this serial, with a restart at an epoch or without.
///
/// `keep` gets signatures that were verified, so that these are of no key.
fn signed(delegation: Option<u64>, restart: Option<(&Campaign, u64)>) -> CampaignSignature {
    let signature = Signature { key_id: [0; 8], signature: [0; 64] };
    let statement = |serial| Numbered {
        campaign: "vectors.grr".to_owned(),
        serial,
        signature: signature.clone(),
        signed: Vec::new(),
    };
    let publisher = VerifyKey { id: [0; 8], key: [0; 32], not_before: 0, not_after: 1 };
    let delegation = delegation.map(|serial| Delegation {
        statement: statement(serial),
        terms: [0; 32],
        publisher,
        last_epoch: GREATEST_EPOCH,
        evaluator_keys: Vec::new(),
    });
    let restart = restart.map(|(at, serial)| Restart { statement: statement(serial), epoch: at.epoch, head: at.head });
    CampaignSignature { signature: signature.clone(), delegation, restart }
}

fn takes(store: &Store, campaign: &Campaign, log: Option<&CampaignLog>, signature: &CampaignSignature) -> bool {
    let made: Result<()> = keep(store, campaign, log, Some(signature));
    made.map_err(|error| assert_eq!(error.kind(), Kind::Untrusted, "{error}")).is_ok()
}

/// What the operator published, epoch 5 and 6, and what a thief made of epoch 1000.
fn story() -> [Campaign; 3] {
    let third = epoch(5, None, 1);
    let (next, thiefs) = (epoch(6, Some(&third), 2), epoch(1000, Some(&third), 3));
    [third, next, thiefs]
}

/// Return the store of a client that took what the thief made.
fn deceived([third, _, thiefs]: &[Campaign; 3]) -> Store {
    let store = Store::in_memory().unwrap();
    assert!(takes(&store, third, None, &signed(None, None)));
    assert!(takes(&store, thiefs, None, &signed(Some(1), None)));
    store
}

#[test]
fn a_publisher_that_was_replaced_is_refused_by_who_saw_the_new_one() {
    let ([third, next, _], store) = (story(), Store::in_memory().unwrap());
    assert!(takes(&store, &third, None, &signed(None, None)));
    assert!(takes(&store, &next, None, &signed(Some(3), None)));
    assert!(!takes(&store, &epoch(7, Some(&next), 4), None, &signed(Some(1), None)));
    // What the operator itself signs needs no serial, and the publisher stays.
    for _ in 0..2 {
        assert!(takes(&store, &next, None, &signed(None, None)));
        assert!(takes(&store, &next, None, &signed(Some(3), None)));
    }
}

#[test]
fn a_restart_heals_what_a_thief_did_and_ends_the_stolen_key() {
    let made = story();
    let (store, [third, next, thiefs]) = (deceived(&made), &made);
    assert!(!takes(&store, next, None, &signed(None, None)));
    assert!(takes(&store, next, None, &signed(None, Some((third, 2)))));
    for shown in [thiefs, &epoch(7, Some(next), 5), &epoch(6, Some(third), 5), &epoch(7, Some(third), 5)] {
        assert!(!takes(&store, shown, None, &signed(Some(1), None)));
        assert!(!takes(&store, shown, None, &signed(Some(1), Some((third, 2)))));
    }
    assert!(takes(&store, &epoch(7, Some(next), 6), None, &signed(Some(3), Some((third, 2)))));
}

#[test]
fn a_restart_can_be_had_with_the_file_that_it_names_or_much_later() {
    let made = story();
    let [third, next, _] = &made;
    let late = epoch(7, Some(next), 4);
    let (by_operator, by_new) = (signed(None, Some((third, 2))), signed(Some(3), Some((third, 2))));
    assert!(takes(&deceived(&made), third, None, &by_operator));
    let store = deceived(&made);
    assert!(!takes(&store, &late, None, &by_new));
    assert!(takes(&store, &late, Some(&CampaignLog { heads: vec![third.head, next.head] }), &by_new));
    // A client without a past needs no log for it.
    assert!(takes(&Store::in_memory().unwrap(), &late, None, &by_new));
}

#[test]
fn a_publisher_leaves_out_no_more_epochs_than_a_log_holds() {
    let [third, ..] = story();
    for (number, is_taken) in [(MOST_EPOCHS as u64 + 5, true), (MOST_EPOCHS as u64 + 6, false), (GREATEST_EPOCH, false)]
    {
        let (store, far) = (Store::in_memory().unwrap(), epoch(number, Some(&third), 4));
        assert!(takes(&store, &third, None, &signed(None, None)));
        assert_eq!(takes(&store, &far, None, &signed(Some(1), None)), is_taken);
        assert!(takes(&store, &far, None, &signed(None, None)));
    }
}

#[test]
fn all_epochs_have_noise_or_none() {
    let (quiet, mut noisy) = (epoch(5, None, 1), epoch(5, None, 1));
    noisy.noise = Some(Noise { epsilon: 1.0, delta: 1e-9, seconds: Some(1) });
    for (first, second) in [(&quiet, &noisy), (&noisy, &quiet)] {
        let store = Store::in_memory().unwrap();
        assert!(takes(&store, first, None, &signed(None, None)));
        assert!(takes(&store, first, None, &signed(None, None)));
        // Not even the operator's restart changes it.
        assert!(!takes(&store, second, None, &signed(None, Some((second, 9)))));
    }
}

#[test]
fn a_damaged_head_is_no_absent_head() {
    let (third, store) = (epoch(5, None, 1), Store::in_memory().unwrap());
    store.change(|records| records.put("newest/vectors.grr", &serde_json::json!({"epoch": 4}))).unwrap();
    assert_eq!(keep(&store, &third, None, None).unwrap_err().kind(), Kind::Format);
}
