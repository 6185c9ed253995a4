//! The accountant's answer.

use serde::{Deserialize, Serialize};
use speed_mechanism::{HonestRatio, Mechanism};

use crate::assumption::{Adversary, Bound, Extent, NeighbouringRelation};
use crate::epsilon_bound::CompositionMethod;
use crate::release::Release;

/// Cost of a run of queries, and its meaning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Account {
    /// Epsilon of the claim. Not rounded: use [`round_up`](crate::round_up) to print it.
    pub epsilon: f64,
    /// Delta of the claim, in full: the cost of the sampler is already inside.
    pub delta: f64,
    /// Method by which the queries were composed.
    #[serde(default)]
    pub composition: CompositionMethod,
    /// The moment order that gave `epsilon`, or by which privacy loss distributions were tilted; none for an optimum that needs
    /// neither.
    pub order: Option<f64>,
    /// True if that is the smallest or largest order that was tried, so that another might be better.
    pub order_at_edge: bool,
    /// Epsilon of one query, from no votes; for Gaussian and Skellam noise that of one query at `delta`.
    pub per_query_epsilon: f64,
    /// Number of queries.
    pub queries: usize,
    /// Number of them that the votes made cheaper, at the chosen order; 0 for a data-independent account.
    pub data_dependent_queries: usize,
    /// Noise of one query.
    #[serde(flatten)]
    pub mechanism: Mechanism,
    /// The ratio of teachers whose noise is present and secret.
    pub tau: HonestRatio,
    /// Number of classes of an account without votes, where it is for these only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classes: Option<usize>,
    /// The noisy votes that an answer needs.
    #[serde(default)]
    pub threshold: Option<f64>,
    /// Set of formulas.
    #[serde(default = "paper")]
    pub bound: Bound,
    /// Adversary, and with it the other teachers' noise.
    #[serde(default, rename = "assume")]
    pub adversary: Adversary,
    /// Number of those teachers that the adversary speaks about.
    #[serde(default)]
    pub extent: Extent,
    /// Direction of the inequality between neighbours.
    #[serde(default = "one_sided", rename = "directions")]
    pub relation: NeighbouringRelation,
    /// True if the value may be published as it is: it looked at no votes.
    #[serde(default)]
    pub publishable: bool,
    /// Release of a value that looked at votes; none for other accounts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<Release>,
    /// The claim in words: between whom, under which assumption, in which direction, and whether it may be published.
    pub claim: String,
}

// The meaning of accounts that were written before these fields existed.
fn paper() -> Bound {
    Bound::Paper
}

fn one_sided() -> NeighbouringRelation {
    NeighbouringRelation::OneSided
}
