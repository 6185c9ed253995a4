//! The page of a run, from its report and the files in its directory.

use std::path::{Path, PathBuf};

use crate::report::{AskedQueries, PageParts, Report, Sheet};

use super::models::model_of;
use crate::config::DataSource;
use crate::error::ExperimentError;
use crate::stages::{METRICS, PICTURE, read_epochs};
use crate::store::{ASKED_PICTURES, ASKED_QUERIES, CHANGED, read_listed, read_stage_file, read_table, table_path};

/// Returns the page of the run in the directory `run`, as HTML. Missing pictures and queries are left out.
///
/// # Errors
/// If one of the run's files is damaged.
pub fn run_page(report: &Report, run: &Path) -> Result<String, ExperimentError> {
    check_students(report, run)?;
    let asked = asked_queries(run)?;
    let sheet = asked.as_ref().map(|asked| sheet(run, asked.pool_images.len())).transpose()?.flatten();
    let parts = PageParts {
        asked: asked.as_ref(),
        sheet: sheet.as_ref(),
        drawn: &|stage| read_stage_file(run, stage, PICTURE),
        model: &|row, repeat| kept_model(report, run, row, repeat),
    };
    Ok(with_epochs(report.clone(), run).to_html(&parts))
}

/// Returns the files that the page of the run in the directory `run` needs and lacks; the page leaves out their
/// content.
pub fn missing_for_page(report: &Report, run: &Path) -> Vec<PathBuf> {
    let pictures = (report.config.data.source != DataSource::None).then_some(ASKED_PICTURES);
    let paths = [ASKED_QUERIES].into_iter().chain(pictures).map(|name| table_path(run, name));
    paths.filter(|path| !path.exists()).collect()
}

/// Checks the files of the students against the records of their stages, if these were kept.
fn check_students(report: &Report, run: &Path) -> Result<(), ExperimentError> {
    for student in report.rows.iter().flat_map(|row| &row.students) {
        for name in [METRICS, PICTURE] {
            read_listed(run, &student.stage, name).map_err(ExperimentError::of_page)?;
        }
    }
    Ok(())
}

/// Returns the path of the model of a row's student, relative to the run's directory, if it exists.
fn kept_model(report: &Report, run: &Path, row: &str, repeat: usize) -> Option<String> {
    let name = model_of(report, row, repeat);
    let is_kept = run.join(&name).symlink_metadata().is_ok_and(|file| file.is_file());
    is_kept.then_some(name)
}

/// Returns the report with its students' results by epoch, which the stored report does not contain.
fn with_epochs(mut report: Report, run: &Path) -> Report {
    for student in report.rows.iter_mut().flat_map(|row| &mut row.students) {
        if student.by_epoch.is_empty() {
            student.by_epoch = read_epochs(run, &student.stage);
        }
    }
    report
}

fn asked_queries(run: &Path) -> Result<Option<AskedQueries>, ExperimentError> {
    let Some(bytes) = read_table(run, ASKED_QUERIES) else { return Ok(None) };
    let asked: Option<AskedQueries> = serde_json::from_slice(&bytes).ok();
    asked.filter(AskedQueries::is_whole).map(Some).ok_or_else(|| damaged(run, ASKED_QUERIES))
}

fn sheet(run: &Path, queries: usize) -> Result<Option<Sheet>, ExperimentError> {
    let Some(png) = read_table(run, ASKED_PICTURES) else { return Ok(None) };
    Sheet::new(&png, queries).map(Some).ok_or_else(|| damaged(run, ASKED_PICTURES))
}

fn damaged(run: &Path, name: &str) -> ExperimentError {
    ExperimentError::of_page((table_path(run, name), CHANGED))
}
