//! The ways from noisy votes to labels.

use std::time::{Duration, Instant};

use speed_aggregation::paper::{PaperAnswer, PaperArgmax};
use speed_aggregation::{
    Aggregated, AggregationError, Aggregator, ClearText, Encrypted, NoisyVotes, Outcome, processor_time,
};
use speed_core::Circuit;

use super::keys::Keys;
use super::noise::{self, NoisyTeachers};
use super::question::Question;
use crate::config::AggregationKind;
use crate::error::ExperimentError;
use crate::stages::context::Context;

/// A way from votes to labels, with the keys for it.
pub(super) enum Method<'a> {
    /// Votes without noise, in clear text.
    Plurality,
    /// Noisy votes in clear text.
    Clear,
    /// Noisy votes on ciphertexts, with an exact circuit.
    Encrypted(Box<Encrypted>),
    /// Noisy counts, summed in clear text, through the paper's circuit: only the argmax is on ciphertexts.
    Paper(&'a PaperArgmax, Duration),
}

/// The result of labelling a row's queries.
pub(super) struct Labelled {
    /// One label per query; none where no count reached the threshold, or the paper's circuit found no winner or several.
    pub(super) labels: Vec<Option<u8>>,
    /// Those of the clear-text argmax of the same votes.
    pub(super) clear: Vec<Option<u8>>,
    /// Winners, messages and times.
    pub(super) aggregated: Aggregated,
    /// Processor time of the encrypted round.
    pub(super) core_seconds: Option<f64>,
}

impl Labelled {
    /// The result of an exact aggregation.
    fn exact(aggregated: Aggregated, clear: Option<Vec<Option<u8>>>, core_seconds: Option<f64>) -> Self {
        let labels = aggregated.labels();
        Self { clear: clear.unwrap_or_else(|| labels.clone()), labels, aggregated, core_seconds }
    }
}

/// The progress of one row: called after each query.
type OnQuery<'a> = &'a (dyn Fn(usize, Duration) + Sync);

impl<'a> Method<'a> {
    /// Prepares the way that the row asks for.
    ///
    /// # Errors
    /// If there are no parameters for these votes, or no keys.
    pub(super) fn open(
        context: &Context<'_>,
        keys: &'a Keys,
        question: &Question<'_>,
    ) -> Result<Self, ExperimentError> {
        let circuit = match (question.row.aggregation, question.row.circuit) {
            (AggregationKind::NonPrivate, _) => return Ok(Self::Plurality),
            (AggregationKind::Trusted, _) => return Ok(Self::Clear),
            (AggregationKind::Encrypted, Circuit::Paper) => {
                let (paper, key_generation) = keys.paper(context)?;
                return Ok(Self::Paper(paper, *key_generation));
            }
            (AggregationKind::Encrypted, exact) => exact,
        };
        let shape = question.votes.shape();
        let range = noise::range(question)?;
        // A round belongs to one run and row: its label says which.
        let label = format!("{}\n{}", context.config.to_toml(), question.row.name);
        // "No answer" is one more outcome.
        let outcomes = shape.classes() + usize::from(question.row.noise.threshold.is_some());
        let encrypted = keys.encrypted(context, outcomes, range)?;
        let encrypted = encrypted.with_circuit(circuit).map_err(AggregationError::from)?;
        Ok(Self::Encrypted(Box::new(encrypted.with_label(label.as_bytes()))))
    }

    /// Labels the queries.
    ///
    /// # Errors
    /// If noise cannot be drawn, or exceeds its bound.
    pub(super) fn label(
        &self,
        context: &Context<'_>,
        question: &Question<'_>,
        noise: &NoisyTeachers,
    ) -> Result<Labelled, ExperimentError> {
        let Question { row, votes, queries, .. } = *question;
        context.progress.begin(&format!("aggregate {}", row.name), "queries", queries.len() as u64, 0);
        let on_query: OnQuery<'_> = &|_, _| context.progress.advance(1, "");
        let labelled = match self {
            Self::Plurality => {
                let outcomes = queries.iter().map(|&image| Outcome::Label(votes.plurality(image))).collect();
                Labelled::exact(Aggregated { outcomes, ..Aggregated::default() }, None, None)
            }
            Self::Clear => {
                let noisy = noise.votes(context, question)?;
                Labelled::exact(ClearText.aggregate(&noisy, on_query)?, None, None)
            }
            Self::Encrypted(encrypted) => {
                let noisy = noise.votes(context, question)?;
                let clear = ClearText.aggregate(&noisy, &|_, _| {})?.labels();
                let before = processor_time();
                let aggregated = encrypted.aggregate(&noisy, on_query)?;
                Labelled::exact(aggregated, Some(clear), seconds_since(before))
            }
            Self::Paper(paper, key_generation) => {
                let noisy = noise.votes(context, question)?;
                label_with_papers_circuit(context, paper, *key_generation, &noisy, on_query)?
            }
        };
        let given = labelled.labels.iter().flatten().count();
        context.progress.end(&match self {
            _ if given < labelled.labels.len() => {
                format!("{}: {given} labels of {} queries", row.name, labelled.labels.len())
            }
            _ => format!("{}: {given} labels", row.name),
        });
        Ok(labelled)
    }
}

fn label_with_papers_circuit(
    context: &Context<'_>,
    paper: &PaperArgmax,
    key_generation: Duration,
    noisy: &NoisyVotes,
    on_query: OnQuery<'_>,
) -> Result<Labelled, ExperimentError> {
    let clear = ClearText.aggregate(noisy, &|_, _| {})?.labels();
    let (start, before) = (Instant::now(), processor_time());
    let answers = paper.aggregate(noisy, context.threads, on_query)?;
    let aggregated = Aggregated {
        query_times: answers.iter().map(|answer| answer.time).collect(),
        key_generation,
        argmax: start.elapsed(),
        ..Aggregated::default()
    };
    let core_seconds = seconds_since(before);
    let label = |answer: &PaperAnswer| answer.winner().and_then(|winner| u8::try_from(winner).ok());
    Ok(Labelled { labels: answers.iter().map(label).collect(), clear, aggregated, core_seconds })
}

fn seconds_since(before: Option<Duration>) -> Option<f64> {
    Some((processor_time()? - before?).as_secs_f64())
}
