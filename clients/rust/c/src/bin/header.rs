//! Prints `include/hushcount.h`.

use std::path::Path;

fn main() -> Result<(), cbindgen::Error> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(here.join("cbindgen.toml")).expect("cbindgen.toml can be read");
    cbindgen::Builder::new().with_crate(here).with_config(config).generate()?.write(std::io::stdout());
    Ok(())
}
