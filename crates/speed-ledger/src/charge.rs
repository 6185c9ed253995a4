//! Queries as a ledger records them.

use serde::{Deserialize, Serialize};
use speed_accountant::{Budget, PrivacyEvent, QueryBatch};
use speed_mechanism::{HonestRatio, Mechanism};

use crate::error::Refusal;

/// Queries of one kind that were charged together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Charge {
    /// Their purpose, in the caller's words.
    pub label: String,
    /// Number of queries.
    pub queries: usize,
    /// Their noise.
    #[serde(flatten)]
    pub mechanism: Mechanism,
    /// The ratio of teachers whose noise is present and secret.
    pub tau: HonestRatio,
    /// Number of classes that they choose between; none if it is not known, as in older ledgers: then it may be any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classes: Option<usize>,
    /// The noisy votes that an answer needs; none if every query is answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    /// Total variation distance of all their draws from exact noise; 0 where the charge names no sampler.
    #[serde(rename = "sampling_distance")]
    pub sampling_total_variation: f64,
    /// Pure epsilon of one of them, as it was known when they were charged; the spent epsilon is computed anew.
    pub per_query_epsilon: f64,
    /// The caller's digest of the question; older ledgers have none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub question: String,
    /// The caller's digest of the noise of the answers, which tells two charges for one question apart.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub noise_digest: String,
}

/// Queries that are to be charged.
#[derive(Clone, Copy, Debug)]
pub struct ChargeRequest<'a> {
    /// Their purpose.
    pub label: &'a str,
    /// Their noise.
    pub event: &'a PrivacyEvent,
    /// Number of classes that they choose between; none if it may be any.
    pub classes: Option<usize>,
    /// Number of queries.
    pub queries: usize,
    /// [`Charge::question`], or nothing.
    pub question: &'a str,
    /// [`Charge::noise_digest`], or nothing: a charge with the same one is there already, if there is any.
    pub noise_digest: &'a str,
    /// A limit of the caller's beside the ledger's own.
    pub limit: Option<Budget>,
}

impl ChargeRequest<'_> {
    pub(crate) fn batch(&self) -> QueryBatch {
        QueryBatch::new(*self.event, self.classes, self.queries)
    }
}

impl Charge {
    /// Creates the charge of a request.
    pub(crate) fn new(request: &ChargeRequest<'_>) -> Result<Self, Refusal> {
        let event = request.event;
        check(&request.batch())?;
        Ok(Self {
            label: request.label.to_owned(),
            queries: request.queries,
            mechanism: event.mechanism(),
            tau: event.tau(),
            classes: request.classes,
            threshold: event.threshold(),
            sampling_total_variation: event.sampling_total_variation(),
            per_query_epsilon: request.batch().per_query_epsilon(),
            question: request.question.to_owned(),
            noise_digest: request.noise_digest.to_owned(),
        })
    }

    /// Returns the queries that are composed. The pure epsilon is computed anew, whatever an older version wrote.
    pub(crate) fn batch(&self) -> QueryBatch {
        let event = PrivacyEvent::new(self.mechanism, self.tau);
        // A distance of 1 uses up delta as well as one just below.
        let distance = self.sampling_total_variation.clamp(0.0, 1f64.next_down());
        let event = event.with_sampling_total_variation(distance).unwrap_or(event);
        match self.threshold.map(|threshold| event.with_threshold(threshold)) {
            None => QueryBatch::new(event, self.classes, self.queries),
            Some(Ok(event)) => QueryBatch::new(event, self.classes, self.queries),
            // Refused when the line was read. Any number of classes costs as much as any threshold.
            Some(Err(_)) => QueryBatch::new(event, None, self.queries),
        }
    }

    /// Returns whether the charge says how far its samplers are from exact noise.
    #[must_use]
    pub fn names_sampler(&self) -> bool {
        self.sampling_total_variation > 0.0 || self.mechanism.has_exact_sampler()
    }
}

/// Checks that queries can be charged: there are some, between two classes or more, and each has a pure epsilon.
pub(crate) fn check(batch: &QueryBatch) -> Result<(), Refusal> {
    if let Some(found) = batch.classes.filter(|classes| *classes < 2) {
        return Err(Refusal::Classes { found });
    }
    if batch.queries == 0 || !batch.per_query_epsilon().is_finite() {
        return Err(Refusal::Queries { queries: batch.queries, mechanism: batch.event.mechanism() });
    }
    Ok(())
}
