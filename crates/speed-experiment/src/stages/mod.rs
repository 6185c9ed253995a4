//! The stages, in the order in which the data passes them.

mod account;
mod aggregate;
mod data;
mod ledger;
mod queries;
mod students;
mod teachers;
mod votes;

pub(crate) use account::{Accounts, account};
pub(crate) use aggregate::{Aggregate, AggregateTimes, Keys, aggregate};
pub(crate) use data::{Images, load as load_images};
pub(crate) use ledger::{check_forced, statement as ledger_statement};
pub(crate) use queries::select as select_queries;
pub(crate) use students::{Course, Labelling, StudentRun, train as train_students};
pub(crate) use teachers::train as train_teachers;
pub(crate) use votes::{EnsembleQuality, collect as collect_votes};

use serde_json::{Value, json};
use speed_random::Streams;

use crate::ExperimentError;
use crate::config::Config;
use crate::device::Device;
use crate::progress::Progress;
use crate::store::{Fingerprint, RunStore, Stage, StageFolder, StageState};

/// What every stage sees.
pub(crate) struct Context<'a> {
    pub(crate) config: &'a Config,
    pub(crate) store: &'a RunStore,
    pub(crate) streams: Streams,
    pub(crate) threads: usize,
    pub(crate) device: &'a Device,
    pub(crate) progress: &'a dyn Progress,
}

impl Context<'_> {
    /// Runs a stage unless it is done with the same fingerprint: a hash of its name, the version of its code, and its
    /// inputs. `work` returns the names of the outputs that the inputs determine.
    pub(crate) fn stage(
        &self,
        name: &str,
        code_version: u32,
        inputs: &Value,
        work: impl FnOnce(&mut StageFolder) -> Result<Vec<String>, ExperimentError>,
    ) -> Result<Stage, ExperimentError> {
        match self.open_stage(name, code_version, inputs)? {
            StageState::Done(stage) => Ok(stage),
            StageState::Outstanding(mut folder) => {
                let outputs = work(&mut folder)?;
                folder.finish(&outputs)
            }
        }
    }

    /// A stage that is done with the same fingerprint, or its folder to work in.
    pub(crate) fn open_stage(
        &self,
        name: &str,
        code_version: u32,
        inputs: &Value,
    ) -> Result<StageState, ExperimentError> {
        let fingerprint = Fingerprint::of(&json!({ "stage": name, "code": code_version, "inputs": inputs }));
        let state = self.store.stage(name, &fingerprint)?;
        if matches!(state, StageState::Done(_)) {
            self.progress.note(&format!("{name}: done already"));
        }
        Ok(state)
    }
}

/// A row's name as part of a folder name.
pub(crate) fn slug(name: &str) -> String {
    let mapped: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect();
    let parts: Vec<&str> = mapped.split('-').filter(|part| !part.is_empty()).collect();
    parts.join("-")
}
