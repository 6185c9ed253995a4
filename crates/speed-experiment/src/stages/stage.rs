//! The interface of a stage: its name, inputs, code version and output.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::context::Context;
use crate::error::ExperimentError;
use crate::store::{FinishedStage, Identity, RunStore, StageFolder, StageState};

#[derive(Clone, Copy)]
pub(crate) struct StageFacts<'a> {
    /// The name of its directory, which is the name of a [`Node`](super::kind::Node).
    pub(super) name: &'a str,
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
    pub(super) fn new(name: &'a str) -> Self {
        Self { name, kind: name, version: 1, depends_on_machine: false, is_read_by_shards: true }
    }
}

/// A stage of a run, which is computed at most once for the same inputs. A value holds the outputs of earlier stages that it
/// needs. [`complete`](super::complete) finds finished work, opens the directory and writes the record.
pub(crate) trait Stage {
    type Output;

    /// Returns its name and everything else that is fixed before it runs.
    fn facts(&self) -> StageFacts<'_>;

    /// Returns everything that determines its outputs.
    fn inputs(&self, context: &Context<'_>) -> Result<Value, ExperimentError>;

    /// Finds the finished stage, or opens its directory for work.
    fn open(&self, context: &Context<'_>, identity: &Identity) -> Result<StageState, ExperimentError> {
        let store: &RunStore = context.store;
        store.stage(identity)
    }

    fn was_done(&self, _context: &Context<'_>) {}

    /// Does the work in its directory, and returns the names of the files that the inputs determine. If it fails, its files stay in
    /// the directory for the next attempt.
    fn run(&self, context: &Context<'_>, folder: &mut StageFolder) -> Result<Vec<String>, ExperimentError>;

    /// Cleans up once the stage is done, in this run or an earlier one.
    fn clean_up(&self, _context: &Context<'_>, _identity: &Identity) -> Result<(), ExperimentError> {
        Ok(())
    }

    fn load(&self, context: &Context<'_>, done: &FinishedStage) -> Result<Self::Output, ExperimentError>;
}

/// A stage whose only output is a value in a JSON file.
pub(super) struct JsonStage<'a, W> {
    pub(super) facts: StageFacts<'a>,
    pub(super) file: &'static str,
    pub(super) inputs: Value,
    /// Computes the value.
    pub(super) work: W,
}

impl<T: Serialize + DeserializeOwned, W: Fn() -> Result<T, ExperimentError>> Stage for JsonStage<'_, W> {
    type Output = T;

    fn facts(&self) -> StageFacts<'_> {
        self.facts
    }

    fn inputs(&self, _: &Context<'_>) -> Result<Value, ExperimentError> {
        Ok(self.inputs.clone())
    }

    fn run(&self, _: &Context<'_>, folder: &mut StageFolder) -> Result<Vec<String>, ExperimentError> {
        folder.write_json(self.file, &(self.work)()?)?;
        Ok(vec![self.file.to_owned()])
    }

    fn load(&self, _: &Context<'_>, done: &FinishedStage) -> Result<T, ExperimentError> {
        done.read_json(self.file)
    }
}
