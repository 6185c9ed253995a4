//! Experiments of SPEED: a checked config, a graph of stages, a run store that resumes, and the paper's table.
//!
//! The way of the data is the order of [`run`]: images, teachers, votes, queries, aggregation and accounting for each
//! row, students, table.

pub mod config;
mod cost;
mod device;
mod environment;
mod error;
pub mod npy;
mod plan;
mod plot;
mod progress;
mod report;
mod runner;
mod stages;
pub mod store;
mod table;

pub use config::{Config, ConfigError, Source};
pub use cost::Cost;
pub use environment::Environment;
pub use error::ExperimentError;
pub use plan::{Plan, PlannedRow, plan};
pub use progress::{Progress, Silent};
pub use report::{Report, ReportRow, StageTime};
pub use runner::{Options, run};
pub use table::Table;
