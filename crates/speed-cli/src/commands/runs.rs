//! `speed list` and `speed show`

use std::path::Path;

use serde_json::json;
use speed_core::printable_path;
use speed_experiment::{ExperimentError, Report, ResultsFault, Table, find_run, list_runs};

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

pub(super) fn show(run: &Path, results: &Path, legend: bool, json: bool) -> Result<(), Failure> {
    let folder = find_run(results, run)?;
    let report = Report::read(&folder)?;
    if json { print_json(&report) } else { print(&report_text(&report, &folder, legend)) }
}

/// Returns a run's conditions, the columns that are read first or all with their meaning, and the place of its tables and plots.
pub(super) fn report_text(report: &Report, folder: &Path, legend: bool) -> String {
    let tables = folder.join("tables");
    let names = ["report.md", "table.csv", "students.svg", "epochs.svg", "report.html"];
    let there: Vec<&str> = names.into_iter().filter(|name| tables.join(name).exists()).collect();
    let table = if legend {
        format!("{}\n{}", terminal::table(&report.table_with_times().without_empty_columns()), report.notes())
    } else {
        terminal::table(&report.summary())
    };
    let more = if legend { "" } else { " (every column and what it means: speed show RUN --legend)" };
    format!("{}\n{table}\n{}: {}{more}\n", report.heading(), printable_path(&tables), there.join(", "))
}
