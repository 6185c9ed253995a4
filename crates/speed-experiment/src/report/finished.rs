//! The report of a finished run, and its format on disk.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use speed_ledger::Statement;

use super::plausible::{MAX_FOLDER, check_count, check_names, check_rows};
use super::row::ReportRow;
use crate::config::RawConfig;
use crate::environment::Environment;
use crate::error::{ExperimentError, ResultsFault};
use crate::stages::{EnsembleQuality, LabellingTimes};
use crate::store::{RunNoise, read_report, report_path};

/// The largest number of stages of a run; each student is a stage.
const MAX_STAGES: usize = 1_000_000;

/// Wall-clock time of a stage.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StageTime {
    /// The stage.
    pub stage: String,
    /// The time of the attempt that finished it, in seconds.
    pub seconds: f64,
    /// Units of work from earlier attempts; their time is not in `seconds`.
    pub resumed_units: usize,
}

/// The report of a finished run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "ReportFile")]
pub struct Report {
    /// Experiment name.
    pub experiment: String,
    /// Run id.
    pub run: String,
    /// True if noise and keys came from the seed: reproducible, not private.
    pub simulation: bool,
    /// The resolved config.
    pub config: RawConfig,
    /// The dataset from whose digits the street digits are made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handwriting: Option<String>,
    /// The accuracy of the ensemble on the pool.
    pub(crate) ensemble: EnsembleQuality,
    /// The lines of the table.
    pub rows: Vec<ReportRow>,
    /// Machine and versions.
    pub environment: Environment,
    /// The kinds of machine that trained; more than one only with `--mix-machines`.
    pub kinds_of_machine: Vec<String>,
    /// Times of the stages.
    pub stage_times: Vec<StageTime>,
    /// The statement of the experiment's ledger over all its runs; `None` for simulations, which charge nothing.
    pub ledger: Option<Statement>,
}

/// A report as stored; earlier versions store the times of all rows in a separate list.
#[derive(Deserialize)]
struct ReportFile {
    experiment: String,
    run: String,
    simulation: bool,
    config: RawConfig,
    #[serde(default)]
    handwriting: Option<String>,
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
            handwriting: file.handwriting,
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
    /// Returns whether noise protects the answers, so parts of the report are not public.
    pub(crate) fn is_protected(&self) -> bool {
        !self.simulation && self.rows.iter().any(ReportRow::is_noisy)
    }

    /// Returns the noise of its answers.
    pub(crate) fn noise(&self) -> RunNoise {
        RunNoise::new(self.rows.iter().any(ReportRow::is_noisy), self.simulation)
    }

    /// Returns the directory of its run below a directory of results.
    #[must_use]
    pub fn folder(&self, results: &Path) -> PathBuf {
        results.join(&self.experiment).join(&self.run)
    }

    /// Reads the report of the finished run in the directory `run`.
    ///
    /// # Errors
    /// If the report is missing or damaged.
    pub fn read(run: &Path) -> Result<Self, ExperimentError> {
        let path = report_path(run);
        let report: Self = read_report(&path)?;
        report.check().map_err(|fault| ExperimentError::Results { path, fault })?;
        Ok(report)
    }

    /// Checks the untrusted parts of the report.
    fn check(&self) -> Result<(), ResultsFault> {
        let stages = self.stage_times.iter().map(|time| &time.stage);
        check_count("stages", self.stage_times.len(), MAX_STAGES)?;
        check_names(MAX_FOLDER, [&self.experiment, &self.run].into_iter().chain(&self.handwriting).chain(stages))?;
        check_rows(&self.rows)
    }
}
