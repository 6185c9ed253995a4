//! Experiments of SPEED: a checked config, stages, a run store that resumes, and the paper's table.
//!
//! Its three main uses:
//! - run a config, or resume an interrupted run ([`run`]);
//! - divide a run among machines ([`run_shard`]), or run a config for every combination of some values ([`run_sweep`]);
//! - compare finished runs with each other and with the paper ([`crate::report::Comparison`]).
//!
//! [`run`] processes the data in this order: images, teachers, votes, queries, labels and account of each row,
//! students, table.

pub mod config;
mod cost;
mod device;
mod encoder;
mod environment;
mod error;
mod image_warnings;
mod ledger;
mod list;
mod mapping;
pub mod model;
pub mod npy;
mod options;
mod patients;
mod picture;
mod plan;
mod progress;
pub mod report;
mod results;
mod runner;
mod stages;
mod step;
mod store;
mod sweep;
pub mod training;

pub use config::{Config, Source, Sweep};
pub use cost::{Cost, StageCost};
pub use environment::current_environment;
pub use error::{ExperimentError, found_instead};
pub use list::{ListedState, RunSummary, list_runs};
pub use options::RunOptions;
pub use plan::{Plan, PlannedRow, PlannedStage, PlannedTraining, plan};
pub use progress::{CurrentWork, Event, Part, Progress, RunView, Silent, StageStatus, StageView};
pub use results::{
    OF_REPORT, first_model, missing_for_page, models_of_card, read_card, read_report, read_sweep, run_folder, run_page,
    sweep_folder, task, verify_run_card,
};
pub use runner::{ShardReport, begin_run, check_run_id, has_begun, run, run_shard};
pub use stages::StageUnits;
pub use step::{Step, StepState, Steps};
pub use store::{
    FoundResults, Lock, RunState, RunStatus, Shard, config_path, find_any_run, find_results, find_run, is_finished,
    pages, read_small, report_path, run_in_use, slurm_folder, write_atomic,
};
pub use sweep::{plan_sweep, run_sweep, run_until, sweep_id};

/// The README's examples, compiled and run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
