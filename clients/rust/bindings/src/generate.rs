//! Writes the Kotlin and the Swift that call the library.

fn main() {
    uniffi::uniffi_bindgen_main();
}
