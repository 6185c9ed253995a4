//! The folder of a sweep's tables, beside the runs of its experiment.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::atomic::{write_atomic, write_json};
use crate::error::ExperimentError;

/// The folder of a sweep's tables.
pub(crate) struct SweepStore(PathBuf);

impl SweepStore {
    /// Returns the folder of a sweep below `results`.
    pub(crate) fn folder_of(results: &Path, experiment: &str, sweep: &str) -> PathBuf {
        results.join(experiment).join(format!("sweep-{sweep}"))
    }

    /// Creates the folder, or opens it where the same sweep ended before.
    ///
    /// # Errors
    /// If it cannot be created.
    pub(crate) fn create(folder: PathBuf) -> Result<Self, ExperimentError> {
        fs::create_dir_all(&folder).map_err(ExperimentError::io("create", &folder))?;
        Ok(Self(folder))
    }

    /// Writes a table or plot.
    ///
    /// # Errors
    /// If the disk refuses.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), ExperimentError> {
        write_atomic(&self.0.join(name), bytes)
    }

    /// Writes a JSON file.
    ///
    /// # Errors
    /// If the disk refuses.
    pub(crate) fn write_json(&self, name: &str, value: &impl Serialize) -> Result<(), ExperimentError> {
        write_json(&self.0.join(name), value)
    }
}
