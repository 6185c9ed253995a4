//! The directory of a sweep's tables, beside the runs of its experiment.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::atomic::{json, write_for};
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
    pub(crate) fn create(folder: PathBuf) -> Result<Self, ExperimentError> {
        fs::create_dir_all(&folder).map_err(ExperimentError::io("create", &folder))?;
        Ok(Self(folder))
    }

    /// Writes a table or plot. Only its owner may read it if it has figures of secret votes.
    pub(crate) fn write(&self, name: &str, bytes: &[u8], is_secret: bool) -> Result<(), ExperimentError> {
        write_for(is_secret, &self.0.join(name), bytes)
    }

    /// Writes the report, with which the sweep is finished, as [`Self::write`].
    pub(crate) fn write_report(&self, report: &impl Serialize, is_secret: bool) -> Result<(), ExperimentError> {
        self.write(SWEEP_REPORT, &json(&Self::report_of(&self.0), report)?, is_secret)
    }

    /// Returns the path of a finished sweep's report.
    pub(crate) fn report_of(sweep: &Path) -> PathBuf {
        sweep.join(SWEEP_REPORT)
    }
}
