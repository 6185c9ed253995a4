//! Slurm: its programs, the scripts that it runs, and the record of the submitted jobs.

mod jobs;
mod programs;
mod quote;
mod script;

pub(crate) use jobs::{Jobs, Submitted, log_name};
pub(crate) use programs::{Seen, SlurmError, accounted, cancel, queue, submit};
pub(crate) use quote::quoted;
pub(crate) use script::{JobCommand, Needs, Script, ranges};
