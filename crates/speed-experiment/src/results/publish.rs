//! Writes the tables, plots and page of a finished run or sweep.

use std::path::Path;

use serde_json::json;

use super::file::sweep_folder;
use super::page::run_page;
use crate::error::ExperimentError;
use crate::report::{AskedQueries, Report, SweepReport, Versioned};
use crate::store::{
    ASKED_PICTURES, ASKED_QUERIES, RunStore, json, report_path, sweep_report_path, table_path, write_below,
};

/// The queries of a finished run and, if there are images, a sheet of their pictures.
pub(crate) struct PublishedQueries {
    pub(crate) queries: AskedQueries,
    pub(crate) pictures: Option<Vec<u8>>,
}

/// Writes the files of a report; the report itself is last. If noise protects the answers, only the page is public: the
/// other files have figures of secret votes, and only their owner may read them.
pub(crate) fn publish(store: &RunStore, report: &Report, asked: &PublishedQueries) -> Result<(), ExperimentError> {
    let (run, is_secret) = (store.folder(), report.is_protected());
    let write = |name: &str, bytes: &[u8]| write_below(&table_path(run, name), bytes, is_secret);
    for file in report.files() {
        write(file.name, file.text.as_bytes())?;
    }
    write(ASKED_QUERIES, format!("{}\n", json!(asked.queries)).as_bytes())?;
    if let Some(pictures) = &asked.pictures {
        write(ASKED_PICTURES, pictures)?;
    }
    write_below(&table_path(run, "report.html"), run_page(report, run)?.as_bytes(), false)?;
    write_below(&report_path(run), format!("{:#}\n", json!(Versioned::new(report))).as_bytes(), is_secret)
}

/// Writes the files of a sweep, replacing those of an earlier completion of the same sweep.
pub(crate) fn publish_sweep(report: &SweepReport, results: &Path) -> Result<(), ExperimentError> {
    let (folder, is_secret) = (sweep_folder(report, results), report.is_protected());
    for file in report.files() {
        write_below(&folder.join(file.name), file.text.as_bytes(), is_secret && !file.name.ends_with(".html"))?;
    }
    let path = sweep_report_path(&folder);
    write_below(&path, &json(&path, &Versioned::new(report))?, is_secret)
}
