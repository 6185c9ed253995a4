//! Commands with their outputs and exit codes: help, claims, refusals, and scripts of rounds. A script with a folder `.out` runs in a
//! folder of its own, which begins with the files of `.in`.
//!
//! `TRYCMD=overwrite cargo test --release -p speed-cli --test cli snapshots` rewrites them; read the
//! difference.

use std::path::Path;

#[test]
fn the_output_matches_the_snapshots() {
    trycmd::TestCases::new()
        .case("tests/snapshots/*.trycmd")
        .register_bin("sh", Path::new("/bin/sh"))
        .env("COLUMNS", "120")
        .env("SPEED_DATASETS", "")
        .run();
}
