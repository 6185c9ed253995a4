//! Algorithm 1: from votes to epsilon.

use serde::{Deserialize, Serialize};
use speed_mechanism::{HonestRatio, InverseScale};

use crate::moments::{Moment, data_independent_moment};
use crate::outcome::{Gaps, OutcomeBound};
use crate::{AccountError, Delta, Noise, PrivacyEvent, claim, per_query_epsilon};

/// The largest moment order of the paper: "it captures the best moments accountant in every case" (Algorithm 1).
pub const LARGEST_ORDER: u32 = 25;

/// What a run of queries costs, and what that means.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Account {
    /// Epsilon of the claim. Not rounded: use [`round_up`](crate::round_up) to print it.
    pub epsilon: f64,
    /// Delta of the claim, in full: what the sampler costs is already inside.
    pub delta: f64,
    /// The moment order that gave `epsilon`.
    pub order: u32,
    /// Whether that is the smallest or largest order that was tried, so that another might be better.
    pub order_at_edge: bool,
    /// Epsilon of one query, from no votes (Theorem 2).
    pub per_query_epsilon: f64,
    /// How many queries were accounted.
    pub queries: usize,
    /// How many of them the votes made cheaper, at the chosen order; 0 for a data-independent account.
    pub data_dependent_queries: usize,
    /// Which noise was accounted.
    pub noise: Noise,
    /// Its inverse scale, per vote.
    pub gamma: InverseScale,
    /// The ratio of teachers whose noise is present.
    pub tau: HonestRatio,
    /// The claim in words: between whom, under which assumption, in which direction, and whether it may be published.
    pub claim: String,
}

/// Algorithm 1 with its errata: Theorem 3 for each query and order, the sum over queries, and the tail bound
/// `(alpha(l) - ln delta) / l`, the least over `l = 1..=25`.
///
/// `counts` has a row of votes for each query and a column for each class. The result depends on the votes; read
/// [`Account::claim`] before publishing it.
///
/// # Errors
/// [`AccountError`] if there are no rows, if rows differ in length or in the number of votes, if there are fewer than
/// two classes or no votes, or if the sampler's distance uses up delta.
pub fn account(counts: &[Vec<u32>], event: PrivacyEvent, delta: Delta) -> Result<Account, AccountError> {
    account_up_to(counts, event, delta, LARGEST_ORDER)
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
    let gaps = checked_gaps(counts)?;
    let epsilon = per_query_epsilon(&event);
    let mut bound = OutcomeBound::new(&event, gaps.iter().map(Gaps::largest).max().unwrap_or(0));
    let log_qs: Vec<f64> = gaps.iter().map(|gaps| bound.log_q(gaps)).collect();
    let total = |order| {
        let moments = log_qs.iter().map(|&log_q| Moment::of(epsilon, log_q, order));
        moments.fold((0.0, 0), |(sum, dependent), moment| {
            (sum + moment.value, dependent + usize::from(moment.data_dependent))
        })
    };
    finish(counts.len(), &event, delta, largest_order, epsilon, total, claim::data_dependent)
}

/// The same composition without votes: only the branches of Theorem 3 that do not depend on them. Holds in both
/// directions and under collusion, and may be published.
///
/// # Errors
/// [`AccountError::NoQueries`] for no queries, [`AccountError::DeltaUsedUp`] if the sampler's distance uses up delta.
pub fn account_data_independent(queries: usize, event: PrivacyEvent, delta: Delta) -> Result<Account, AccountError> {
    if queries == 0 {
        return Err(AccountError::NoQueries);
    }
    let epsilon = per_query_epsilon(&event);
    let total = |order| (queries as f64 * data_independent_moment(epsilon, order), 0);
    finish(queries, &event, delta, LARGEST_ORDER, epsilon, total, claim::data_independent)
}

fn checked_gaps(counts: &[Vec<u32>]) -> Result<Vec<Gaps>, AccountError> {
    let first = counts.first().ok_or(AccountError::NoQueries)?;
    let votes = |row: &[u32]| row.iter().copied().map(u64::from).sum::<u64>();
    let (classes, expected) = (first.len(), votes(first));
    counts
        .iter()
        .enumerate()
        .map(|(row, counts)| {
            if counts.len() != classes {
                return Err(AccountError::Classes { row, found: counts.len(), expected: classes });
            }
            let found = votes(counts);
            if found != expected {
                return Err(AccountError::Votes { row, found, expected });
            }
            Gaps::of(row, counts)
        })
        .collect()
}

/// The tail bound: the order with the least epsilon. `total` gives the sum of moments of an order, and how many depend
/// on votes.
fn finish(
    queries: usize,
    event: &PrivacyEvent,
    delta: Delta,
    largest_order: u32,
    per_query_epsilon: f64,
    total: impl Fn(u32) -> (f64, usize),
    claim: impl Fn(&PrivacyEvent, f64, f64) -> String,
) -> Result<Account, AccountError> {
    let totals: Vec<(u32, f64, usize)> =
        (1..=largest_order).map(|l| (l, total(l))).map(|(l, (alpha, dependent))| (l, alpha, dependent)).collect();
    let best = |delta: f64| {
        let epsilons = totals.iter().map(|&(l, alpha, dependent)| ((alpha - delta.ln()) / f64::from(l), l, dependent));
        epsilons.min_by(|a, b| a.0.total_cmp(&b.0)).ok_or(AccountError::NoOrders)
    };
    let (mut epsilon, mut order, mut data_dependent_queries) = best(delta.get())?;
    if event.sampling_distance() > 0.0 {
        // A mechanism within a total variation of `d` of an (epsilon, delta')-private one is (epsilon, delta' + (1 +
        // e^epsilon) d) -private. Set aside what that costs for an epsilon of at most one more than without.
        let ceiling = epsilon + 1.0;
        let charge = (1.0 + ceiling.exp()) * event.sampling_distance() * (1.0 + 4.0 * f64::EPSILON);
        let used_up = AccountError::DeltaUsedUp { charge, delta: delta.get() };
        let left = (delta.get() - charge).next_down();
        if left <= 0.0 {
            return Err(used_up);
        }
        (epsilon, order, data_dependent_queries) = best(left)?;
        if epsilon > ceiling {
            return Err(used_up);
        }
    }
    Ok(Account {
        epsilon,
        delta: delta.get(),
        order,
        order_at_edge: order == 1 || order == largest_order,
        per_query_epsilon,
        queries,
        data_dependent_queries,
        noise: event.noise(),
        gamma: event.gamma(),
        tau: event.tau(),
        claim: claim(event, epsilon, delta.get()),
    })
}
