//! Charges and requests for charges.

use serde::{Deserialize, Deserializer, Serialize};
use speed_mechanism::{HonestRatio, Mechanism};

use crate::{Budget, PrivacyEvent, QueryBatch};

/// Queries of one kind that were charged together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Charge {
    /// The purpose of the queries, in the caller's words.
    pub label: String,
    /// Number of queries.
    pub queries: usize,
    /// The mechanism of their noise.
    #[serde(flatten)]
    pub mechanism: Mechanism,
    /// The fraction of the teachers whose noise is present and secret (tau).
    pub tau: HonestRatio,
    /// Number of classes. `None` if it is unknown; then any number is assumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classes: Option<usize>,
    /// The threshold of the noisy count, in votes. `None` if every query is answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    /// Whether the queries are checks, whose outcome is only whether the largest noisy count reaches the threshold.
    #[serde(default, rename = "check", skip_serializing_if = "std::ops::Not::not")]
    pub is_check: bool,
    /// Total variation distance between all draws and exact noise. 0 if the charge names no sampler.
    #[serde(rename = "sampling_distance")]
    pub(crate) sampling_total_variation: f64,
    /// Pure epsilon of one query at the time of the charge; infinite, and null in JSON, for Skellam and binomial noise.
    /// The spent epsilon is always recomputed.
    #[serde(deserialize_with = "null_as_infinity")]
    pub per_query_epsilon: f64,
    /// Number of teachers of the party that the ledger is of, whose votes may all differ in the claim for a party. Stated
    /// if it is not 1.
    #[serde(default = "crate::account::one", skip_serializing_if = "crate::account::is_one")]
    pub party_teachers: u32,
    /// Number of teachers of all parties. Stated if the party has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub teachers: Option<u32>,
    /// The caller's digest of the question, or empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub question: String,
    /// The caller's digest of the answers' noise, or empty. It distinguishes two charges for the same question.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub noise_digest: String,
}

/// A request to charge queries.
#[derive(Clone, Copy, Debug)]
pub struct ChargeRequest<'a> {
    /// The purpose of the queries.
    pub label: &'a str,
    /// The privacy event of one query, for neighbours that differ in one teacher.
    pub event: &'a PrivacyEvent,
    /// Number of classes. `None` if it may be any number.
    pub classes: Option<usize>,
    /// Number of queries.
    pub queries: usize,
    /// The size of the party, for the claim on all of its votes. `None` if it has one teacher.
    pub party: Option<PartySize>,
    /// [`Charge::question`], or empty.
    pub question: &'a str,
    /// [`Charge::noise_digest`], or empty. If a charge has the same digest, the queries are already charged.
    pub noise_digest: &'a str,
    /// Whether only one noise may be charged for the question.
    pub is_only: bool,
    /// An additional limit of the caller's.
    pub limit: Option<Budget>,
}

/// The numbers of teachers of a party and of all parties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartySize {
    /// Teachers of the party.
    pub party_teachers: usize,
    /// Teachers of all parties together.
    pub teachers: usize,
}

impl<'a> ChargeRequest<'a> {
    /// Creates a request of a party of one teacher, without digests and without a limit of the caller's.
    pub fn new(label: &'a str, event: &'a PrivacyEvent, classes: Option<usize>, queries: usize) -> Self {
        let (party, limit) = (None, None);
        Self { label, event, classes, queries, party, question: "", noise_digest: "", is_only: false, limit }
    }

    pub(crate) fn batch(&self) -> QueryBatch {
        QueryBatch::new(*self.event, self.classes, self.queries)
    }
}

