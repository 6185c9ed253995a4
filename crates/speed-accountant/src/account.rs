//! The accountant's answer.

use serde::{Deserialize, Serialize};
use speed_mechanism::{HonestRatio, Mechanism};

use crate::assumption::{Adversary, Bound, Extent, NeighbouringRelation};
use crate::checks::AccountedChecks;
use crate::epsilon_bound::CompositionMethod;
use crate::release::Release;

/// The cost of a run of queries, and the meaning of that cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Account {
    /// Epsilon of the claim. Not rounded: use [`round_up`](crate::round_up) to print it.
    pub epsilon: f64,
    /// Delta of the claim: the total, with the cost of the sampler included.
    pub delta: f64,
    /// Method by which the queries were composed.
    pub composition: CompositionMethod,
    /// The moment order that gave `epsilon`, or by which privacy loss distributions were tilted; `None` for an optimal
    /// composition, which needs neither.
    pub order: Option<f64>,
    /// True if that order is the smallest or the largest one tried, so that another might be better.
    pub order_at_edge: bool,
    /// Data-independent epsilon of one query; for Gaussian and Skellam noise the epsilon of one query at `delta`.
    pub per_query_epsilon: f64,
    /// Number of queries.
    pub queries: usize,
    /// Number of queries that the votes made cheaper, at the chosen order; 0 for a data-independent account.
    pub data_dependent_queries: usize,
    /// Noise of one query.
    #[serde(flatten)]
    pub mechanism: Mechanism,
    /// The ratio of teachers whose noise is present and secret.
    pub tau: HonestRatio,
    /// Number of classes of an account without votes that holds for this number only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classes: Option<usize>,
    /// The number of noisy votes that an answer needs.
    pub threshold: Option<f64>,
    /// The checks before the answers, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checks: Option<AccountedChecks>,
    /// True if the queries are checks themselves.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_check: bool,
    /// Number of teachers whose votes differ between neighbours: 1, or the teachers of one party.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub party_teachers: u32,
    /// The formulas used.
    pub bound: Bound,
    /// The adversary, which also determines how the other teachers' noise is treated.
    #[serde(rename = "assume")]
    pub adversary: Adversary,
    /// The number of teachers that the adversary covers.
    pub extent: Extent,
    /// The direction of the inequality between neighbours.
    #[serde(rename = "directions")]
    pub relation: NeighbouringRelation,
    /// True if the value may be published as it is: it does not depend on the votes.
    pub publishable: bool,
    /// The release of a value that depends on the votes; `None` for other accounts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release: Option<Release>,
    /// The claim in words: neighbours, assumptions, direction, and whether it may be published.
    pub claim: String,
}

pub(crate) fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(crate) fn is_one(teachers: &u32) -> bool {
    *teachers == 1
}
