//! Comparison of finished runs with each other and with the paper: the settings that differ, and the differences of
//! their figures.

mod claims;
mod comparison;
mod figures;
mod rows;
mod settings;
mod side;
mod spread;
mod text;

use self::side::{PAPER, Side};
pub use claims::ClaimDifference;
pub use comparison::{ComparedRun, Comparison};
pub use figures::{Figure, FigureComparison, Measure};
pub use rows::RowComparison;
pub use settings::SettingDifference;
pub use spread::{Difference, WithoutSpread};

use crate::report::encoder::FROM_PUBLIC_DATA;
use crate::report::run::Report;

impl Comparison {
    /// Compares finished runs, each with the name of its directory; `with_paper` adds the paper's figures from their
    /// configs. Comparisons are shown to others, so runs with real noise appear [without their secret figures](Report::for_anyone).
    pub fn new(runs: &[(String, Report)], with_paper: bool) -> Self {
        // Rows without noise may be left out, so a run's kind of noise is that of the complete report.
        let noise: Vec<_> = runs.iter().map(|(_, report)| report.noise()).collect();
        let left_out: Vec<Vec<&str>> = runs.iter().map(|(_, report)| report.left_out_rows()).collect();
        let public: Vec<(&String, Report)> = runs.iter().map(|(name, report)| (name, report.for_anyone())).collect();
        let runs = &public;
        let reports: Vec<&Report> = runs.iter().map(|(_, report)| report).collect();
        let sides = reports.iter().map(|report| Side::Run(report)).chain(with_paper.then_some(Side::Paper));
        let sides: Vec<Side<'_>> = sides.collect();
        let labels: Vec<String> = (0..runs.len()).map(label).chain(with_paper.then(|| PAPER.to_owned())).collect();
        let rows = rows::compare(&sides, &labels);
        let run_figures = figures::of_runs(&sides);
        let mut notes = rows::notes(&rows, &labels);
        notes.extend(rows::other_paper_figures(&reports, &labels).filter(|_| with_paper));
        notes.extend(resumed(&reports, &labels));
        notes.extend(reports.iter().any(|report| report.encoder.is_some()).then(|| FROM_PUBLIC_DATA.to_owned()));
        notes.extend(labels.iter().zip(&left_out).filter(|(_, rows)| !rows.is_empty()).map(|(label, rows)| {
            format!(
                "{label} has rows that no finite data-independent claim covers, which are left out: {}",
                rows.join(", ")
            )
        }));
        let run = |index: usize| runs.get(index);
        let column = |(index, label): (usize, &String)| ComparedRun {
            label: label.clone(),
            folder: run(index).map(|(folder, _)| (*folder).clone()),
            experiment: run(index).map(|(_, report)| report.experiment.clone()),
            run: run(index).map(|(_, report)| report.run.clone()),
            simulation: run(index).map(|(_, report)| report.simulation),
            noise: noise.get(index).copied(),
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
