//! The kind of a stage. A new stage is one [`Kind`] and one entry in [`KINDS`](super::KINDS).

use std::path::Path;

use speed_accountant::QueryBatch;

use super::context::Context;
use super::outputs::Outputs;
use super::units::{ShardUnits, StageUnits};
use crate::config::Config;
use crate::cost::{Meter, StageCost};
use crate::error::ExperimentError;
use crate::store::{RunStore, is_called};

pub(crate) struct Node {
    pub(crate) kind: &'static Kind,
    /// All students are one node, because only the labels determine their number. Its name is the prefix of theirs.
    pub(crate) name: String,
    /// The place in the config of the row that it belongs to, if it belongs to one.
    pub(crate) row: Option<usize>,
}

impl Node {
    /// Says whether `name`, from the command line, selects the stage: its name, or its kind.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        is_called(&self.name, name)
    }

    pub(crate) fn units(&self, config: &Config) -> usize {
        self.kind.units.as_ref().map_or(0, |units| (units.count)(config, self.row))
    }
}

type Done = Result<(), ExperimentError>;

/// A kind of stage: its stages in a config, their work, and their cost. The function `complete` completes a stage from the outputs of the
/// earlier stages, and adds its own outputs; in a shard it only reads finished stages.
pub(crate) struct Kind {
    /// The name of its only stage, or the prefix of its stages' names.
    pub(crate) name: &'static str,
    pub(crate) is_in: fn(&Config, Option<usize>) -> bool,
    pub(crate) complete: fn(&Context<'_>, &Node, &mut Outputs) -> Done,
    /// Whether every row with its own labels has a stage of this kind. Otherwise a run has at most one.
    pub(crate) is_per_row: bool,
    /// Whether the stages of all rows come before the next kind. Otherwise the kinds that are per row are executed row by
    /// row, and a shard of this kind would need the answers of earlier rows.
    pub(crate) precedes_all_rows: bool,
    /// Whether shards do its units or read its outputs; false if only the report reads them.
    pub(crate) is_needed_by_shards: bool,
    /// Whether a stage is done in the directory of a run, by its record, after the earlier stages.
    pub(crate) is_finished: fn(&Path, &Config, &Node, &[Node]) -> bool,
    /// The units of its stages, if shards can do them.
    pub(crate) units: Option<Units>,
    /// The charge for the answers of a row's stage with a number of classes, or `None` if they are not charged.
    pub(crate) charge: fn(&Config, usize, usize) -> Result<Option<QueryBatch>, ExperimentError>,
    pub(crate) cost: fn(&Config, &Meter) -> Result<Vec<StageCost>, ExperimentError>,
}

pub(crate) struct Units {
    pub(crate) name: &'static str,
    /// The number of units of a stage: the largest possible number if only earlier outputs determine it, and 0 if it has no
    /// units in this config.
    pub(crate) count: fn(&Config, Option<usize>) -> usize,
    /// Whether a unit uses one thread, so that more processors speed up several units but not one.
    pub(crate) are_serial: bool,
    /// Does the units of a shard. If it fails, saved units stay.
    pub(crate) work: fn(&Context<'_>, &Node, &mut Outputs, &mut ShardUnits<'_>) -> Done,
    /// Counts the units of a stage in the directory of a run, by their records, after the earlier stages; `None` for a stage
    /// without units.
    pub(crate) found: fn(&Path, &Config, &Node, &[Node]) -> Option<StageUnits>,
}

impl Kind {
    /// Creates a kind with at most one stage in a run, without units, charges and noticeable cost.
    pub(super) const fn new(
        name: &'static str,
        is_in: fn(&Config, Option<usize>) -> bool,
        complete: fn(&Context<'_>, &Node, &mut Outputs) -> Done,
    ) -> Self {
        Self {
            name,
            is_in,
            complete,
            is_per_row: false,
            precedes_all_rows: false,
            is_needed_by_shards: true,
            is_finished: |run, _, node, _| RunStore::is_finished(run, &node.name),
            units: None,
            charge: |_, _, _| Ok(None),
            cost: |_, _| Ok(Vec::new()),
        }
    }
}
