//! Finished runs side by side, and beside the paper: what differs in their settings, and by how much their figures do.

mod claims;
mod figures;
mod rows;
mod settings;
mod spread;
mod text;

use serde::Serialize;

pub use claims::ClaimDifference;
pub use figures::{Figure, FigureComparison, Measure};
pub use rows::RowComparison;
pub use settings::SettingDifference;
pub use spread::{Difference, WithoutSpread};

use crate::report::Report;
use crate::store::RunNoise;

/// The name of the paper's column.
const PAPER: &str = "paper";

/// A run that is compared, or the paper.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ComparedRun {
    /// Its column: `A`, `B`, ..., or `paper`.
    pub label: String,
    /// The run's folder, as it was given; none of the paper.
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

/// Runs side by side. Lists of values and of differences have an entry for each of `runs`; differences are from the first of them.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Comparison {
    /// The columns.
    pub runs: Vec<ComparedRun>,
    /// The settings, versions and machines that differ.
    pub settings: Vec<SettingDifference>,
    /// Figures of whole runs.
    pub run_figures: Vec<FigureComparison>,
    /// The rows, by name.
    pub rows: Vec<RowComparison>,
    /// What a reader must know of single figures.
    pub notes: Vec<String>,
}

/// What stands in a column.
#[derive(Clone, Copy)]
enum Side<'a> {
    Run(&'a Report),
    Paper,
}

impl Comparison {
    /// Compares finished runs, each with the name of its folder, and `with_paper` the paper's figures that their configs carry.
    #[must_use]
    pub fn new(runs: &[(String, Report)], with_paper: bool) -> Self {
        let reports: Vec<&Report> = runs.iter().map(|(_, report)| report).collect();
        let sides = reports.iter().map(|report| Side::Run(report)).chain(with_paper.then_some(Side::Paper));
        let sides: Vec<Side<'_>> = sides.collect();
        let labels: Vec<String> = (0..runs.len()).map(label).chain(with_paper.then(|| PAPER.to_owned())).collect();
        let rows = rows::compare(&sides, &labels);
        let run_figures = figures::of_runs(&sides);
        let mut notes = rows::notes(&rows, &labels);
        notes.extend(rows::other_paper_figures(&reports, &labels).filter(|_| with_paper));
        notes.extend(resumed(&reports, &labels));
        let run = |index: usize| runs.get(index);
        let column = |(index, label): (usize, &String)| ComparedRun {
            label: label.clone(),
            folder: run(index).map(|(folder, _)| folder.clone()),
            experiment: run(index).map(|(_, report)| report.experiment.clone()),
            run: run(index).map(|(_, report)| report.run.clone()),
            simulation: run(index).map(|(_, report)| report.simulation),
            noise: run(index).map(|(_, report)| report.noise()),
        };
        Self {
            runs: labels.iter().enumerate().map(column).collect(),
            settings: settings::differences(&reports),
            run_figures,
            rows,
            notes,
        }
    }
}

/// Returns the name of a run's column: letters, and numbers behind the last one.
fn label(index: usize) -> String {
    u8::try_from(index)
        .ok()
        .filter(|index| *index < 26)
        .map_or_else(|| format!("run {}", index + 1), |index| char::from(b'A' + index).to_string())
}

/// Says which times leave out earlier attempts.
fn resumed<'a>(reports: &'a [&Report], labels: &'a [String]) -> impl Iterator<Item = String> {
    reports.iter().zip(labels).filter_map(|(report, label)| {
        let is_resumed = report.stage_times.iter().any(|stage| stage.resumed_units > 0);
        is_resumed.then(|| {
            format!("{label} was interrupted: the time of earlier attempts is not in its seconds of all stages")
        })
    })
}

#[cfg(test)]
mod tests;
