//! Units of work: their number in the directory of a run, and the work of a shard on its share of them.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

use serde::Serialize;

use super::complete::{identified, identify};
use super::context::Context;
use super::machine;
use super::stage::Stage;
use crate::error::ExperimentError;
use crate::store::{Identity, RunStore, Shard, StageFolder, StageState, unit_meta};

/// The units of a stage of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageUnits {
    /// The stage; all students are one stage here.
    pub stage: String,
    /// Number of finished units.
    pub done: usize,
    /// Number of all units.
    pub of: usize,
    /// True if there may be fewer units: students before there are labels, answers before the checks are done.
    pub at_most: bool,
    /// The numbers, from 0, of the units that are not finished.
    #[serde(skip)]
    pub(crate) missing: Vec<usize>,
}

impl StageUnits {
    pub(super) fn in_stage(run: &Path, stage: &str, of: usize, unit: fn(usize) -> String) -> Self {
        let remains = RunStore::remains_in(run, stage);
        let is_finished = RunStore::is_finished(run, stage);
        Self::count(stage, of, |number| is_finished || remains.folder().join(unit_meta(&unit(number))).exists())
    }

    pub(super) fn count(stage: &str, of: usize, is_done: impl Fn(usize) -> bool) -> Self {
        let missing: Vec<usize> = (0..of).filter(|number| !is_done(*number)).collect();
        Self { stage: stage.to_owned(), done: of - missing.len(), of, at_most: false, missing }
    }
}

/// A shard's units in the stages of one or several runs, and the number of those that are done.
///
/// The units are numbered over all stages of the shard's kind, in order, with the largest possible number of units of each.
/// Settings of a sweep may share a stage; its first occurrence counts, and its other numbers belong to no unit.
pub(crate) struct ShardUnits<'a> {
    shard: &'a Shard,
    /// Kind and fingerprint of the stages whose units are numbered.
    seen: BTreeSet<(String, String)>,
    first: usize,
    pub(crate) units: usize,
    pub(crate) done_here: usize,
}

impl<'a> ShardUnits<'a> {
    pub(crate) fn new(shard: &'a Shard) -> Self {
        Self { shard, seen: BTreeSet::new(), first: 0, units: 0, done_here: 0 }
    }

    pub(crate) fn pass(&mut self, units: usize) {
        self.first += units;
    }

    /// Returns which of the `units` of a stage are the shard's: none if the stage occurred before.
    pub(super) fn own(&mut self, identity: &Identity, units: Range<usize>) -> Vec<usize> {
        if !self.seen.insert((identity.kind.clone(), identity.fingerprint.to_hex())) {
            return Vec::new();
        }
        let own: Vec<usize> = units.filter(|unit| self.shard.has(self.first + unit)).collect();
        self.units += own.len();
        own
    }

    /// Does the shard's units of a stage with `units` units, unless the stage is done. `work` ensures that the given units are
    /// done, and returns how many it did.
    pub(super) fn work_on<S: Stage>(
        &mut self,
        context: &Context<'_>,
        stage: &S,
        units: usize,
        work: impl FnOnce(&StageFolder, &[usize]) -> Result<usize, ExperimentError>,
    ) -> Result<(), ExperimentError> {
        let identity = identify(context, stage)?;
        let own = self.own(&identity, 0..units);
        if own.is_empty() || context.store.recorded(&identity).is_some() {
            return Ok(());
        }
        context.progress.started(stage.facts().name);
        if let StageState::Outstanding(folder) = identified(context, stage, &identity, |it| stage.open(context, it))? {
            if stage.facts().depends_on_machine {
                machine::note(context, &folder)?;
            }
            self.done_here += work(&folder, &own)?;
        }
        context.progress.finished(stage.facts().name, false);
        Ok(())
    }
}
