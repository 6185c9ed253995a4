//! Privacy accounting for the noisy argmax with distributed noise: the paper's Algorithm 1, with its errata.
//!
//! The accountant sees vote counts and the specification of the noise, nothing else: no learning, no cryptography.
//!
//! ```
//! use speed_accountant::{Delta, Noise, PrivacyEvent, account, account_data_independent, round_up};
//! use speed_mechanism::{HonestRatio, InverseScale};
//!
//! let event = PrivacyEvent::new(Noise::DiscreteLaplace, InverseScale::new(0.1)?, HonestRatio::new(0.9)?);
//! let counts = vec![vec![240, 10, 0], vec![30, 25, 195]];
//! let spent = account(&counts, event, Delta::new(1e-5)?)?;
//! let worst = account_data_independent(2, event, Delta::new(1e-5)?)?;
//! assert!(spent.epsilon <= worst.epsilon);
//! println!("epsilon {} ({})", round_up(spent.epsilon, 2), spent.claim);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | step of Algorithm 1 | function |
//! |---|---|
//! | privacy of one query (Theorem 2) | [`per_query_epsilon`] |
//! | probability of another outcome (Proposition 4) | [`q`] |
//! | moments of one query (Theorem 3) | [`moment`] |
//! | composition and tail bound | [`account`], [`account_data_independent`] |

mod account;
mod claim;
mod error;
mod event;
mod moments;
mod outcome;
mod per_query;
mod rounding;

pub use account::{Account, LARGEST_ORDER, account, account_data_independent, account_up_to};
pub use error::AccountError;
pub use event::{Delta, Noise, PrivacyEvent};
pub use moments::moment;
pub use outcome::q;
pub use per_query::per_query_epsilon;
pub use rounding::round_up;
