//! Reports on the disk, those of earlier versions included.

use std::path::Path;

use serde::Deserialize;
use speed_ledger::Statement;

use super::{Report, ReportRow, StageTime};
use crate::config::RawConfig;
use crate::environment::Environment;
use crate::error::{ExperimentError, ResultsFault};
use crate::stages::{EnsembleQuality, LabellingTimes};
use crate::store::report_path;

/// A report as it may lie on the disk: earlier versions have the times of all rows in a list of their own.
#[derive(Deserialize)]
pub(super) struct ReportFile {
    experiment: String,
    run: String,
    simulation: bool,
    config: RawConfig,
    ensemble: EnsembleQuality,
    rows: Vec<ReportRow>,
    environment: Environment,
    #[serde(default)]
    kinds_of_machine: Vec<String>,
    #[serde(default)]
    encrypted_times: Vec<Option<LabellingTimes>>,
    stage_times: Vec<StageTime>,
    #[serde(default)]
    ledger: Option<Statement>,
}

impl From<ReportFile> for Report {
    fn from(file: ReportFile) -> Self {
        let mut rows = file.rows;
        for (row, times) in rows.iter_mut().zip(file.encrypted_times) {
            row.encrypted_times = times;
        }
        Self {
            experiment: file.experiment,
            run: file.run,
            simulation: file.simulation,
            config: file.config,
            ensemble: file.ensemble,
            rows,
            environment: file.environment,
            kinds_of_machine: file.kinds_of_machine,
            stage_times: file.stage_times,
            ledger: file.ledger,
        }
    }
}

impl Report {
    /// Reads the report of the finished run in the folder `run`.
    ///
    /// # Errors
    /// If there is none, or it is damaged.
    pub fn read(run: &Path) -> Result<Self, ExperimentError> {
        let path = report_path(run);
        let failure = |fault| ExperimentError::Results { path: path.clone(), fault };
        let bytes = std::fs::read(&path).map_err(|error| failure(ResultsFault::Unfinished(error)))?;
        serde_json::from_slice(&bytes).map_err(|error| failure(ResultsFault::NoReport(error)))
    }
}
