//! The units of a shard in the stages of one or several runs.

use std::collections::BTreeSet;

use super::context::Context;
use super::divided::{Divided, do_share, identity};
use crate::error::ExperimentError;
use crate::store::{Identity, StageMark};

/// Numbers the units of a shard's stages, and records the units that are done.
///
/// Of units 0, 1, 2, ... the shard has those with remainder `number - 1` modulo `of`. Settings of a sweep may share
/// stages; the units of a shared stage are numbered once.
pub(crate) struct ShardUnits {
    /// The number of the shard, from 1.
    number: usize,
    /// The number of all shards.
    of: usize,
    /// Kind and fingerprint of the stages whose units are numbered.
    seen: BTreeSet<(String, String)>,
    /// The number of the next unit.
    next: usize,
    /// Number of units of the shard.
    pub(crate) units: usize,
    /// Number of units that this process did.
    pub(crate) done_here: usize,
    /// The stages with units of the shard.
    pub(crate) marks: Vec<StageMark>,
}

impl ShardUnits {
    pub(crate) fn new(number: usize, of: usize) -> Self {
        Self { number, of, seen: BTreeSet::new(), next: 0, units: 0, done_here: 0, marks: Vec::new() }
    }

    /// Does the shard's units of a stage.
    ///
    /// # Errors
    /// If the work fails; saved units stay.
    pub(super) fn divide<S: Divided>(&mut self, context: &Context<'_>, stage: &S) -> Result<(), ExperimentError> {
        let identity = identity(context, stage)?;
        let mine = self.number(&identity, stage.units(context));
        if mine.is_empty() {
            return Ok(());
        }
        let (done_here, identity) = do_share(context, stage, identity, &mine)?;
        self.done_here += done_here;
        let files = mine.iter().flat_map(|&unit| stage.files(unit)).collect();
        self.marks.push(StageMark::new(context.store, &identity, files));
        Ok(())
    }

    /// Numbers the units of a stage, and returns the shard's units: none if the stage was numbered before.
    pub(super) fn number(&mut self, identity: &Identity, units: usize) -> Vec<usize> {
        if !self.seen.insert((identity.kind.clone(), identity.fingerprint.to_hex())) {
            return Vec::new();
        }
        let mine: Vec<usize> = (0..units).filter(|unit| (self.next + unit) % self.of == self.number - 1).collect();
        self.next += units;
        self.units += mine.len();
        mine
    }
}
