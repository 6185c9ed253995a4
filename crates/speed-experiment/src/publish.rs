//! The tables and plots of a finished run.

use serde_json::json;

use crate::error::ExperimentError;
use crate::report::{AskedQueries, Report, ReportRow};
use crate::store::{ASKED_PICTURES, ASKED_QUERIES, RunStore};

/// The queries of a finished run and, if there are images, a sheet of their pictures.
pub(crate) struct PublishedQueries {
    pub(crate) queries: AskedQueries,
    pub(crate) pictures: Option<Vec<u8>>,
}

/// Writes the tables: `table.*` holds the part that config and seed determine; `report.*` also contains times and
/// machine.
///
/// # Errors
/// If a file cannot be written.
pub(crate) fn publish(store: &RunStore, report: &Report, asked: &PublishedQueries) -> Result<(), ExperimentError> {
    let table = report.table();
    store.write_table("table.md", table.to_markdown().as_bytes())?;
    store.write_table("table.csv", table.to_csv().as_bytes())?;
    store.write_table("students.csv", report.students().to_csv().as_bytes())?;
    if let Some(plot) = report.strip_plot() {
        store.write_table("students.svg", plot.as_bytes())?;
    }
    store.write_table("epochs.csv", report.students_by_epoch().to_csv().as_bytes())?;
    if let Some(plot) = report.epochs_plot() {
        store.write_table("epochs.svg", plot.as_bytes())?;
    }
    let rows: Vec<ReportRow> = report.rows.iter().map(ReportRow::without_times).collect();
    let rows = json!({ "simulation": report.simulation, "ensemble": report.ensemble, "rows": rows });
    store.write_table("table.json", format!("{rows:#}\n").as_bytes())?;
    store.write_table("report.md", report.to_markdown().as_bytes())?;
    store.write_table("report.csv", report.table_with_times().to_csv().as_bytes())?;
    store.write_table(ASKED_QUERIES, format!("{}\n", json!(asked.queries)).as_bytes())?;
    if let Some(pictures) = &asked.pictures {
        store.write_table(ASKED_PICTURES, pictures)?;
    }
    store.write_table("report.html", report.to_html(store.folder())?.as_bytes())?;
    store.write_report(format!("{:#}\n", json!(report)).as_bytes())
}
