//! Comparison of finished runs with each other and with the paper: the settings that differ, and the differences of
//! their figures.

mod figures;
mod rows;
mod settings;
mod spread;
mod text;

use serde::Serialize;

pub use figures::{ClaimDifference, FigureComparison, Measure};
pub use rows::RowComparison;
pub use settings::SettingDifference;
pub use spread::{Difference, WithoutSpread};

use crate::report::run::{FROM_PUBLIC_DATA, Report, RunNoise};

/// A compared run, or the paper.
#[derive(Clone, Debug, Serialize)]
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
pub struct Comparison {
    /// The columns.
    pub runs: Vec<ComparedRun>,
    /// The settings, versions and machines that differ.
    pub settings: Vec<SettingDifference>,
    /// The figures that a run has once; `rows` has the figures of each row.
    pub run_figures: Vec<FigureComparison>,
    /// The rows, by name.
    pub rows: Vec<RowComparison>,
    /// Notes on single figures.
    pub notes: Vec<String>,
}

impl Comparison {
    /// Compares finished runs, each with the name of its directory; `with_paper` adds the paper's figures from their
    /// configs. Comparisons are shown to others, so runs with real noise appear [without their secret figures](Report::for_anyone).
    pub fn new(runs: &[(String, Report)], with_paper: bool) -> Self {
        let public: Vec<Report> = runs.iter().map(|(_, report)| report.for_anyone()).collect();
        let reports: Vec<&Report> = public.iter().collect();
        let labels: Vec<String> =
            (0..runs.len()).map(label).chain(with_paper.then(|| rows::PAPER.to_owned())).collect();
        let rows = rows::compare(&reports, &labels);
        let mut notes = rows::notes(&rows, &labels);
        notes.extend(rows::other_paper_figures(&reports, &labels).filter(|_| with_paper));
        for (report, label) in reports.iter().zip(&labels) {
            if report.stage_times.iter().any(|stage| stage.resumed_units > 0) {
                notes.push(format!(
                    "{label} was interrupted: the time of earlier attempts is not included in \"all stages s\""
                ));
            }
        }
        notes.extend(reports.iter().any(|report| report.encoder.is_some()).then(|| FROM_PUBLIC_DATA.to_owned()));
        for ((_, report), label) in runs.iter().zip(&labels) {
            let rows = report.left_out_rows();
            if !rows.is_empty() {
                let rows = rows.join(", ");
                notes.push(format!(
                    "{label} has rows that no finite data-independent claim covers, which are left out: {rows}"
                ));
            }
        }
        let column = |(index, label): (usize, &String)| {
            let run = runs.get(index);
            ComparedRun {
                label: label.clone(),
                folder: run.map(|(folder, _)| folder.clone()),
                experiment: run.map(|(_, report)| report.experiment.clone()),
                run: run.map(|(_, report)| report.run.clone()),
                simulation: run.map(|(_, report)| report.simulation),
                // Rows without noise may be left out, so this is the noise of the complete report.
                noise: run.map(|(_, report)| report.noise()),
            }
        };
        Self {
            runs: labels.iter().enumerate().map(column).collect(),
            settings: settings::differences(&reports),
            run_figures: figures::of_runs(&reports, labels.len()),
            rows,
            notes,
        }
    }
}

/// Returns the name of a run's column: a letter, or a number after the last letter.
fn label(index: usize) -> String {
    match u8::try_from(index) {
        Ok(letter @ ..26) => char::from(b'A' + letter).to_string(),
        _ => format!("run {}", index + 1),
    }
}
