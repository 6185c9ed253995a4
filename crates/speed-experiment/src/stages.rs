//! The stages of a run, in the order of the data flow.

mod account;
mod complete;
mod context;
mod data;
mod divided;
mod labelling;
mod machine;
mod names;
mod queries;
mod sharing;
mod stage;
mod students;
mod teachers;
mod truth;
mod votes;

pub(crate) use account::{AccountStage, Bounds};
pub(crate) use complete::complete;
pub(crate) use context::Context;
pub(crate) use data::{DataStage, Images, facts};
pub(crate) use divided::{Divided, do_share, identity};
pub(crate) use labelling::{Keys, LabellingStage, LabellingTimes, Question, RowLabels, query_unit};
pub(crate) use machine::kinds as kinds_of_machine;
pub(crate) use names::{RowStages, STUDENT, StageName, StageNames};
pub(crate) use queries::{QueriesStage, chosen as chosen_queries, select as select_queries};
pub(crate) use students::{
    Course, EpochAccuracy, Labelled, METRICS, PICTURE, StudentRun, StudentShare, Students, read_epochs,
};
pub(crate) use teachers::{TeachersStage, unit as teacher_unit};
pub(crate) use truth::Truth;
pub(crate) use votes::{CollectedVotes, EnsembleQuality, VotesStage, planned_classes};
