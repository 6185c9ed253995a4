//! Finished results: files of runs and sweeps, and pages. The reports themselves are in [`crate::report`].

mod models;
mod publish;
mod row;
#[cfg(test)]
mod tests;

pub(crate) use models::write_models;
pub use models::{OF_REPORT, first_model, models_of_card, read_card, task, verify_run_card};
pub use publish::{missing_for_page, read_report, read_sweep, run_folder, run_page, sweep_folder};
pub(crate) use publish::{publish, publish_sweep};
pub(crate) use row::report_row;
