//! Single formulas of the paper and of the literature, for research on the bounds themselves.
//!
//! | quantity | functions |
//! |---|---|
//! | pure epsilon of one query | [`per_query_epsilon`], [`theorem_2`], [`tight_per_query_epsilon`], [`epsilon_star`] |
//! | probability of another outcome | [`q`], [`q_pairs`], [`q_exact`] |
//! | moments of one query | [`theorem_3`], [`pure_moment`], [`outcome_moment`], [`collusion_moment`] |
//! | Rényi divergence of one query | [`gaussian_rdp`], [`gnmax_rdp`] |
//!
//! [`Accountant::paper`](crate::Accountant::paper) is the paper's Algorithm 1.

pub use crate::moments::{collusion_moment, outcome_moment, pure_moment, theorem_3};
pub use crate::outcome::{q, q_exact, q_pairs};
pub use crate::per_query::{epsilon_star, per_query_epsilon, theorem_2, tight_per_query_epsilon};
pub use crate::renyi::{gaussian_rdp, gnmax_rdp};
