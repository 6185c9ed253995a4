//! Snapshots of the binary's output: help, claims, plans and errors, each with its exit code.
//!
//! `TRYCMD=overwrite cargo test --release -p speed-cli --test cli snapshots` rewrites them; read the
//! difference.

#[test]
fn the_output_matches_the_snapshots() {
    trycmd::TestCases::new().case("tests/snapshots/*.trycmd").env("COLUMNS", "120").env("SPEED_DATASETS", "").run();
}
