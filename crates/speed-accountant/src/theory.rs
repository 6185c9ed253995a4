//! Single formulas of the paper and of the literature, for research on the bounds themselves.
//!
//! | quantity | functions |
//! |---|---|
//! | pure epsilon of one query | [`per_query_epsilon`], [`theorem_2`], [`log_sup_g`], [`tight_per_query_epsilon`], [`epsilon_star`] |
//! | probability of another outcome | [`q`], [`q_pairs`], [`q_exact`] |
//! | moments of one query | [`moment`], [`pure_moment`], [`outcome_moment`], [`exact_outcome_moment`], [`collusion_moment`] |
//! | Rényi divergence of one query | [`gaussian_rdp`], [`skellam_rdp`], [`gnmax_rdp`] |
//! | the paper's Algorithm 1 | [`account`] |

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
