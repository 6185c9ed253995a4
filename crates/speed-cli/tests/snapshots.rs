//! Snapshots of the binary's output: help, claims and errors, each with its exit code.
//!
//! `TRYCMD=overwrite cargo test --release --workspace --features proofs --test snapshots` rewrites them; read the
//! difference.

#[test]
fn the_binary_says_what_the_snapshots_say() {
    trycmd::TestCases::new().case("tests/snapshots/*.trycmd").env("COLUMNS", "120").env("SPEED_DATASETS", "").run();
}
