//! The settings of a training: the defaults of configs, with changes.

use super::images::ImagesOptions;
use crate::config::{Config, Source};
use crate::error::ExperimentError;

/// A key that every training may change.
const ARITHMETIC: &str = "arithmetic";

/// Returns the config of a training. `sets` are the user's changes `KEY=VALUE` of keys of the section `section`, and with an encoder
/// also of `features`; `fixed` are further keys of the command itself.
pub(super) fn settings(
    section: &str,
    images: &ImagesOptions,
    seed: u64,
    fixed: &[String],
    sets: &[String],
) -> Result<Config, ExperimentError> {
    for set in sets {
        let key = set.split('=').next().unwrap_or_default().trim();
        let is_of = |section: &str| key.strip_prefix(section).is_some_and(|rest| rest.starts_with('.'));
        let is_for_encoder = images.encoder.is_some() && is_of("features");
        if key == "features.encoder" && is_for_encoder {
            return Err(ExperimentError::key("--set", key, "is given with --encoder"));
        }
        if key != ARITHMETIC && !is_of(section) && !is_for_encoder {
            let of_encoder = if images.encoder.is_some() && section != "features" { " or [features]" } else { "" };
            let expected = format_args!("expected a key of [{section}]{of_encoder}, or {ARITHMETIC}");
            return Err(ExperimentError::key("--set", key, expected));
        }
    }
    let entries = [&images.entries()[..], &[format!("seed={seed}")], fixed, sets].concat();
    Config::load(&Source::new("defaults", "").with_overrides(&entries)?)
}

/// Returns the keys of the settings for images of a pool, for [`settings`]: the pool's size does not change the settings, and
/// no teacher is trained.
pub(super) fn of_pool() -> Vec<String> {
    ["data.pool_images=1", "queries.count=1", "votes.source=truth"].map(str::to_owned).into()
}
