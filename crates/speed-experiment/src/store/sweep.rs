//! The directory of a sweep's tables, beside the runs of its experiment.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::atomic::{write_atomic, write_json};
use super::layout::SWEEP_REPORT;
use crate::error::ExperimentError;

/// The directory of a sweep's tables.
pub(crate) struct SweepStore(PathBuf);

impl SweepStore {
    /// Returns the directory of a sweep below `results`.
    pub(crate) fn folder_of(results: &Path, experiment: &str, sweep: &str) -> PathBuf {
        results.join(experiment).join(format!("sweep-{sweep}"))
    }

    /// Creates the directory, or opens it if the same sweep ended before.
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
    /// If the directory cannot be written.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), ExperimentError> {
        write_atomic(&self.0.join(name), bytes)
    }

    /// Writes the report, with which the sweep is finished.
    ///
    /// # Errors
    /// If the directory cannot be written.
    pub(crate) fn write_report(&self, report: &impl Serialize) -> Result<(), ExperimentError> {
        write_json(&Self::report_of(&self.0), report)
    }

    /// Returns the path of a finished sweep's report.
    pub(crate) fn report_of(sweep: &Path) -> PathBuf {
        sweep.join(SWEEP_REPORT)
    }
}
