//! The stages of a run, in the order of the data flow.

mod account;
mod baselines;
mod beliefs;
mod complete;
mod context;
mod data;
mod features;
mod graph;
mod images;
mod kind;
mod labelling;
mod machine;
mod map;
mod outputs;
mod queries;
mod stage;
mod students;
mod teachers;
mod truth;
mod units;
mod votes;

pub(crate) use account::{RowBounds, data_independent, data_independent_party};
pub(crate) use baselines::{RowBaselines, TeachersOnTest};
pub(crate) use context::Context;
pub(crate) use features::is_encoder_of_run;
pub(crate) use graph::{Graph, folder_of_row, kind_with_units};
pub(crate) use images::{ImageFacts, Images, Subjects};
pub(crate) use kind::{Kind, Node, Units};
pub(crate) use labelling::RowLabellings;
pub(crate) use machine::kinds as kinds_of_machine;
pub(crate) use outputs::Outputs;
pub(crate) use queries::{Queries, TeacherAnswers, select as select_queries};
pub(crate) use students::{METRICS, PICTURE, RowStudents, kept_weights, read_epochs};
pub(crate) use teachers::{TEACHERS, is_version_of_teachers};
pub(crate) use truth::Truth;
pub(crate) use units::ShardUnits;
pub use units::StageUnits;
pub(crate) use votes::{CollectedVotes, planned_classes};

/// The kinds of stages, in the order of execution. Consecutive kinds that are per row are executed row by row.
pub(crate) static KINDS: &[&Kind] = &[
    &data::DATA,
    &features::ENCODING,
    &map::POOL_MAPPING,
    &teachers::TEACHER_TRAINING,
    &votes::VOTE_COLLECTION,
    &queries::QUERY_SELECTION,
    &labelling::CHECKING,
    &labelling::LABELLING,
    &account::ACCOUNTING,
    &beliefs::BELIEF_UPDATE,
    &students::STUDENT_TRAINING,
    &baselines::BASELINE_MEASUREMENT,
];
