//! The interface of a stage: its name, inputs, code version and output.

use std::fmt;
use std::ops::Deref;

use serde_json::Value;

use super::context::Context;
use crate::error::ExperimentError;
use crate::store::{FinishedStage, Identity, RunStore, StageFolder, StageState};

/// The name of a stage and of its directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StageName(pub(super) String);

impl StageName {
    /// Returns the name of these parts, which are letters and digits.
    pub(super) fn of(parts: &[&str]) -> Self {
        Self(parts.join("-"))
    }
}

impl Deref for StageName {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for StageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The facts about a stage.
pub(crate) struct StageFacts<'a> {
    /// The name of its directory, which is the name of a [`Node`](super::kind::Node).
    pub(super) name: &'a StageName,
    /// The name in its fingerprint. Stages of one kind with the same inputs have the same outputs, even if their
    /// directories have different names.
    pub(super) kind: &'a str,
    /// The version of its code. A new version repeats finished stages.
    pub(super) version: u32,
    /// Whether the kind of machine determines bits of its outputs, and so is one of its inputs.
    pub(super) depends_on_machine: bool,
    /// Whether shards of later stages read its outputs. Shards check such outputs; of other stages they only read the record.
    pub(super) is_read_by_shards: bool,
}

impl<'a> StageFacts<'a> {
    /// Returns the facts that most stages have.
    pub(super) fn new(name: &'a StageName) -> Self {
        Self { name, kind: name, version: 1, depends_on_machine: false, is_read_by_shards: true }
    }
}

/// A stage of a run, which is computed at most once for the same inputs. A value holds the outputs of earlier stages that it
/// needs. [`complete`](super::complete) finds finished work, opens the directory and writes the record.
pub(crate) trait Stage {
    /// The result that later stages use.
    type Output;

    /// Returns its name and everything else that is fixed before it runs.
    fn facts(&self) -> StageFacts<'_>;

    /// Returns everything that determines its outputs.
    ///
    /// # Errors
    /// If the inputs cannot be read.
    fn inputs(&self, context: &Context<'_>) -> Result<Value, ExperimentError>;

    /// Finds the finished stage, or opens its directory for work.
    ///
    /// # Errors
    /// If the directory cannot be written.
    fn open(&self, context: &Context<'_>, identity: &Identity) -> Result<StageState, ExperimentError> {
        let store: &RunStore = context.store;
        store.stage(identity)
    }

    /// Reports that an earlier run did the work.
    fn was_done(&self, _context: &Context<'_>) {}

    /// Does the work in its directory, and returns the names of the files that the inputs determine.
    ///
    /// # Errors
    /// If the work fails. Its files stay in the directory for the next attempt.
    fn run(&self, context: &Context<'_>, folder: &mut StageFolder) -> Result<Vec<String>, ExperimentError>;

    /// Cleans up once the stage is done, in this run or an earlier one.
    ///
    /// # Errors
    /// If files cannot be removed.
    fn clean_up(&self, _context: &Context<'_>, _identity: &Identity) -> Result<(), ExperimentError> {
        Ok(())
    }

    /// Reads the output of the finished stage.
    ///
    /// # Errors
    /// If a file cannot be read.
    fn load(&self, context: &Context<'_>, done: &FinishedStage) -> Result<Self::Output, ExperimentError>;
}
