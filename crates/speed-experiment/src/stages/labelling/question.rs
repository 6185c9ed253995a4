//! The question that a labelling answers.

use speed_core::Votes;

use crate::config::RowConfig;
use crate::stages::context::Context;
use crate::stages::outputs::Outputs;
use crate::stages::queries::{Queries, QueriesAgain, QueryList, TeacherAnswers};
use crate::stages::question_round::QuestionRound;
use crate::stages::truth::Truth;
use crate::stages::votes::CollectedVotes;
use crate::store::Fingerprint;

/// The votes on a row's queries.
#[derive(Clone, Copy)]
pub(crate) struct RowQuestion<'a> {
    pub(crate) row: &'a RowConfig,
    /// The round of the queries.
    pub(crate) round: QuestionRound,
    /// Each teacher's answers, teachers x queries of the round, of which the row may answer only the first ones.
    pub(crate) votes: &'a Votes,
    /// The hash of the votes' stage.
    pub(crate) votes_hash: Fingerprint,
    /// The row's queries.
    pub(crate) queries: QueryList<'a>,
    /// The pool's true labels, if known.
    pub(crate) truth: Option<&'a Truth<'a>>,
}

impl<'a> RowQuestion<'a> {
    /// Returns the question of a row, by the row's place in the config, in a round of questions.
    pub(super) fn of_row(context: &Context<'a>, (index, round): (usize, QuestionRound), outputs: &'a Outputs) -> Self {
        let row = &context.config.rows[index];
        let (TeacherAnswers(first), CollectedVotes { hash, .. }) = (outputs.get(), outputs.get());
        let (votes, queries) = match round {
            QuestionRound::First => (first, outputs.get::<Queries>().of_row(row)),
            QuestionRound::Again => {
                let again = &outputs.get::<QueriesAgain>().0[&index];
                // Without second questions, only the numbers of teachers and classes are used.
                (again.answers.as_ref().map_or(first, |TeacherAnswers(votes)| votes), again.queries.all())
            }
        };
        Self { row, round, votes, votes_hash: *hash, queries, truth: context.truth }
    }
}
