//! Builds `csrc/` and, with the feature `bindings`, proves that the committed bindings are current.

use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=csrc");
    let mut sources: Vec<PathBuf> = std::fs::read_dir("csrc")
        .expect("csrc/ is part of the source tree")
        .map(|entry| entry.expect("csrc/ is readable").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "c"))
        .collect();
    sources.sort();
    cc::Build::new()
        .files(sources)
        .include(blst_bindings())
        .opt_level(3)
        .flag("-std=gnu11")
        .flag("-fno-strict-aliasing")
        .warnings(true)
        .warnings_into_errors(true)
        .compile("berth_c");
    #[cfg(feature = "bindings")]
    bindings();
}

/// The folder of `blst.h`, told by blst's own build script.
fn blst_bindings() -> PathBuf {
    PathBuf::from(std::env::var_os("DEP_BLST_BINDINGS").expect("blst tells where its header is"))
}

/// Compares `src/sys.rs` with what bindgen makes of `csrc/berth.h` now; with
/// `BERTH_WRITE_BINDINGS` in the environment it writes the file instead.
#[cfg(feature = "bindings")]
fn bindings() {
    println!("cargo::rerun-if-env-changed=BERTH_WRITE_BINDINGS");
    println!("cargo::rerun-if-changed=src/sys.rs");
    let made = bindgen::Builder::default()
        .header("csrc/berth.h")
        .clang_arg(format!("-I{}", blst_bindings().display()))
        .allowlist_file("(.*/)?csrc/.*")
        .allowlist_recursively(false)
        .raw_line(
            "//! Bindings to `csrc/`, made by bindgen from `csrc/berth.h`: do not edit; build with",
        )
        .raw_line("//! `BERTH_WRITE_BINDINGS=1 cargo check --features bindings` to make them anew.")
        .raw_line("#![allow(missing_docs, non_camel_case_types, unused_imports, clippy::all)]")
        .raw_line("use blst::*;")
        .use_core()
        .generate_comments(false)
        .generate()
        .expect("bindgen reads csrc/berth.h")
        .to_string();
    if std::env::var_os("BERTH_WRITE_BINDINGS").is_some() {
        std::fs::write("src/sys.rs", &made).expect("src/sys.rs is writable");
    }
    let committed = std::fs::read_to_string("src/sys.rs").expect("src/sys.rs is readable");
    assert!(
        made == committed,
        "src/sys.rs is not what bindgen makes of csrc/berth.h; \
         run BERTH_WRITE_BINDINGS=1 cargo check --features bindings"
    );
}
