//! A release contains no code whose licence it may not contain.

use std::collections::BTreeSet;
use std::process::Command;

const ALLOWED: [&str; 7] = ["Apache-2.0", "BSD-3-Clause", "CDLA-Permissive-2.0", "ISC", "MIT", "Unicode-3.0", "Zlib"];
/// `UniFFI` has it, which only the bindings contain.
const OF_BINDINGS: &str = "MPL-2.0";

/// Return whether an SPDX expression is met by allowed licences; of nested expressions it refuses too many.
fn is_allowed(expression: &str, name: &str) -> bool {
    let fits = |licence: &str| ALLOWED.contains(&licence) || (licence == OF_BINDINGS && name == "hushcount-bindings");
    let flat = expression.replace(['(', ')'], "").replace('/', " OR ");
    flat.split(" AND ").all(|part| part.split(" OR ").any(fits))
}

#[test]
fn a_release_may_contain_the_licence_of_every_package() {
    for name in ["hushcount", "hushcount-c", "hushcount-bindings"] {
        // The packages of all platforms, and those that only tests need too; not the programs that write header, Kotlin
        // and Swift.
        let asked = ["tree", "--locked", "--target=all", "--edges=normal,build,dev", "--prefix=none"];
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(asked).args(["--no-dedupe", "--format={p}: {l}", "--package", name]);
        let told = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
        assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
        let told = String::from_utf8(told.stdout).unwrap();
        let lines: BTreeSet<_> = told.lines().collect();
        let is_wrong = |line: &&&str| !is_allowed(line.rsplit_once(": ").map_or("", |(_, licence)| licence), name);
        assert_eq!(lines.iter().find(is_wrong), None, "{name} contains it");
        assert!(lines.len() > 50, "{name} has {} packages", lines.len());
    }
}
