//! `speed list` and `speed show`

use std::path::Path;

use serde_json::json;
use speed_core::printable_path;
use speed_experiment::{
    ExperimentError, FinishedResults, Report, ResultsFault, SweepReport, Table, find_results, list_runs, pages,
};

use super::{Failure, print, print_json};
use crate::terminal;

pub(super) fn list(results: &Path, json: bool) -> Result<(), Failure> {
    if !results.is_dir() {
        let (path, fault) = (results.to_path_buf(), ResultsFault::NoFolder);
        return Err(ExperimentError::Results { path, fault }.into());
    }
    let runs = list_runs(results);
    if json {
        return print_json(&json!({ "runs": runs }));
    }
    let mut table = Table::new(["run", "state", "stages done", "noise"]);
    for run in &runs {
        table.push(vec![
            printable_path(&run.folder),
            if run.finished { "finished" } else { "unfinished" }.to_owned(),
            run.stages_done.to_string(),
            run.noise.to_string(),
        ]);
    }
    print(&terminal::table(&table))
}

/// The form in which results are shown.
pub(super) enum Shown {
    Text { legend: bool },
    Json,
    Page,
}

pub(super) fn show(name: &Path, results: &Path, form: &Shown) -> Result<(), Failure> {
    match find_results(results, name)? {
        FinishedResults::Run(run) => {
            let report = Report::read(&run)?;
            match form {
                Shown::Text { legend } => print(&report_text(&report, &run, *legend)),
                Shown::Json => print_json(&report),
                Shown::Page => print(&report.to_html(&run)),
            }
        }
        FinishedResults::Sweep(sweep) => {
            let report = SweepReport::read(&sweep)?;
            match form {
                Shown::Text { .. } => print(&sweep_text(&report, &sweep)),
                Shown::Json => print_json(&report),
                Shown::Page => print(&report.to_html()),
            }
        }
    }
}

/// Returns the comparison of a sweep for a terminal, and where the rest is.
pub(super) fn sweep_text(report: &SweepReport, folder: &Path) -> String {
    let (table, folder) = (terminal::table(&report.table()), printable_path(folder));
    format!("{}\n{table}\ntables, plots and page: {folder}\n", report.conditions())
}

/// Returns a report for a terminal: its conditions, the columns that come first, and where the rest is.
pub(super) fn report_text(report: &Report, run: &Path, legend: bool) -> String {
    let summary = report.summary();
    let mut below = String::new();
    if legend {
        below.push_str(&report.legend());
    } else if summary.columns().iter().any(|head| head.starts_with('ε')) {
        below.push_str("ε holds whatever the votes are and may be published; --legend explains every column.\n");
    }
    let pages: Vec<String> = pages(run).iter().map(|page| printable_path(page)).collect();
    if !pages.is_empty() {
        below.push_str(&format!("All columns, claims, plots: {}\n", pages.join(" ")));
    }
    format!("{}\n{}\n{}", terminal::text(&report.heading()), terminal::table(&summary), terminal::text(&below))
}
