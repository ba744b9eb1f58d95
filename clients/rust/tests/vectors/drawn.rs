//! Cases that Python draws: `python -m tests.vectors.drawn`, as `make test-rust` runs it.

use super::support::{array, bytes, entries};
use crate::campaigns::campaign::Campaign;

#[test]
#[ignore = "needs HUSHCOUNT_VECTORS: make test-rust"]
fn drawn_campaign_files_are_accepted_and_refused_as_by_python() {
    let (mut accepted, mut wrong) = (0, Vec::new());
    let cases = entries("mutated", "accept");
    for entry in &cases {
        let file = bytes(entry, "file");
        let wanted = entry["fingerprint"].is_string().then(|| array::<32>(entry, "fingerprint"));
        let made = Campaign::parse(&file, &[]);
        accepted += usize::from(made.is_ok());
        if made.as_ref().ok().map(|campaign| campaign.fingerprint) != wanted {
            let said = made.err().map_or_else(|| "it was accepted".to_owned(), |error| error.to_string());
            wrong.push(format!("{}\n  Python: {:?}; here: {said}", String::from_utf8_lossy(&file), wanted));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} differ, such as\n{}",
        wrong.len(),
        cases.len(),
        wrong[..wrong.len().min(5)].join("\n")
    );
    assert!(cases.len() >= 1000 && accepted * 50 > cases.len(), "too few cases: {accepted} of {}", cases.len());
}
