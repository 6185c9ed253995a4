//! The stages of a run, in the order of the data flow.

mod account;
mod baselines;
mod complete;
mod context;
mod data;
mod divided;
mod graph;
mod images;
mod kind;
mod labelling;
mod machine;
mod outputs;
mod queries;
mod shard_units;
mod sharing;
mod stage;
mod students;
mod teachers;
mod truth;
mod units;
mod votes;

pub(crate) use account::{Bounds, RowBounds};
pub(crate) use baselines::{RowBaselines, TeachersOnTest};
pub(crate) use context::Context;
pub(crate) use graph::{Graph, KINDS, divided_kind};
pub(crate) use images::{Images, facts, shape_and_classes};
pub(crate) use kind::{Kind, Node};
pub(crate) use labelling::{RowLabellings, RowLabels};
pub(crate) use machine::kinds as kinds_of_machine;
pub(crate) use outputs::Outputs;
pub(crate) use queries::{Queries, select as select_queries};
pub(crate) use shard_units::ShardUnits;
pub(crate) use students::{METRICS, MODEL, PICTURE, RowStudents, read_epochs};
pub(crate) use truth::Truth;
pub use units::StageUnits;
pub(crate) use votes::{CollectedVotes, planned_classes};
