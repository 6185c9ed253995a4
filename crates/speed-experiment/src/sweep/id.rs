//! The id of a sweep.

use crate::config::Sweep;
use crate::store::Fingerprint;

/// Returns the id of a sweep: the beginning of the fingerprint of all its configs.
#[must_use]
pub fn sweep_id(sweep: &Sweep) -> String {
    let configs: Vec<String> = sweep.settings.iter().map(|setting| setting.config.to_toml()).collect();
    Fingerprint::of_bytes(configs.join("\n").as_bytes()).short()
}
