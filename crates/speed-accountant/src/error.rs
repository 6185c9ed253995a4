//! Errors of the accountant.

use speed_mechanism::{MechanismError, MechanismKind};

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
    /// A row and the first row differ in the number of classes.
    #[error("row {row} has {found} classes, but row 0 has {expected}")]
    Classes { row: usize, found: usize, expected: usize },
    /// A row and the first row differ in the number of votes: every teacher votes once per query.
    #[error("row {row} has {found} votes, but row 0 has {expected}: every teacher votes once in every query")]
    Votes { row: usize, found: u64, expected: u64 },
    /// A row has no votes.
    #[error("row {row} has no votes at all")]
    NoVotes { row: usize },
    /// Delta is out of range.
    #[error("delta is {found:?}, but it must be at least {min:e} and less than 1")]
    Delta { found: f64, min: f64 },
    /// The largest moment order leaves no order to try.
    #[error("largest moment order is 0, but at least order 1 is needed")]
    NoOrders,
    /// There are more queries than can be composed.
    #[error("there are {found} queries, but at most 1000000 are accounted for together")]
    Queries { found: usize },
    /// There are too many teachers to try every number of missing ones.
    #[error(
        "there are {found} votes a row: with \"up to\" every number of missing teachers is tried, for at most 2000 teachers"
    )]
    Teachers { found: u64 },
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
    /// Neighbours differ in several teachers of a party, for which this account does not exist.
    #[error(
        "neighbours that differ in several teachers of a party: found {what}, expected the tight bound for any votes"
    )]
    Party { what: &'static str },
    /// A party has no teachers or too many.
    #[error("a party has {found} teachers, expected 1 to {max}")]
    PartyTeachers { found: usize, max: u32 },
    /// There are too many classes for neighbours that differ in several teachers.
    #[error("{found} classes: the bound for a party of several teachers holds for at most {max}")]
    PartyClasses { found: usize, max: usize },
    /// The honest ratio is not 1, but a trusted aggregator adds all of the noise.
    #[error("honest ratio is {tau:?} with a trusted aggregator, who adds all of the noise: it must be 1")]
    CentralRatio { tau: f64 },
    /// An option of a release is out of range.
    #[error("release: {option} is {found}, expected a number from {min} to {max}")]
    ReleaseOption { option: &'static str, found: f64, min: f64, max: f64 },
    /// A target epsilon is not a finite number greater than 0.
    #[error("epsilon {found:?} cannot be reached: the target must be a finite number greater than 0")]
    Target { found: f64 },
    /// No supported noise is enough for a target epsilon.
    #[error(
        "epsilon {epsilon:?} for {queries} queries cannot be reached: with the widest noise that can be drawn, {} {widest}, it is {}; \
         ask for fewer queries or a larger epsilon",
        kind.parameter(),
        or_infinite(*least)
    )]
    NotEnoughNoise {
        epsilon: f64,
        queries: usize,
        kind: MechanismKind,
        widest: f64,
        /// Epsilon with the widest noise; `None` if it is not finite.
        least: Option<f64>,
    },
    /// Not even one query meets a target epsilon.
    #[error("epsilon {epsilon:?} cannot be reached: for one query it is {}", or_infinite(*least))]
    NoQueryAllowed {
        epsilon: f64,
        /// Epsilon of one query; `None` if it is not finite.
        least: Option<f64>,
    },
    /// The integrand of `q` has a cusp too close to the path of integration.
    #[error("q by integration cannot be reached: tau is {tau}, expected at least {min} with continuous Laplace noise")]
    IntegrationRatio { tau: f64, min: f64 },
    /// Queries would exceed a budget; none of them was composed.
    #[error(
        "{queries} more queries would make epsilon {would_be:.6}, but the budget is {budget} at delta {delta:e} ({spent:.6} is \
         spent): {rule}"
    )]
    OverBudget { queries: usize, would_be: f64, budget: f64, delta: f64, spent: f64, rule: CompositionRule },
    /// An agreement is not a share of the teachers.
    #[error("agreement is {found:?}, but it must be a share of the teachers above 0 and at most 1")]
    Agreement { found: f64 },
    /// The right class is not one of the classes.
    #[error("right class is {found}, but there are {classes} classes, counted from 0")]
    RightClass { found: usize, classes: usize },
    /// The noise cannot be created.
    #[error(transparent)]
    Mechanism(#[from] MechanismError),
}

fn or_infinite(epsilon: Option<f64>) -> String {
    epsilon.map_or_else(|| "not finite".to_owned(), |epsilon| epsilon.to_string())
}
