//! The report: our figures beside the paper's, with everything that is needed to make them again.

mod columns;
mod file;
mod row;
mod statistics;
mod text;

pub use row::ReportRow;
pub(crate) use row::RowResult;
pub(crate) use statistics::median;

use serde::{Deserialize, Serialize};
use speed_accountant::ledger::Statement;

use crate::config::RawConfig;
use crate::environment::Environment;
use crate::stages::EnsembleQuality;

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
#[serde(from = "file::ReportFile")]
pub struct Report {
    /// Experiment name.
    pub experiment: String,
    /// Run id.
    pub run: String,
    /// True where noise and keys came from the seed: reproducible, not private.
    pub simulation: bool,
    /// The resolved config.
    pub config: RawConfig,
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
