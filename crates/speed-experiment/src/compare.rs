//! Comparison of finished runs with each other and with the paper: the settings that differ, and the differences of
//! their figures.

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

/// A compared run, or the paper.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ComparedRun {
    /// Its column: `A`, `B`, ..., or `paper`.
    pub label: String,
    /// The run's folder as given; `None` for the paper.
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

/// The content of a column.
#[derive(Clone, Copy)]
enum Side<'a> {
    Run(&'a Report),
    Paper,
}

impl Comparison {
    /// Compares finished runs, each with the name of its folder; `with_paper` adds the paper's figures from their
    /// configs.
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

/// Returns the name of a run's column: a letter, or a number after the last letter.
fn label(index: usize) -> String {
    u8::try_from(index)
        .ok()
        .filter(|index| *index < 26)
        .map_or_else(|| format!("run {}", index + 1), |index| char::from(b'A' + index).to_string())
}

/// Notes the runs whose times exclude earlier attempts.
fn resumed<'a>(reports: &'a [&Report], labels: &'a [String]) -> impl Iterator<Item = String> {
    reports.iter().zip(labels).filter_map(|(report, label)| {
        let is_resumed = report.stage_times.iter().any(|stage| stage.resumed_units > 0);
        is_resumed.then(|| {
            format!("{label} was interrupted: the time of earlier attempts is not included in \"all stages s\"")
        })
    })
}

#[cfg(test)]
mod tests;
