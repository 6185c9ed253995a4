//! The word of a shard that all of its units were done: the same shard then has nothing to do, and says so at once.
//!
//! It only saves time: the run that makes the tables checks everything, whatever is said here.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::atomic::write_json;
use super::fingerprint::{Fingerprint, Identity};
use super::layout::{FINGERPRINT, is_called, shard_path};
use super::program::{Executable, Program};
use super::record::{RECORD, StageRecord};
use super::run::RunStore;
use crate::error::ExperimentError;

/// The word of a shard.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct ShardMark {
    executable: Option<Executable>,
    program: Option<Program>,
    stages: Vec<StageMark>,
}

/// A stage with units of the shard.
#[derive(Serialize, Deserialize)]
pub(crate) struct StageMark {
    /// Its folder below that of the experiment.
    folder: PathBuf,
    fingerprint: Fingerprint,
    /// The files of the shard's units; they need not be there once the stage is done.
    files: Vec<String>,
}

/// Returns the name of the file of all units of a kind.
fn all_of(kind: &str) -> String {
    format!("{kind}-all")
}

impl StageMark {
    /// Marks the files of the shard's units in a stage, which may be another run's.
    pub(crate) fn of(store: &RunStore, identity: &Identity, files: Vec<String>) -> Self {
        let done = store.recorded(identity).map(|stage| stage.folder);
        let folder = done.unwrap_or_else(|| store.remains_of(&identity.name).folder().to_path_buf());
        let folder = folder.strip_prefix(store.experiment()).map_or_else(|_| folder.clone(), Path::to_path_buf);
        Self { folder, fingerprint: identity.fingerprint, files }
    }

    fn holds(&self, experiment: &Path) -> bool {
        let folder = experiment.join(&self.folder);
        let is_of = fs::read_to_string(folder.join(FINGERPRINT)).is_ok_and(|text| text == self.fingerprint.to_hex());
        let is_there = |name: &str| folder.join(name).exists();
        is_of && (is_there(RECORD) || (!self.files.is_empty() && self.files.iter().all(|name| is_there(name))))
    }
}

impl ShardMark {
    /// Writes that the shard's units in these stages are done, into the folder of the run or sweep.
    ///
    /// # Errors
    /// If the disk refuses.
    pub(crate) fn write(run: &Path, shard: &str, stages: Vec<StageMark>) -> Result<(), ExperimentError> {
        super::layout::make_shards_folder(run)?;
        let mark = Self { executable: Executable::current(), program: Some(Program::current().clone()), stages };
        write_json(&shard_path(run, shard), &mark)
    }

    /// Writes that all units of a kind of stage are done in a run, as its records say.
    ///
    /// # Errors
    /// If the disk refuses.
    pub(crate) fn write_all(store: &RunStore, kind: &str) -> Result<(), ExperimentError> {
        let names = store.stage_names().into_iter().filter(|name| is_called(name, kind));
        let marks = names.filter_map(|name| {
            let stage = store.remains_of(&name).folder().to_path_buf();
            let fingerprint = StageRecord::read(&stage)?.fingerprint;
            let folder = stage.strip_prefix(store.experiment()).ok()?.to_path_buf();
            Some(StageMark { folder, fingerprint, files: Vec::new() })
        });
        Self::write(store.folder(), &all_of(kind), marks.collect())
    }

    /// Returns whether a run said that all units of a kind of stage are done, and its records are there.
    pub(crate) fn all_hold(run: &Path, kind: &str) -> bool {
        Self::holds(run, &all_of(kind))
    }

    /// Returns whether the shard was done by this program and its files are there.
    pub(crate) fn holds(run: &Path, shard: &str) -> bool {
        let mark = fs::read(shard_path(run, shard)).ok().and_then(|bytes| serde_json::from_slice::<Self>(&bytes).ok());
        let Some(mark) = mark else { return false };
        let experiment = run.parent().unwrap_or(run);
        let is_of_this_program = (mark.executable.is_some() && mark.executable == Executable::current())
            || mark.program.as_ref() == Some(Program::current());
        is_of_this_program && mark.stages.iter().all(|stage| stage.holds(experiment))
    }
}
