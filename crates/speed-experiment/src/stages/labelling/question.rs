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

/// The votes on a row's queries, and what is asked about them.
#[derive(Clone, Copy)]
pub(crate) struct RowQuestion<'a> {
    pub(crate) row: &'a RowConfig,
    /// The noise of this step: of the checks, or of the answers.
    pub(super) noise: QueryNoise,
    /// The places of the queries that are asked, in the list of the row's queries; `None` for all of them.
    pub(super) asked: Option<&'a [usize]>,
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
    /// Returns the question of a row's answers, by the row's place in the config: the queries that passed its checks, or
    /// all of them.
    pub(super) fn of_row(context: &Context<'a>, row: usize, outputs: &'a Outputs) -> Self {
        let config = &context.config.rows[row];
        let checks = outputs.find::<RowChecks>().and_then(|checks| checks.0.get(&row));
        let asked = checks.map(|checks| checks.passed());
        Self { asked, ..Self::new(context, config, config.noise, outputs.get::<Queries>().of_row(config), outputs) }
    }

    /// Returns the question of a row's checks, if it has any.
    pub(super) fn of_checks(context: &Context<'a>, row: usize, outputs: &'a Outputs) -> Option<Self> {
        let config = &context.config.rows[row];
        let queries = outputs.get::<Queries>().of_row(config);
        config.check.map(|check| Self::new(context, config, check, queries, outputs))
    }

    fn new(
        context: &Context<'a>,
        row: &'a RowConfig,
        noise: QueryNoise,
        queries: QueryList<'a>,
        outputs: &'a Outputs,
    ) -> Self {
        let (TeacherAnswers(votes), CollectedVotes { hash, .. }) = (outputs.get(), outputs.get());
        Self { row, noise, asked: None, votes, votes_hash: *hash, queries, truth: context.truth }
    }

    /// Returns the work in words.
    pub(super) fn title(&self) -> String {
        format!("{} {}", if self.noise.is_check { "check" } else { "aggregate" }, self.row.name)
    }

    /// Returns the number of queries that are asked.
    pub(super) fn len(&self) -> usize {
        self.asked.map_or(self.queries.len(), <[usize]>::len)
    }

    /// Returns the place of an asked query in the list of the row's queries.
    pub(super) fn place(&self, query: usize) -> usize {
        self.asked.map_or(query, |asked| asked[query])
    }

    /// Returns the shape of the votes on the asked queries.
    pub(super) fn shape(&self) -> Result<VoteShape, ExperimentError> {
        Ok(self.votes.shape().with_queries(self.len()).map_err(VotesError::from)?)
    }
}
