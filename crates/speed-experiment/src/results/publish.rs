//! The files of finished runs and sweeps: tables, plots, pages and reports (`report.json`, `sweep.json`).

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::config::DataSource;
use crate::error::ExperimentError;
use crate::report::{AskedQueries, Report, Sheet, SweepReport, Versioned};
use crate::stages::{METRICS, PICTURE, folder_of_row, read_epochs};
use crate::store::{
    self, ASKED_PICTURES, ASKED_QUERIES, CHANGED, json, model_name, read_listed, read_stage_file, read_table,
    report_path, sweep_report_path, table_path, write_below,
};

/// Writes the files of the report of the run in the directory `run`, with its queries and, if there are images, a sheet of their
/// pictures; the report itself is last and marks the run as finished. If noise protects the answers, only
/// the page is public: the other files have figures of secret votes, and only their owner may read them.
pub(crate) fn publish(
    run: &Path,
    report: &Report,
    asked: &AskedQueries,
    pictures: Option<&[u8]>,
) -> Result<(), ExperimentError> {
    let is_secret = report.is_protected();
    let write = |name: &str, bytes: &[u8]| write_below(&table_path(run, name), bytes, is_secret);
    for (name, text) in report.files() {
        write(name, text.as_bytes())?;
    }
    write(ASKED_QUERIES, format!("{}\n", json!(asked)).as_bytes())?;
    if let Some(pictures) = pictures {
        write(ASKED_PICTURES, pictures)?;
    }
    write_below(&table_path(run, "report.html"), run_page(report, run)?.as_bytes(), false)?;
    write_below(&report_path(run), format!("{:#}\n", json!(Versioned::new(report))).as_bytes(), is_secret)
}

/// Writes the files of a sweep, replacing those of an earlier completion of the same sweep.
pub(crate) fn publish_sweep(report: &SweepReport, results: &Path) -> Result<(), ExperimentError> {
    let (folder, is_secret) = (sweep_folder(report, results), report.is_protected());
    for (name, text) in report.files() {
        write_below(&folder.join(name), text.as_bytes(), is_secret && !name.ends_with(".html"))?;
    }
    let path = sweep_report_path(&folder);
    write_below(&path, &json(&path, &Versioned::new(report))?, is_secret)
}

/// Reads the report of the finished run in the directory `run`.
///
/// # Errors
/// If the report is missing, damaged, or of another version.
pub fn read_report(run: &Path) -> Result<Report, ExperimentError> {
    let path = report_path(run);
    let report: Report = store::read_report(&path)?;
    report.check().map_err(|error| error.at(path))?;
    Ok(report)
}

/// Reads the report of the finished sweep in the directory `sweep`.
///
/// # Errors
/// If the report is missing, damaged, or of another version.
pub fn read_sweep(sweep: &Path) -> Result<SweepReport, ExperimentError> {
    let path = sweep_report_path(sweep);
    let report: SweepReport = store::read_report(&path)?;
    report.check().map_err(|error| error.at(path))?;
    Ok(report)
}

/// Returns the directory of a report's run below a directory of results.
pub fn run_folder(report: &Report, results: &Path) -> PathBuf {
    results.join(&report.experiment).join(&report.run)
}

/// Returns the directory of a sweep's tables below a directory of results.
pub fn sweep_folder(report: &SweepReport, results: &Path) -> PathBuf {
    store::sweep_folder(results, &report.experiment, &report.sweep)
}

/// Returns the path of the model of a row's student, relative to the run's directory.
pub(super) fn model_of(report: &Report, row: &str, repeat: usize) -> String {
    model_name(&folder_of_row(row, report.rows.iter().map(|row| row.name.as_str())), repeat)
}

/// Returns the page of the run in the directory `run`, as HTML. Missing pictures and queries are left out.
///
/// # Errors
/// If one of the run's files is damaged.
pub fn run_page(report: &Report, run: &Path) -> Result<String, ExperimentError> {
    for student in report.rows.iter().flat_map(|row| &row.students) {
        for name in [METRICS, PICTURE] {
            read_listed(run, &student.stage, name).map_err(ExperimentError::of_page)?;
        }
    }
    let asked = asked_queries(run)?;
    let sheet = asked.as_ref().map(|asked| sheet(run, asked.pool_images.len())).transpose()?.flatten();
    let drawn = |stage: &str| read_stage_file(run, stage, PICTURE);
    let kept_model = |row: &str, repeat| {
        let name = model_of(report, row, repeat);
        let is_kept = run.join(&name).symlink_metadata().is_ok_and(|file| file.is_file());
        is_kept.then_some(name)
    };
    // The stored report does not contain the students' results by epoch.
    let mut report = report.clone();
    for student in report.rows.iter_mut().flat_map(|row| &mut row.students) {
        if student.by_epoch.is_empty() {
            student.by_epoch = read_epochs(run, &student.stage);
        }
    }
    Ok(report.to_html(asked.as_ref(), sheet.as_ref(), drawn, kept_model))
}

/// Returns the files that the page of the run in the directory `run` needs and lacks; the page leaves out their
/// content.
pub fn missing_for_page(report: &Report, run: &Path) -> Vec<PathBuf> {
    let pictures = (report.config.data.source != DataSource::None).then_some(ASKED_PICTURES);
    let paths = [ASKED_QUERIES].into_iter().chain(pictures).map(|name| table_path(run, name));
    paths.filter(|path| !path.exists()).collect()
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
