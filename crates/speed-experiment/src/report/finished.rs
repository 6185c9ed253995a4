//! The report of a finished run, and its form on the disk.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result as IoResult};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use speed_ledger::Statement;

use super::row::ReportRow;
use crate::config::RawConfig;
use crate::environment::Environment;
use crate::error::{ExperimentError, ResultsFault};
use crate::stages::{EnsembleQuality, LabellingTimes};
use crate::store::report_path;

/// Bytes of a report at most: a thousand times those of a long table. Results may be from anywhere.
const MAX_BYTES: u64 = 64 << 20;

/// Wall-clock time of a stage.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StageTime {
    /// The stage.
    pub stage: String,
    /// Seconds of the attempt that finished it.
    pub seconds: f64,
    /// Units of work left by earlier attempts, whose time is not in `seconds`.
    pub resumed_units: usize,
}

/// A finished run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "ReportFile")]
pub struct Report {
    /// Experiment name.
    pub experiment: String,
    /// Run id.
    pub run: String,
    /// True where noise and keys came from the seed: reproducible, not private.
    pub simulation: bool,
    /// The resolved config.
    pub config: RawConfig,
    /// The dataset whose digits street digits are made of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handwriting: Option<String>,
    /// The ensemble on the pool.
    pub(crate) ensemble: EnsembleQuality,
    /// The lines.
    pub rows: Vec<ReportRow>,
    /// Machine and versions.
    pub environment: Environment,
    /// The kinds of machine that trained; more than one only where `--mix-machines` was given.
    pub kinds_of_machine: Vec<String>,
    /// Times of the stages.
    pub stage_times: Vec<StageTime>,
    /// The sum of the experiment's ledger, over all its runs; none for simulations, which charge nothing.
    pub ledger: Option<Statement>,
}

/// A report as it may lie on the disk: earlier versions have the times of all rows in a list of their own.
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
    /// Returns the folder of its run below a results folder.
    #[must_use]
    pub fn folder(&self, results: &Path) -> PathBuf {
        results.join(&self.experiment).join(&self.run)
    }

    /// Reads the report of the finished run in the folder `run`.
    ///
    /// # Errors
    /// If there is none, or it is damaged.
    pub fn read(run: &Path) -> Result<Self, ExperimentError> {
        let path = report_path(run);
        let failure = |fault| ExperimentError::Results { path: path.clone(), fault };
        let bytes = read_up_to(&path, MAX_BYTES + 1).map_err(|error| failure(ResultsFault::Unfinished(error)))?;
        if bytes.len() as u64 > MAX_BYTES {
            let found = std::fs::metadata(&path).map_or(MAX_BYTES + 1, |file| file.len());
            return Err(failure(ResultsFault::ReportSize { max: MAX_BYTES, found }));
        }
        serde_json::from_slice(&bytes).map_err(|error| failure(ResultsFault::NoReport(error)))
    }
}

/// Reads a regular file, or its beginning.
fn read_up_to(path: &Path, limit: u64) -> IoResult<Vec<u8>> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(Error::new(ErrorKind::InvalidInput, "not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}
