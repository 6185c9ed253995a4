//! The files of finished runs and sweeps: `report.json` and `sweep.json`.

use std::path::{Path, PathBuf};

use crate::error::ExperimentError;
use crate::report::{Report, SweepReport};
use crate::store::{self, report_path, sweep_report_path};

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
