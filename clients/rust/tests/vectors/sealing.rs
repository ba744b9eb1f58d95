//! Sealed boxes: `sealing.json`, and X25519: `wycheproof_x25519.json`.

use super::support::{array, bytes, entries, require_refused, text, vectors};
use crate::wire::sealing::{SEAL_BYTES, seal, seal_alike, x25519};

#[test]
fn accept() {
    let mut rules = [0, 0];
    for entry in entries("sealing", "accept") {
        let (to, plain) = (array(&entry, "public_key"), bytes(&entry, "plain"));
        let alike = text(&entry, "rule") == "seal_alike";
        let sealed = if alike {
            seal_alike(&array(&entry, "key"), &to, &plain)
        } else {
            seal(&array(&entry, "ephemeral_secret"), &to, &plain)
        };
        let sealed = sealed.unwrap();
        assert_eq!(sealed, bytes(&entry, "sealed"), "{entry}");
        assert_eq!(sealed.len(), plain.len() + SEAL_BYTES);
        rules[usize::from(alike)] += 1;
    }
    assert!(rules.into_iter().all(|number| number > 2));
}

#[test]
fn refuse() {
    let mut number = 0;
    // A client opens no boxes, and the type of a key states its length.
    for entry in entries("sealing", "refuse").iter().filter(|entry| text(entry, "rule") == "seal") {
        let Ok(to) = bytes(entry, "public_key").try_into() else {
            assert_eq!(text(entry, "reason"), "wrong_length");
            continue;
        };
        let sealed = seal(&array(entry, "ephemeral_secret"), &to, &bytes(entry, "plain"));
        require_refused(sealed, entry, &[("small_order", &["not a valid X25519 public key"])]);
        number += 1;
    }
    assert!(number > 6);
}

#[test]
fn x25519_gives_the_products_of_wycheproof() {
    let file = vectors("wycheproof_x25519");
    let groups = file["testGroups"].as_array().unwrap();
    let products: Vec<_> = groups.iter().flat_map(|group| group["tests"].as_array().unwrap()).collect();
    assert_eq!(products.len() as u64, file["numberOfTests"].as_u64().unwrap());
    let mut refused = 0;
    for entry in products {
        let shared: [u8; 32] = array(entry, "shared");
        if let Ok(product) = x25519(&array(entry, "private"), &array(entry, "public")) {
            assert_eq!(product, shared, "{entry}");
        } else {
            assert_eq!(shared, [0; 32], "{entry}");
            refused += 1;
        }
    }
    assert!(refused > 10);
}
