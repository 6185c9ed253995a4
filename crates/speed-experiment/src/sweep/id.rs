//! The id and the directory of a sweep.

use std::path::{Path, PathBuf};

use crate::config::Sweep;
use crate::store::{self, Fingerprint, RunStore};

/// Returns the id of a sweep, or of a plain run: the beginning of the fingerprint of all its configs.
pub fn sweep_id(sweep: &Sweep) -> String {
    let configs: Vec<String> = sweep.configs().map(|config| config.to_toml()).collect();
    Fingerprint::of_bytes(configs.join("\n").as_bytes()).short()
}

pub(crate) fn folder_of(sweep: &Sweep, results: &Path) -> PathBuf {
    match sweep.is_plain() {
        true => RunStore::folder_of(results, sweep.first()),
        false => store::sweep_folder(results, &sweep.first().name, &sweep_id(sweep)),
    }
}