impl Charge {
    pub(crate) fn new(request: &ChargeRequest<'_>) -> Result<Self, String> {
        let event = request.event;
        check(&request.batch())?;
        let party = request.party.filter(|party| party.party_teachers != 1);
        let party_teachers = party.map_or(1, |party| party.party_teachers);
        let teachers = party.map(|party| party.teachers);
        check_party(party_teachers, teachers, request.classes)?;
        let of_file = |teachers: usize| u32::try_from(teachers).unwrap_or(u32::MAX);
        Ok(Self {
            label: request.label.to_owned(),
            queries: request.queries,
            mechanism: event.mechanism(),
            tau: event.tau(),
            classes: request.classes,
            threshold: event.threshold(),
            is_check: event.is_check(),
            sampling_total_variation: event.sampling_total_variation(),
            per_query_epsilon: request.batch().per_query_epsilon(),
            party_teachers: of_file(party_teachers),
            teachers: teachers.map(of_file),
            question: request.question.to_owned(),
            noise_digest: request.noise_digest.to_owned(),
        })
    }

    pub(crate) fn batch(&self) -> QueryBatch {
        let (mechanism, tau) = (self.mechanism, self.tau);
        let event = match self.threshold {
            None => Ok(PrivacyEvent::new(mechanism, tau)),
            Some(threshold) if self.is_check => PrivacyEvent::check(mechanism, tau, threshold),
            Some(threshold) => PrivacyEvent::new(mechanism, tau).with_threshold(threshold),
        };
        // A distance of 1 uses up delta just as a distance slightly below 1 does.
        let distance = self.sampling_total_variation.min(1f64.next_down());
        let event = event.and_then(|event| event.with_sampling_total_variation(distance));
        let event = event.expect("other thresholds and distances are refused in files and in requests");
        QueryBatch::new(event, self.classes, self.queries)
    }

    /// Returns the same queries for neighbours that differ in all votes of the party.
    pub(crate) fn batch_of_party(&self) -> QueryBatch {
        let batch = self.batch();
        let event = batch.event.of_party(self.party_teachers as usize);
        QueryBatch { event: event.expect("check_party refuses other numbers in files and in requests"), ..batch }
    }

    /// Returns whether the charge states the distance of its samplers from exact noise.
    pub fn names_sampler(&self) -> bool {
        self.sampling_total_variation > 0.0 || self.mechanism.has_exact_sampler()
    }
}

/// Checks the numbers of teachers of a party and of all parties: at least one, not more than all, and if several, between a
/// number of classes for which a party has claims.
pub(crate) fn check_party(
    party_teachers: usize,
    teachers: Option<usize>,
    classes: Option<usize>,
) -> Result<(), String> {
    let max = teachers.unwrap_or(usize::MAX).min(PrivacyEvent::MAX_PARTY as usize);
    if !(1..=max).contains(&party_teachers) {
        return Err(format!("party_teachers is {party_teachers}, expected 1 to {max}"));
    }
    if party_teachers == 1 {
        return Ok(());
    }
    if teachers.is_none() {
        return Err(format!(
            "party_teachers is {party_teachers}, but teachers is missing: expected the number of teachers of all parties"
        ));
    }
    let max = PrivacyEvent::MAX_PARTY_CLASSES;
    if classes.is_some_and(|classes| (2..=max).contains(&classes)) {
        return Ok(());
    }
    let found = classes.map_or_else(|| "unknown".to_owned(), |found| found.to_string());
    Err(format!("classes is {found}, expected 2 to {max} for a party of several teachers"))
}

/// Checks that queries can be charged: at least one query, at least two classes, and noise that this program draws or
/// that has a pure epsilon.
pub(crate) fn check(batch: &QueryBatch) -> Result<(), String> {
    if let Some(found) = batch.classes.filter(|classes| *classes < 2) {
        return Err(format!("classes is {found}, expected at least 2"));
    }
    let mechanism = batch.event.mechanism();
    if batch.queries == 0 || matches!(mechanism, Mechanism::Gaussian { .. }) {
        let queries = batch.queries;
        return Err(format!(
            "expected at least one query of Laplace, Skellam or binomial noise, found {queries} of {mechanism}"
        ));
    }
    Ok(())
}

/// Reads an epsilon that may be infinite. JSON has no infinity, so it is written as null.
pub(crate) fn null_as_infinity<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::INFINITY))
}
