//! The question that a labelling answers.

use speed_core::{VoteShape, Votes, VotesError};

use super::checked::RowChecks;
use crate::config::{QueryNoise, RowConfig};
use crate::error::ExperimentError;
use crate::stages::context::Context;
use crate::stages::outputs::Outputs;
use crate::stages::queries::{Queries, QueryList, TeacherAnswers};
use crate::stages::truth::Truth;
use crate::stages::votes::CollectedVotes;
use crate::store::Fingerprint;

/// One step of a row's labelling: its queries, its noise, and the teachers' votes.
#[derive(Clone, Copy)]
pub(crate) struct RowQuestion<'a> {
    pub(crate) row: &'a RowConfig,
    /// The noise of this step: of the checks, or of the answers.
    pub(super) noise: QueryNoise,
    /// The places of the queries that are asked, in the list of the row's queries; `None` for all of them.
    pub(super) asked: Option<&'a [usize]>,
    /// Each teacher's answers, teachers x queries of the run, of which the row may answer only the first ones.
    pub(crate) votes: &'a Votes,
    pub(crate) votes_hash: Fingerprint,
    pub(crate) queries: QueryList<'a>,
    pub(crate) truth: Option<&'a Truth<'a>>,
}

impl<'a> RowQuestion<'a> {
    /// Returns the question of a row's answers, by the row's place in the config: all queries, or those that passed its checks.
    pub(super) fn of_row(context: &Context<'a>, index: usize, outputs: &'a Outputs) -> Self {
        let row = &context.config.rows[index];
        let checks = outputs.find::<RowChecks>().and_then(|checks| checks.0.get(&index));
        Self { asked: checks.map(|checks| checks.passed.as_slice()), ..Self::new(context, row, row.noise, outputs) }
    }

    /// Returns the question of a row's checks, if it has any.
    pub(super) fn of_checks(context: &Context<'a>, row: usize, outputs: &'a Outputs) -> Option<Self> {
        let row = &context.config.rows[row];
        row.check.map(|check| Self::new(context, row, check, outputs))
    }

    fn new(context: &Context<'a>, row: &'a RowConfig, noise: QueryNoise, outputs: &'a Outputs) -> Self {
        let (TeacherAnswers(votes), CollectedVotes { hash, .. }) = (outputs.get(), outputs.get());
        let queries = outputs.get::<Queries>().of_row(row);
        Self { row, noise, asked: None, votes, votes_hash: *hash, queries, truth: context.truth }
    }

    pub(super) fn title(&self) -> String {
        format!("{} {}", if self.noise.is_check { "check" } else { "aggregate" }, self.row.name)
    }

    pub(super) fn len(&self) -> usize {
        self.asked.map_or(self.queries.len(), <[usize]>::len)
    }

    /// Returns the place of an asked query in the list of the row's queries.
    pub(super) fn place(&self, query: usize) -> usize {
        self.asked.map_or(query, |asked| asked[query])
    }

    pub(super) fn shape(&self) -> Result<VoteShape, ExperimentError> {
        Ok(self.votes.shape().with_queries(self.len()).map_err(VotesError::from)?)
    }
}
