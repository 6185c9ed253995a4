//! The report of a sweep: one table and plots of all its runs.

mod plots;
mod report;
mod tables;

pub use report::{SettingReport, SweepReport};
pub(crate) use tables::NOTES;
