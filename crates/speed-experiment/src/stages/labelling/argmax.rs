//! The methods to compute labels from noisy votes.

use std::time::Duration;

use speed_aggregation::error::AggregationError;
use speed_aggregation::paper::PaperArgmax;
use speed_aggregation::{Aggregated, Aggregator, ClearText, Encrypted, NoisyVotes, Outcome};
use speed_core::{Circuit, VotesError};

use super::keys::RunKeys;
use super::noise::{self, NoisyTeachers};
use super::question::RowQuestion;
use crate::config::AggregationKind;
use crate::error::ExperimentError;
use crate::stages::context::Context;

/// A method to compute labels from noisy votes on ciphertexts, with its keys.
pub(super) enum Method<'a> {
    /// Noisy votes on ciphertexts, with an exact circuit.
    Encrypted(Box<Encrypted>),
    /// Noisy counts summed in clear text, with the paper's circuit: only the argmax is on ciphertexts.
    Paper(&'a PaperArgmax, Duration),
}

#[derive(Default)]
pub(super) struct LabellingOutcome {
    /// One label per asked query, or 0 for a check that reached its threshold; `None` if no count reached the threshold,
    /// without noise also if all votes are empty, or if the paper's circuit found no winner or several.
    pub(super) labels: Vec<Option<u8>>,
    pub(super) clear: Vec<Option<u8>>,
    pub(super) aggregated: Aggregated,
    pub(super) core_seconds: Option<f64>,
}

/// Labels the queries in clear text, by the largest counts of votes or of noisy votes.
pub(super) fn in_clear(
    context: &Context<'_>,
    question: &RowQuestion<'_>,
    noise: &NoisyTeachers,
) -> Result<LabellingOutcome, ExperimentError> {
    let RowQuestion { row, votes, .. } = *question;
    context.progress.begin(&question.title(), "queries", question.len() as u64, 0);
    let aggregated = if question.len() == 0 {
        Aggregated::default()
    } else if row.aggregation == AggregationKind::NonPrivate {
        let outcome = |query| votes.plurality(query).map_or(Outcome::NoAnswer, Outcome::Label);
        let outcomes = (0..question.len()).map(outcome).collect();
        Aggregated { outcomes, ..Aggregated::default() }
    } else {
        ClearText.aggregate(&noise.votes(context, question)?, &|_, _| context.progress.advance(1, ""))?
    };
    let labels = labels(&aggregated);
    Ok(LabellingOutcome { clear: labels.clone(), labels, aggregated, core_seconds: None })
}

/// Returns the label of an outcome, or 0 for a check that reached its threshold.
fn label(outcome: Outcome) -> Option<u8> {
    if outcome == Outcome::Reached { Some(0) } else { outcome.label() }
}

pub(super) fn labels(aggregated: &Aggregated) -> Vec<Option<u8>> {
    aggregated.outcomes.iter().map(|outcome| label(*outcome)).collect()
}

/// The winner of a query on ciphertexts, and its time on its thread.
pub(super) struct Winner {
    pub(super) query: usize,
    pub(super) label: Option<u8>,
    pub(super) time: Duration,
}

/// A callback for the winners of some queries, called as soon as they are known.
pub(super) type OnWinners<'a> = &'a (dyn Fn(&[Winner]) -> Result<(), ExperimentError> + Sync);

impl<'a> Method<'a> {
    pub(super) fn open(
        context: &Context<'_>,
        keys: &'a RunKeys,
        question: &RowQuestion<'_>,
    ) -> Result<Self, ExperimentError> {
        if question.row.circuit == Circuit::Paper {
            let (paper, key_generation) = keys.paper(context)?;
            return Ok(Self::Paper(paper, *key_generation));
        }
        let shape = question.votes.shape();
        let range = noise::range(question)?;
        // The threshold is one more count.
        let candidates = shape.classes() + usize::from(question.noise.threshold.is_some());
        let encrypted = keys.encrypted(context, candidates, range)?;
        let encrypted = encrypted.with_circuit(question.row.circuit).map_err(AggregationError::from)?;
        Ok(Self::Encrypted(Box::new(encrypted)))
    }

    pub(super) fn key_generation(&self) -> Duration {
        match self {
            Self::Encrypted(encrypted) => encrypted.key_generation(),
            Self::Paper(_, key_generation) => *key_generation,
        }
    }

    /// Finds the winners of some queries on ciphertexts, in a separate round. First calls `on_sum` with the times of
    /// encryption and sum.
    pub(super) fn find_winners(
        &self,
        context: &Context<'_>,
        question: &RowQuestion<'_>,
        noisy: &NoisyVotes,
        queries: &[usize],
        on_sum: impl FnOnce(Duration, Duration),
        on_winners: OnWinners<'_>,
    ) -> Result<(), ExperimentError> {
        match self {
            Self::Encrypted(encrypted) => {
                let some = noisy.of_queries(queries).map_err(VotesError::from)?;
                // A round belongs to one run, row, step and set of queries, which its label and its kind identify.
                let round = format!("{}\n{}\n{queries:?}", context.config.to_toml(), question.row.name);
                let encrypted = encrypted.as_ref().clone().with_label(round.as_bytes());
                encrypted.aggregate_in_parts(&some, on_sum, &|outcomes, time| {
                    let winner = |&(query, outcome): &(usize, Outcome)| Winner {
                        query: queries[query],
                        label: label(outcome),
                        time,
                    };
                    on_winners(&outcomes.iter().map(winner).collect::<Vec<_>>())
                })
            }
            Self::Paper(paper, _) => paper.aggregate_queries(noisy, queries, context.threads, &|query, answer| {
                let label = answer.winner().and_then(|winner| u8::try_from(winner).ok());
                on_winners(&[Winner { query, label, time: answer.time }])
            }),
        }
    }
}
