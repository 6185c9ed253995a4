//! The same table on every machine if requested.

use std::collections::BTreeMap;
use std::fs;

use crate::cli::common::{TINY, Workplace, entries, read_json};

/// Digests of everything that networks computed (scripts/check-portable compares an emulated processor with this file).
/// With `SPEED_RENEW=1` in the environment, the test rewrites the file.
const PORTABLE: &str = include_str!("portable.json");

#[test]
fn portable_trainings_have_these_bytes_on_every_machine() {
    let place = Workplace::new(TINY);
    place.succeeds("run config.toml --set arithmetic=portable");
    let run = place.run_folder("results", "tiny");
    let environment = read_json(&run.join("env.json"));
    assert_eq!(environment["arithmetic"], "portable");
    let mut digests = BTreeMap::new();
    for stage in entries(&run.join("stages")) {
        // Epsilons depend on the system's mathematical functions.
        let name = stage.file_name().expect("a name").to_string_lossy().into_owned();
        if !name.starts_with("account-") {
            let record = read_json(&stage.join("stage.json"));
            digests.insert(name, record["outputs"].clone());
        }
    }
    let found = format!("{:#}\n", serde_json::json!(digests));
    if std::env::var_os("SPEED_RENEW").is_some() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/portable.json");
        fs::write(path, &found).expect("written");
        return;
    }
    assert_eq!(found, PORTABLE);
}
