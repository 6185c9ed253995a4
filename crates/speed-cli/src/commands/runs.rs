//! `speed list` and `speed show`

use std::path::Path;

use speed_experiment::store::list_runs;
use speed_experiment::{ExperimentError, Report, Table};

use super::{Failure, print, print_json};

pub(super) fn list(results: &Path, json: bool) -> Result<(), Failure> {
    if !results.is_dir() {
        let message = "there is no such folder of results".into();
        return Err(ExperimentError::Results { path: results.to_path_buf(), message }.into());
    }
    let runs = list_runs(results);
    if json {
        return print_json(&runs);
    }
    let mut table = Table::new(["run", "state", "stages done", "noise"]);
    for run in &runs {
        table.push(vec![
            run.folder.display().to_string(),
            if run.finished { "finished" } else { "unfinished" }.to_owned(),
            run.stages_done.to_string(),
            if run.simulation { "simulation" } else { "private" }.to_owned(),
        ]);
    }
    print(&table.to_text())
}

pub(super) fn show(run: &Path, json: bool) -> Result<(), Failure> {
    let path = run.join("tables").join("report.json");
    let bytes = std::fs::read(&path).map_err(|error| ExperimentError::Results {
        path: path.clone(),
        message: format!("no finished run here ({error}); `speed list` shows which there are"),
    })?;
    let report: Report = serde_json::from_slice(&bytes).map_err(|error| ExperimentError::Results {
        path,
        message: format!("not a report that this version wrote: {error}"),
    })?;
    if json { print_json(&report) } else { print(&report.to_text()) }
}
