//! Data-independent privacy of one query: pure epsilons of Laplace noise.
//!
//! Neighbours differ in one teacher's vote: one class loses a vote and one gains it, or only one of the two happens, if one
//! of the votes is empty. Then no point from which on a class wins moves by more than one vote, and no bound is larger. No
//! bound here depends on votes, so all hold in both directions. They also hold if the other teachers' noise is known
//! (collusion: it is a shift of the votes), and with a threshold (docs/privacy.md).

mod lemma;
mod pure;
mod star;

pub use lemma::theorem_2;
pub use pure::{per_query_epsilon, tight_per_query_epsilon};
pub use star::epsilon_star;
pub(crate) use star::{Within, within};
