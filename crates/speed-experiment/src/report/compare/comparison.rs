//! The results of a comparison.

use serde::Serialize;

use super::figures::FigureComparison;
use super::rows::RowComparison;
use super::settings::SettingDifference;
use crate::report::noise::RunNoise;

/// A compared run, or the paper.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ComparedRun {
    /// Its column: `A`, `B`, ..., or `paper`.
    pub label: String,
    /// The run's directory as given; `None` for the paper.
    pub folder: Option<String>,
    /// Experiment name.
    pub experiment: Option<String>,
    /// Run id.
    pub run: Option<String>,
    /// Whether noise and keys came from the seed.
    pub simulation: Option<bool>,
    /// The noise of its answers.
    pub noise: Option<RunNoise>,
}

/// A comparison of runs. Lists of values and of differences have an entry for each of `runs`; differences are relative
/// to the first run.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Comparison {
    /// The columns.
    pub runs: Vec<ComparedRun>,
    /// The settings, versions and machines that differ.
    pub settings: Vec<SettingDifference>,
    /// Figures of runs as opposed to rows.
    pub run_figures: Vec<FigureComparison>,
    /// The rows, by name.
    pub rows: Vec<RowComparison>,
    /// Notes on single figures.
    pub notes: Vec<String>,
}
