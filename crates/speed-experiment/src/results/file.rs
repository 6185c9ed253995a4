//! The files of finished runs and sweeps: `report.json` and `sweep.json`.

use std::path::{Path, PathBuf};

use crate::report::{
    EnsembleQuality, Environment, Report, ReportRow, SettingReport, StageTime, StudentMethodTitle, SweepReport,
};
use serde::Deserialize;
use speed_accountant::ledger::Statement;
use speed_student::StudentMethod;

use crate::config::RawConfig;
use crate::error::ExperimentError;
use crate::store::{self, SweepStore, report_path};

/// A report as stored.
#[derive(Deserialize)]
pub(super) struct StoredReport {
    experiment: String,
    run: String,
    simulation: bool,
    config: RawConfig,
    handwriting: Option<String>,
    #[serde(default)]
    classes: Vec<String>,
    ensemble: EnsembleQuality,
    rows: Vec<ReportRow>,
    environment: Environment,
    kinds_of_machine: Vec<String>,
    stage_times: Vec<StageTime>,
    ledger: Option<Statement>,
}

impl From<StoredReport> for Report {
    fn from(file: StoredReport) -> Self {
        Self {
            experiment: file.experiment,
            run: file.run,
            simulation: file.simulation,
            handwriting: file.handwriting,
            config: (&file.config).into(),
            classes: file.classes,
            ensemble: file.ensemble,
            rows: file.rows,
            environment: file.environment,
            kinds_of_machine: file.kinds_of_machine,
            stage_times: file.stage_times,
            ledger: file.ledger,
            methods: student_methods(),
        }
    }
}

/// A sweep as stored.
#[derive(Deserialize)]
struct StoredSweep {
    experiment: String,
    sweep: String,
    simulation: bool,
    keys: Vec<String>,
    values: Vec<Vec<String>>,
    config: RawConfig,
    settings: Vec<SettingReport>,
    ledger: Option<Statement>,
    environment: Option<Environment>,
}

impl From<StoredSweep> for SweepReport {
    fn from(file: StoredSweep) -> Self {
        Self {
            experiment: file.experiment,
            sweep: file.sweep,
            simulation: file.simulation,
            keys: file.keys,
            values: file.values,
            config: (&file.config).into(),
            settings: file.settings,
            ledger: file.ledger,
            environment: file.environment,
        }
    }
}

/// Returns the names and titles of all methods of students.
pub(crate) fn student_methods() -> Vec<StudentMethodTitle> {
    let methods = StudentMethod::all().into_iter();
    methods.map(|method| StudentMethodTitle { name: method.name(), title: method.title() }).collect()
}

/// Reads the report of the finished run in the directory `run`.
///
/// # Errors
/// If the report is missing, damaged, or of another version.
pub fn read_report(run: &Path) -> Result<Report, ExperimentError> {
    let path = report_path(run);
    let report: Report = store::read_report::<StoredReport>(&path)?.into();
    report.check().map_err(|error| ExperimentError::from(error).at(path))?;
    Ok(report)
}

/// Reads the report of the finished sweep in the directory `sweep`.
///
/// # Errors
/// If the report is missing, damaged, or of another version.
pub fn read_sweep(sweep: &Path) -> Result<SweepReport, ExperimentError> {
    let path = SweepStore::report_of(sweep);
    let report: SweepReport = store::read_report::<StoredSweep>(&path)?.into();
    report.check().map_err(|error| ExperimentError::from(error).at(path))?;
    Ok(report)
}

/// Returns the directory of a report's run below a directory of results.
#[must_use]
pub fn run_folder(report: &Report, results: &Path) -> PathBuf {
    results.join(&report.experiment).join(&report.run)
}

/// Returns the directory of a sweep's tables below a directory of results.
#[must_use]
pub fn sweep_folder(report: &SweepReport, results: &Path) -> PathBuf {
    SweepStore::folder_of(results, &report.experiment, &report.sweep)
}
