//! The units of a stage in the directory of a run: how many are done, and which processes work on others.

use std::path::Path;

use serde::Serialize;

use crate::store::{RunStore, Worker, unit_meta, workers};

/// The units of a stage of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageUnits {
    /// The stage; all students are one stage here.
    pub stage: String,
    /// Number of finished units.
    pub done: usize,
    /// Number of all units.
    pub of: usize,
    /// True if rows may share some of the units: for students, before there are labels.
    pub at_most: bool,
    /// The units that processes have leased.
    pub working: Vec<Worker>,
}

impl StageUnits {
    /// Counts the files of the units of a stage. Nothing checks the files; a process checks a unit when it uses it.
    pub(super) fn in_stage(run: &Path, name: &str, of: usize, unit: fn(usize) -> String) -> Self {
        let remains = RunStore::remains_in(run, name);
        let exists = |number: &usize| remains.folder().join(unit_meta(&unit(*number))).exists();
        let is_finished = RunStore::is_finished(run, name);
        let done = if is_finished { of } else { (0..of).filter(exists).count() };
        Self { stage: name.to_owned(), done, of, at_most: false, working: workers(remains.folder()) }
    }
}
