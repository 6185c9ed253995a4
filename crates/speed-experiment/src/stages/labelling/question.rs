//! The question that a labelling answers.

use speed_core::Votes;

use crate::config::RowConfig;
use crate::stages::context::Context;
use crate::stages::outputs::Outputs;
use crate::stages::queries::{Queries, QueryList, TeacherAnswers};
use crate::stages::truth::Truth;
use crate::stages::votes::CollectedVotes;
use crate::store::Fingerprint;

/// The votes on a row's queries.
#[derive(Clone, Copy)]
pub(crate) struct RowQuestion<'a> {
    pub(crate) row: &'a RowConfig,
    /// Each teacher's answers, teachers x queries of the run, of which the row may answer only the first ones.
    pub(crate) votes: &'a Votes,
    /// The hash of the votes' stage.
    pub(crate) votes_hash: Fingerprint,
    /// The row's queries.
    pub(crate) queries: QueryList<'a>,
    /// The pool's true labels, if known.
    pub(crate) truth: Option<&'a Truth<'a>>,
}

impl<'a> RowQuestion<'a> {
    /// Returns the question of a row, by the row's place in the config.
    pub(super) fn of_row(context: &Context<'a>, row: usize, outputs: &'a Outputs) -> Self {
        let row = &context.config.rows[row];
        let (TeacherAnswers(votes), CollectedVotes { hash, .. }) = (outputs.get(), outputs.get());
        let queries = outputs.get::<Queries>().of_row(row);
        Self { row, votes, votes_hash: *hash, queries, truth: context.truth }
    }
}
