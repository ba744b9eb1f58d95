//! Signatures of bytes, and of campaigns.

use curve25519_dalek::constants::{ED25519_BASEPOINT_POINT as BASE, EIGHT_TORSION};
use curve25519_dalek::scalar::Scalar;
use serde_json::Value;
use sha2::{Digest, Sha512};

use super::support::{array, bytes, campaign, entries, require_refused, text};
use crate::errors::{Kind, Result};
use crate::formats::bytes::{hex, unhex};
use crate::formats::times::parse_time;
use crate::trust::delegation::{CampaignSignature, verify_campaign};
use crate::trust::signatures::{Signature, VerifyKey, is_signature, signed_bytes, verify};

/// What a refusal says, by the reason in the vectors.
pub(super) const SAID: &[(&str, &[&str])] = &[
    ("unknown_key", &["but trusted are"]),
    ("wrong_signature", &["is wrong: it was altered"]),
    ("malformed", &["the signature"]),
    ("key_not_valid", &["and it is"]),
    ("other_terms", &["with the terms"]),
    ("after_last_epoch", &["must be at most 1: the operator", "must be at most 2: the operator"]),
    ("other_evaluator_key", &["with an evaluator's key that is delegated: the operator must delegate anew"]),
    ("ended_delegation", &["but the operator's restart ended all below"]),
    ("other_restart", &["the restart is of campaign"]),
];

/// Check an entry, and return the ids of the keys that vouch.
fn check(entry: &Value) -> Result<Vec<[u8; 8]>> {
    let keys = entry["keys"].as_array().unwrap().iter().map(|key| VerifyKey::of(key, "the key"));
    let keys: Vec<_> = keys.collect::<Result<_>>()?;
    if entry["rule"] == "bytes" {
        let signature = Signature::of(&entry["signature"], "the signature")?;
        return Ok(vec![verify(&keys, &bytes(entry, "payload"), text(entry, "purpose"), &signature)?.id]);
    }
    let signature = CampaignSignature::parse(entry["signature"].to_string().as_bytes(), "the signature")?;
    let (campaign, now) = (campaign(text(entry, "campaign")), parse_time(text(entry, "at")).unwrap());
    Ok(verify_campaign(&keys, &campaign, &signature, now)?.iter().map(|key| key.id).collect())
}

#[test]
fn what_was_signed_is_accepted() {
    let accept = entries("signatures", "accept");
    assert!(accept.len() >= 20);
    for entry in accept {
        let ids: Vec<_> = check(&entry).unwrap().iter().map(|id| hex(id)).collect();
        if entry["rule"] == "bytes" {
            let made = signed_bytes(&bytes(&entry, "payload"), text(&entry, "purpose"));
            assert_eq!(made, bytes(&entry, "signed_bytes"));
        } else {
            assert_eq!(Value::from(ids), entry["vouching"]);
        }
        for part in ["delegation", "restart"] {
            if let Some(wanted) = entry.get(format!("{part}_signed")) {
                let read = CampaignSignature::of(&entry["signature"], "the signature").unwrap();
                let said = read.delegation.map(|one| one.statement).filter(|_| part == "delegation");
                let said = said.or(read.restart.map(|one| one.statement)).unwrap();
                assert_eq!(String::from_utf8(said.signed).unwrap(), *wanted);
            }
        }
    }
}

#[test]
fn what_was_not_signed_is_refused() {
    let refuse = entries("signatures", "refuse");
    assert!(refuse.len() >= 65);
    for entry in refuse {
        let made = check(&entry);
        let kind = if entry["reason"] == "malformed" { Kind::Format } else { Kind::Signature };
        assert_eq!(made.as_ref().unwrap_err().kind(), kind);
        require_refused(made, &entry, SAID);
    }
}

fn point(digits: &str) -> [u8; 32] {
    unhex(digits).unwrap().try_into().unwrap()
}

#[test]
fn keys_and_signatures_of_small_order_and_in_another_encoding_are_refused() {
    let entry = entries("signatures", "accept").swap_remove(0);
    let (key, message) = (array(&entry["keys"][0], "key"), bytes(&entry, "signed_bytes"));
    let good: [u8; 64] = array(&entry["signature"], "signature");
    assert!(is_signature(&key, &message, &good));
    let small = EIGHT_TORSION.map(|torsion| torsion.compress().to_bytes());
    // Other encodings of the identity, which has x = 0; and y = 2**255 - 19 + 0 to 3, not below the field's order.
    let (zeros, ones) = ("00".repeat(30), "ff".repeat(30));
    let others = ["ed", "ee", "ef", "f0"].map(|first| point(&format!("{first}{ones}7f")));
    for unusual in [&small[..], &others, &[point(&format!("01{zeros}80"))]].concat() {
        // With R the identity and S = 0, the equation alone holds for a key of small order.
        let identity = [&small[0][..], &[0; 32]].concat().try_into().unwrap();
        assert!(!is_signature(&unusual, &message, &identity));
        assert!(!is_signature(&unusual, &message, &good));
        assert!(!is_signature(&key, &message, &[&unusual[..], &good[32..]].concat().try_into().unwrap()));
    }
    // S and S + the group's order satisfy the same equation.
    let order = point("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010");
    let (mut other, mut carry) = (good, 0);
    for (byte, add) in other[32..].iter_mut().zip(order) {
        carry += u16::from(*byte) + u16::from(add);
        *byte = carry as u8;
        carry >>= 8;
    }
    assert!(!is_signature(&key, &message, &other));
    // y = 2 has no x on the curve.
    assert!(!is_signature(&point(&format!("02{zeros}00")), &message, &good));
}

#[test]
fn no_equation_is_multiplied_by_the_cofactor() {
    let (secret, nonce) = (Scalar::from(12_345_u64), Scalar::from(67_890_u64));
    let keys = [0, 1].map(|part| (BASE * secret + EIGHT_TORSION[part]).compress().to_bytes());
    let points = [0, 1].map(|part| (BASE * nonce + EIGHT_TORSION[part]).compress().to_bytes());
    let challenge = |key: &[u8], r: &[u8], message: &[u8]| {
        let digest = Sha512::new().chain_update(r).chain_update(key).chain_update(message).finalize();
        Scalar::from_bytes_mod_order_wide(&digest.into())
    };
    let is_accepted = |key: &[u8; 32], r: &[u8; 32], message: &[u8]| {
        let s = (nonce + challenge(key, r, message) * secret).to_bytes();
        is_signature(key, message, &[*r, s].concat().try_into().unwrap())
    };
    assert!(is_accepted(&keys[0], &points[0], b""));
    assert!(!is_accepted(&keys[0], &points[1], b""));
    // A key with a part of order 8 is accepted, as in libsodium, if the challenge cancels this part.
    for is_cancelled in [false, true] {
        let cancels = |message: &u64| challenge(&keys[1], &points[0], &message.to_le_bytes()).as_bytes()[0] % 8 == 0;
        let message = (0_u64..1000).find(|message| cancels(message) == is_cancelled).unwrap();
        assert_eq!(is_accepted(&keys[1], &points[0], &message.to_le_bytes()), is_cancelled);
    }
}
