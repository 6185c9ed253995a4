//! Errors of the accountant.

use speed_mechanism::MechanismError;

use crate::spent::CompositionRule;

/// Refusal of votes or parameters.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the fields")]
#[non_exhaustive]
pub enum AccountError {
    /// No query was asked.
    #[error("there are no queries to account: expected at least one row of votes")]
    NoQueries,
    /// A row has fewer than two classes, so there is nothing to choose between.
    #[error("row {row} has {found} classes, but an argmax needs at least 2")]
    TooFewClasses { row: usize, found: usize },
    /// There are more queries than can be composed.
    #[error("there are {found} queries, but at most 1000000 are accounted for together")]
    Queries { found: usize },
    /// A total variation distance is out of range.
    #[error("total variation distance of the sampler is {found:?}, but it must be from 0 to less than 1")]
    TotalVariation { found: f64 },
    /// The sampler's distance from exact noise uses up all of delta.
    #[error(
        "sampler's total variation distance costs {charge:e} of delta = {delta:e} at an epsilon of {epsilon:.1}, which is too \
         much"
    )]
    DeltaUsedUp { epsilon: f64, charge: f64, delta: f64 },
    /// No finite epsilon is known.
    #[error(
        "epsilon of these queries is not finite (found {found}): the noise is too little, or too far beyond what can be computed"
    )]
    NotFinite { found: f64 },
    /// A threshold is not a number of votes.
    #[error("threshold is {found:?}, but it must be a number of votes up to 1e15, and a whole one with integer noise")]
    Threshold { found: f64 },
    /// Checks before answers do not fit the answers, or an account that cannot have them.
    #[error("{what}: found {found}, expected {expected}")]
    Checks { what: &'static str, found: Box<str>, expected: Box<str> },
    /// The honest ratio is not 1, but a trusted aggregator adds all of the noise.
    #[error("honest ratio is {tau:?} with a trusted aggregator, who adds all of the noise: it must be 1")]
    CentralRatio { tau: f64 },
    /// An option of a release is out of range.
    #[error("release: {option} is {found}, expected a number from {min} to {max}")]
    ReleaseOption { option: &'static str, found: f64, min: f64, max: f64 },
    /// Queries would exceed a budget; none of them was composed.
    #[error(
        "{queries} more queries would make epsilon {would_be:.6}, but the budget is {budget} at delta {delta:e} ({spent:.6} is \
         spent): {rule}"
    )]
    OverBudget { queries: usize, would_be: f64, budget: f64, delta: f64, spent: f64, rule: CompositionRule },
    /// A target epsilon that no supported noise meets, or not even one query.
    #[error("{0}")]
    Unreachable(String),
    /// Any other vote or parameter that is refused: its name or row, the found and the expected.
    #[error("{0}")]
    Invalid(String),
    /// The noise cannot be created.
    #[error(transparent)]
    Mechanism(#[from] MechanismError),
}

impl AccountError {
    pub(crate) fn no_orders() -> Self {
        Self::Invalid("largest moment order is 0, but at least order 1 is needed".to_owned())
    }

    pub(crate) fn classes(row: usize, found: usize, expected: usize) -> Self {
        Self::Invalid(format!("row {row} has {found} classes, but row 0 has {expected}"))
    }

    pub(crate) fn no_votes(row: usize) -> Self {
        Self::Invalid(format!("row {row} has no votes at all"))
    }

    pub(crate) fn too_many_votes(row: usize, found: u64, teachers: usize) -> Self {
        Self::Invalid(format!(
            "row {row} has {found} votes, but there are {teachers} teachers, who vote at most once in every query"
        ))
    }

    /// Returns an error about neighbours that differ in several teachers of a party, for which an account does not exist.
    pub(crate) fn party(found: &str) -> Self {
        Self::Invalid(format!(
            "neighbours that differ in several teachers of a party: found {found}, expected the tight bound for any votes"
        ))
    }

    pub(crate) fn party_classes(found: usize, max: usize) -> Self {
        Self::Invalid(format!("{found} classes: the bound for a party of several teachers holds for at most {max}"))
    }

    /// Returns an error about an integrand of `q` that has a cusp too close to the path of integration.
    pub(crate) fn integration_ratio(tau: f64, least: f64) -> Self {
        Self::Invalid(format!(
            "q by integration cannot be reached: tau is {tau}, expected at least {least} with continuous Laplace noise"
        ))
    }
}
