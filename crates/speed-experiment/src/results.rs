//! Finished results: files of runs and sweeps, and pages. The reports themselves are in [`crate::report`].

mod card;
mod file;
mod models;
mod page;
mod publish;
mod row;
#[cfg(test)]
mod tests;

pub use card::{CardedModel, OF_REPORT, check_card, models_of_card, read_card, task, verify_run_card};
pub use file::{read_report, read_sweep, run_folder, sweep_folder};
pub use models::first_model;
pub(crate) use models::write_models;
pub use page::{missing_for_page, run_page};
pub(crate) use publish::{PublishedQueries, publish, publish_sweep};
pub(crate) use row::report_row;
