//! `speed list` and `speed show`

use std::path::Path;

use speed_core::printable_path;
use speed_experiment::{ExperimentError, Report, ResultsFault, Table, list_runs};

use super::{Failure, print, print_json};

pub(super) fn list(results: &Path, json: bool) -> Result<(), Failure> {
    if !results.is_dir() {
        let (path, fault) = (results.to_path_buf(), ResultsFault::NoFolder);
        return Err(ExperimentError::Results { path, fault }.into());
    }
    let runs = list_runs(results);
    if json {
        return print_json(&runs);
    }
    let mut table = Table::new(["run", "state", "stages done", "noise"]);
    for run in &runs {
        table.push(vec![
            printable_path(&run.folder),
            if run.finished { "finished" } else { "unfinished" }.to_owned(),
            run.stages_done.to_string(),
            if run.simulation { "simulation" } else { "private" }.to_owned(),
        ]);
    }
    print(&table.to_text())
}

pub(super) fn show(run: &Path, json: bool) -> Result<(), Failure> {
    let report = Report::read(run)?;
    if json { print_json(&report) } else { print(&report.to_text()) }
}
