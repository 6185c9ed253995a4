//! The kind of a stage. A new stage is one implementation of [`Kind`] and one entry in [`KINDS`](super::KINDS).

use std::path::Path;

use speed_accountant::QueryBatch;

use super::context::Context;
use super::outputs::Outputs;
use super::stage::StageName;
use super::units::{ShardUnits, StageUnits};
use crate::config::Config;
use crate::cost::{Meter, StageCost};
use crate::error::ExperimentError;
use crate::store::{RunStore, is_called};

/// A stage of the graph of a run.
pub(crate) struct Node {
    pub(crate) kind: &'static dyn Kind,
    /// All students are one node, because only the labels determine their number. Its name is the prefix of theirs.
    pub(crate) name: StageName,
    /// The place in the config of the row that it belongs to, if it belongs to one.
    pub(crate) row: Option<usize>,
}

impl Node {
    /// Says whether `name`, from the command line, selects the stage: its name, or its kind.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        is_called(&self.name, name)
    }

    /// Returns the number of the stage's units.
    pub(crate) fn units(&self, config: &Config) -> usize {
        self.kind.units(config, self.row)
    }
}

/// A kind of stage: its stages in a config, their work, and their cost.
pub(crate) trait Kind: Sync {
    /// Returns its name, which is the name of its only stage, or the prefix of its stages' names.
    fn name(&self) -> &'static str;

    /// Says whether every row with its own labels has a stage of this kind. Otherwise a run has at most one.
    fn is_per_row(&self) -> bool {
        false
    }

    /// Says whether a config has the stage, of `row` if the kind is per row.
    fn is_in(&self, config: &Config, row: Option<usize>) -> bool;

    /// Returns the name of the units of a stage, if shards can do them.
    fn unit_name(&self) -> Option<&'static str> {
        None
    }

    /// Returns the number of units of a stage: the largest possible number if only earlier outputs determine it, and 0
    /// if it has no units in this config.
    fn units(&self, _config: &Config, _row: Option<usize>) -> usize {
        0
    }

    /// Says whether a unit uses one thread, so that more processors speed up several units but not one.
    fn has_serial_units(&self) -> bool {
        true
    }

    /// Says whether the stages of all rows come before the next kind. Otherwise the kinds that are per row are executed row
    /// by row, and a shard of this kind would need the answers of earlier rows.
    fn precedes_all_rows(&self) -> bool {
        false
    }

    /// Returns the charge for the answers of a stage with `classes` classes, or `None` if they are not charged.
    ///
    /// # Errors
    /// If the noise cannot be drawn or accounted for.
    fn charge(&self, _config: &Config, _row: usize, _classes: usize) -> Result<Option<QueryBatch>, ExperimentError> {
        Ok(None)
    }

    /// Says whether shards do its units or read its outputs; false if only the report reads them.
    fn is_needed_by_shards(&self) -> bool {
        true
    }

    /// Completes a stage from the outputs of the earlier stages, and adds its own outputs. A shard only reads finished
    /// stages.
    ///
    /// # Errors
    /// If the stage fails, or is not done in a shard.
    fn complete(&self, context: &Context<'_>, node: &Node, outputs: &mut Outputs) -> Result<(), ExperimentError>;

    /// Does the units of a shard, if the kind has units.
    ///
    /// # Errors
    /// If the work fails; saved units stay.
    fn do_units(
        &self,
        _context: &Context<'_>,
        _node: &Node,
        _outputs: &mut Outputs,
        _shard: &mut ShardUnits<'_>,
    ) -> Result<(), ExperimentError> {
        Ok(())
    }

    /// Says whether a stage is done in the directory `run`, by its record; `earlier` are the stages before it.
    fn is_finished(&self, run: &Path, _config: &Config, node: &Node, _earlier: &[Node]) -> bool {
        RunStore::is_finished(run, &node.name)
    }

    /// Counts the units of a stage in the directory `run`, by their records; `earlier` are the stages before it. `None` for a
    /// stage without units.
    fn count_units(&self, _run: &Path, _config: &Config, _node: &Node, _earlier: &[Node]) -> Option<StageUnits> {
        None
    }

    /// Estimates the time and memory of all stages of this kind.
    ///
    /// # Errors
    /// If a network cannot be trained.
    fn cost(&self, _config: &Config, _meter: &Meter) -> Result<Vec<StageCost>, ExperimentError> {
        Ok(Vec::new())
    }
}
