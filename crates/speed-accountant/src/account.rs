//! What a run of queries costs: the accountant's answer, and the paper's own algorithm.

use serde::{Deserialize, Serialize};
use speed_mechanism::HonestRatio;

use crate::accountant::Accountant;
use crate::{AccountError, Assume, Bound, Delta, Directions, Extent, Noise, PrivacyEvent, Release};

/// How an epsilon was composed from the queries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Sums of moments of the privacy loss, converted at the best order.
    #[default]
    Moments,
    /// Convolution of distributions of the privacy loss.
    LossDistributions,
    /// In closed form: the optimal composition of one pure epsilon, or Gaussian differential privacy.
    Optimal,
}

/// What a run of queries costs, and what that means.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Account {
    /// Epsilon of the claim. Not rounded: use [`round_up`](crate::round_up) to print it.
    pub epsilon: f64,
    /// Delta of the claim, in full: what the sampler costs is already inside.
    pub delta: f64,
    /// How the queries were composed.
    #[serde(default)]
    pub composition: Method,
    /// The moment order that gave `epsilon`, or by which loss distributions were tilted; none for an optimum that needs
    /// neither.
    pub order: Option<f64>,
    /// Whether that is the smallest or largest order that was tried, so that another might be better.
    pub order_at_edge: bool,
    /// Epsilon of one query, from no votes; for Gaussian and Skellam noise that of one query at `delta`.
    pub per_query_epsilon: f64,
    /// How many queries were accounted.
    pub queries: usize,
    /// How many of them the votes made cheaper, at the chosen order; 0 for a data-independent account.
    pub data_dependent_queries: usize,
    /// Which noise was accounted.
    #[serde(flatten)]
    pub noise: Noise,
    /// The ratio of teachers whose noise is present and secret.
    pub tau: HonestRatio,
    /// The noisy votes that an answer needs.
    #[serde(default)]
    pub threshold: Option<f64>,
    /// Which formulas.
    #[serde(default = "paper")]
    pub bound: Bound,
    /// What became of the other teachers' noise.
    #[serde(default)]
    pub assume: Assume,
    /// Of how many of those teachers that is true.
    #[serde(default)]
    pub extent: Extent,
    /// Which directions of the inequality.
    #[serde(default = "one")]
    pub directions: Directions,
    /// Whether the value may be published as it is: it looked at no votes.
    #[serde(default)]
    pub publishable: bool,
    /// How a value that looked at votes was released; none for other accounts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<Release>,
    /// The claim in words: between whom, under which assumption, in which direction, and whether it may be published.
    pub claim: String,
}

// What accounts that were written before these fields existed mean.
fn paper() -> Bound {
    Bound::Paper
}

fn one() -> Directions {
    Directions::One
}

/// Algorithm 1 with its errata: Theorem 3 for each query and order, the sum over queries, and the tail bound
/// `(alpha(l) - ln delta) / l`, the least over `l = 1..=25`.
///
/// `counts` has a row of votes for each query and a column for each class. The result depends on the votes; read
/// [`Account::claim`] before publishing it.
///
/// # Errors
/// Those of [`Accountant::account`].
pub fn account(counts: &[Vec<u32>], event: PrivacyEvent, delta: Delta) -> Result<Account, AccountError> {
    Accountant::paper(event, delta).account(counts)
}

/// [`account`] with moment orders `1..=largest_order`.
///
/// # Errors
/// Those of [`account`], and [`AccountError::NoOrders`] for a largest order of 0.
pub fn account_up_to(
    counts: &[Vec<u32>],
    event: PrivacyEvent,
    delta: Delta,
    largest_order: u32,
) -> Result<Account, AccountError> {
    Accountant::paper(event, delta).with_largest_order(f64::from(largest_order)).account(counts)
}

/// The same composition without votes: only the branches of Theorem 3 that do not depend on them. Holds in both
/// directions and under collusion, and may be published.
///
/// # Errors
/// Those of [`Accountant::account_queries`].
pub fn account_data_independent(queries: usize, event: PrivacyEvent, delta: Delta) -> Result<Account, AccountError> {
    Accountant::paper(event, delta).account_queries(queries)
}
