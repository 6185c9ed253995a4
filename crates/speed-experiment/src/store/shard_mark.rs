//! The record of a shard that all of its units are done, so that the same shard ends at once if it runs again.
//!
//! It only saves time: the run that writes the tables checks everything regardless of this record.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::atomic::write_json;
use super::fingerprint::{Fingerprint, Identity};
use super::layout::{is_called, shard_path};
use super::program::{Executable, Program};
use super::read::read_small;
use super::record::{RECORD, StageRecord};
use super::remains::StageRemains;
use super::run::RunStore;
use crate::error::ExperimentError;

/// The record of a finished shard.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct ShardMark {
    executable: Option<Executable>,
    program: Option<Program>,
    stages: Vec<StageMark>,
}

/// A stage with units of the shard.
#[derive(Serialize, Deserialize)]
pub(crate) struct StageMark {
    /// The stage's directory, relative to the experiment's directory.
    folder: PathBuf,
    fingerprint: Fingerprint,
    /// The files of the shard's units; they need not exist once the stage is done.
    files: Vec<String>,
}

/// Returns the name of the record for all units of a kind.
fn all_of(kind: &str) -> String {
    format!("{kind}-all")
}

impl StageMark {
    /// Creates the mark of the shard's units in a stage, which may be in another run.
    pub(crate) fn new(store: &RunStore, identity: &Identity, files: Vec<String>) -> Self {
        let done = store.recorded(identity).map(|stage| stage.folder);
        let folder = done.unwrap_or_else(|| store.remains_of(&identity.name).folder().to_path_buf());
        let folder = folder.strip_prefix(store.experiment()).map_or_else(|_| folder.clone(), Path::to_path_buf);
        Self { folder, fingerprint: identity.fingerprint, files }
    }

    /// Creates marks of a run's finished stages with these names, whose outputs the units are based on.
    pub(crate) fn of_done(store: &RunStore, names: impl IntoIterator<Item = String>) -> Vec<Self> {
        let mark = |name: String| {
            let stage = store.remains_of(&name).folder().to_path_buf();
            let fingerprint = StageRecord::read(&stage)?.fingerprint;
            let folder = stage.strip_prefix(store.experiment()).ok()?.to_path_buf();
            Some(Self { folder, fingerprint, files: Vec::new() })
        };
        names.into_iter().filter_map(mark).collect()
    }

    /// Returns whether another mark is of the same stage, regardless of its inputs.
    pub(crate) fn is_of_same_folder(&self, other: &Self) -> bool {
        self.folder == other.folder
    }

    fn holds(&self, experiment: &Path) -> bool {
        let folder = experiment.join(&self.folder);
        let is_of = StageRemains(folder.clone()).is_of(self.fingerprint);
        let is_there = |name: &str| folder.join(name).exists();
        is_of && (is_there(RECORD) || (!self.files.is_empty() && self.files.iter().all(|name| is_there(name))))
    }
}

impl ShardMark {
    /// Records in the directory of the run or sweep that the shard's units in these stages are done.
    ///
    /// # Errors
    /// If the directory cannot be written.
    pub(crate) fn write(run: &Path, shard: &str, stages: Vec<StageMark>) -> Result<(), ExperimentError> {
        super::layout::make_shards_folder(run)?;
        let mark = Self { executable: Executable::current(), program: Some(Program::current().clone()), stages };
        write_json(&shard_path(run, shard), &mark)
    }

    /// Records that all units of a kind of stage are done in a run according to its records, and the stages `before` on
    /// which they are based.
    ///
    /// # Errors
    /// If the directory cannot be written.
    pub(crate) fn write_all(store: &RunStore, kind: &str, before: Vec<String>) -> Result<(), ExperimentError> {
        let names = store.stage_names().into_iter().filter(|name| is_called(name, kind));
        Self::write(store.folder(), &all_of(kind), StageMark::of_done(store, names.chain(before)))
    }

    /// Returns whether a run recorded that all units of a kind of stage are done, and its stage records exist.
    pub(crate) fn all_hold(run: &Path, kind: &str) -> bool {
        Self::holds(run, &all_of(kind))
    }

    /// Returns whether a run recorded this, with any program, for stages that have changed since.
    pub(crate) fn is_outdated(run: &Path, kind: &str) -> bool {
        Self::read(run, &all_of(kind)).is_some_and(|mark| !mark.holds_in(run))
    }

    /// Returns whether the shard was done by this program and its files exist.
    pub(crate) fn holds(run: &Path, shard: &str) -> bool {
        let Some(mark) = Self::read(run, shard) else { return false };
        let is_of_this_program = (mark.executable.is_some() && mark.executable == Executable::current())
            || mark.program.as_ref() == Some(Program::current());
        is_of_this_program && mark.holds_in(run)
    }

    fn read(run: &Path, shard: &str) -> Option<Self> {
        serde_json::from_slice(&read_small(&shard_path(run, shard)).ok()?).ok()
    }

    fn holds_in(&self, run: &Path) -> bool {
        let experiment = run.parent().unwrap_or(run);
        self.stages.iter().all(|stage| stage.holds(experiment))
    }
}
