//! Single formulas of the paper and of the literature, for research on the bounds themselves.
//!
//! | quantity | functions |
//! |---|---|
//! | pure epsilon of one query | [`per_query_epsilon`], [`theorem_2`], [`log_sup_g`], [`tight_per_query_epsilon`], [`epsilon_star`] |
//! | probability of another outcome | [`q`], [`q_pairs`], [`q_exact`] |
//! | moments of one query | [`moment`], [`pure_moment`], [`outcome_moment`], [`exact_outcome_moment`], [`collusion_moment`] |
//! | Rényi divergence of one query | [`gaussian_rdp`], [`skellam_rdp`], [`gnmax_rdp`] |
//! | the paper's Algorithm 1 | [`account`], [`account_up_to`], [`account_data_independent`] |

use crate::account::Account;
use crate::accountant::Accountant;
use crate::delta::Delta;
use crate::error::AccountError;
use crate::event::PrivacyEvent;

pub use crate::moments::{collusion_moment, exact_outcome_moment, moment, outcome_moment, pure_moment};
pub use crate::outcome::{q, q_exact, q_pairs};
pub use crate::per_query::{epsilon_star, log_sup_g, per_query_epsilon, theorem_2, tight_per_query_epsilon};
pub use crate::renyi::{gaussian_rdp, gnmax_rdp, skellam_rdp};

/// Computes Algorithm 1 with its errata: Theorem 3 for each query and order, the sum over queries, and the least tail
/// bound `(alpha(l) - ln delta) / l` over `l = 1..=25`.
///
/// `counts` has a row of the votes of `teachers` teachers for each query and a column for each class. The result depends on the votes; read
/// [`Account::claim`] before publishing it.
///
/// # Errors
/// The errors of [`Accountant::account`].
pub fn account(
    counts: &[Vec<u32>],
    teachers: usize,
    event: PrivacyEvent,
    delta: Delta,
) -> Result<Account, AccountError> {
    Accountant::paper(event, delta).account(counts, teachers)
}

/// Computes [`account`] with moment orders `1..=max_order`.
///
/// # Errors
/// The errors of [`account`], and [`AccountError::Invalid`] for a maximum order of 0.
pub fn account_up_to(
    counts: &[Vec<u32>],
    teachers: usize,
    event: PrivacyEvent,
    delta: Delta,
    max_order: u32,
) -> Result<Account, AccountError> {
    Accountant::paper(event, delta).with_max_order(f64::from(max_order)).account(counts, teachers)
}

/// Computes the same composition without votes: only the branches of Theorem 3 that do not depend on votes. The result
/// holds in both directions and under collusion, and may be published.
///
/// # Errors
/// The errors of [`Accountant::account_queries`].
pub fn account_data_independent(queries: usize, event: PrivacyEvent, delta: Delta) -> Result<Account, AccountError> {
    Accountant::paper(event, delta).account_queries(queries)
}
