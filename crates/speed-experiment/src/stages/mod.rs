//! The stages, in the order in which the data passes them.

mod account;
mod aggregate;
mod arithmetic;
mod data;
mod ledger;
mod queries;
mod students;
mod teachers;
mod votes;

pub(crate) use account::{Accounts, account};
pub(crate) use aggregate::{Aggregate, AggregateTimes, Keys, aggregate};
pub(crate) use arithmetic::kinds as kinds_of_machine;
pub(crate) use data::{Images, load as load_images, record as record_images};
pub(crate) use ledger::{
    FILE as LEDGER, check as check_ledger, check_forced, event, limit as budget, statement as ledger_statement,
};
pub(crate) use queries::select as select_queries;
pub(crate) use students::{Course, Labelling, StudentRun, train as train_students};
pub(crate) use teachers::train as train_teachers;
pub(crate) use votes::{EnsembleQuality, collect as collect_votes};

use serde_json::{Value, json};
use speed_random::Streams;

use crate::ExperimentError;
use crate::config::{Config, RowConfig};
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
    /// This machine's kind, as far as the bits of trainings tell.
    pub(crate) arithmetic: &'a str,
    /// Whether work that another kind of machine began is gone on with.
    pub(crate) mix_machines: bool,
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
        let fingerprint = fingerprint(name, code_version, inputs);
        let state = self.store.stage(name, name, &fingerprint, &|_| None)?;
        if matches!(state, StageState::Done(_)) {
            self.progress.note(&format!("{name}: done already"));
        }
        Ok(state)
    }
}

/// A hash of what a stage is made from.
pub(crate) fn fingerprint(stage: &str, code_version: u32, inputs: &Value) -> Fingerprint {
    Fingerprint::of(&json!({ "stage": stage, "code": code_version, "inputs": inputs }))
}

/// The name of a row's stage of a `kind`, a folder of its own: the row's name in letters that every file system has, and a
/// part of its digest where another row has the same letters, or where there are none.
pub(crate) fn stage_of_row(kind: &str, config: &Config, row: &RowConfig) -> String {
    let own = slug(&row.name);
    let is_shared = config.row.iter().any(|other| other.name != row.name && slug(&other.name) == own);
    if is_shared || own.is_empty() {
        let digest = Fingerprint::of_bytes(row.name.as_bytes());
        let parts = [kind, &own, &digest.short()[..8]];
        return parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-");
    }
    format!("{kind}-{own}")
}

fn slug(name: &str) -> String {
    let mapped: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect();
    let parts: Vec<&str> = mapped.split('-').filter(|part| !part.is_empty()).collect();
    parts.join("-")
}
