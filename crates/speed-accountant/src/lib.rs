//! Privacy accounting for noisy-argmax aggregation with distributed noise.
//!
//! Teachers vote, each adds its share of noise to its vote, and only the class with the largest noisy count is released
//! (PATE; SPEED). This crate says what that costs: for the paper's continuous Laplace noise, for the integer noise that
//! can be encrypted, and for Gaussian and Skellam noise. It sees vote counts and the specification of the noise, nothing
//! else: no learning, no cryptography.
//!
//! # From votes to a claim
//!
//! ```
//! use speed_accountant::{Accountant, Assume, Delta, Extent, Noise, PrivacyEvent, round_up};
//! use speed_mechanism::{HonestRatio, InverseScale};
//!
//! let event = PrivacyEvent::new(Noise::discrete_laplace(InverseScale::new(0.1)?), HonestRatio::new(0.9)?);
//! let accountant = Accountant::new(event, Delta::new(1e-5)?);
//!
//! // At given votes: tight, and not to be published. Noise of exactly a tenth of the teachers is missing.
//! let counts = vec![vec![240, 10, 0], vec![30, 25, 195]];
//! let spent = accountant.account(&counts)?;
//! // Of any number of teachers up to a tenth, and the adversary may know the noise of some.
//! let colluding = accountant.with_assume(Assume::Collusion).with_extent(Extent::UpTo).account(&counts)?;
//! // Whatever the votes are: may be published.
//! let worst = accountant.account_queries(2)?;
//! assert!(spent.epsilon <= colluding.epsilon && colluding.epsilon <= worst.epsilon);
//! assert!(worst.publishable && !spent.publishable);
//! println!("epsilon {}: {}", round_up(spent.epsilon, 2), spent.claim);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How much noise a target needs
//!
//! ```
//! use speed_accountant::calibrate::{NoiseKind, Target, calibrate_noise};
//! use speed_accountant::{Assume, Bound, Delta};
//! use speed_mechanism::HonestRatio;
//!
//! // 175 of 250 teachers add their noise; whatever the votes are.
//! let tau = HonestRatio::new(0.7)?.effective(250)?;
//! let target =
//!     Target { epsilon: 5.0, delta: Delta::new(1e-5)?, tau, assume: Assume::Dropout, bound: Bound::Tight };
//! let found = calibrate_noise(NoiseKind::DiscreteLaplace, 100, &target)?;
//! assert!(found.account.epsilon <= 5.0 && found.scale > 0.06);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # A budget that is kept
//!
//! ```
//! use speed_accountant::ledger::{Budget, Ledger, LedgerError};
//! use speed_accountant::{Delta, Noise, PrivacyEvent};
//! use speed_mechanism::{HonestRatio, InverseScale};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("ledger");
//! let event = PrivacyEvent::new(Noise::discrete_laplace(InverseScale::new(0.1)?), HonestRatio::ALL);
//! let ledger = Ledger::create(&path, Budget { epsilon: Some(6.0), delta: Delta::new(1e-5)? })?;
//! // Before the queries between 10 classes are answered; also where answers decide what is asked next.
//! let statement = ledger.charge("a hundred labels", &event, 10, 100)?;
//! assert!(statement.spent_epsilon <= 6.0);
//! assert!(matches!(ledger.charge("too many", &event, 10, 100), Err(LedgerError::OverBudget { .. })));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | question | function |
//! |---|---|
//! | what did these queries cost | [`Accountant::account`], [`account`] with the paper's formulas |
//! | what did they cost, to be published | [`Accountant::release`] |
//! | what can so many queries cost | [`Accountant::account_queries`] |
//! | how private is one query | [`per_query`]: Theorem 2, [`per_query::log_sup_g`], [`per_query::tight_per_query_epsilon`] |
//! | how likely is another answer | [`q`], [`q_pairs`], [`q_exact`] |
//! | moments of one query | [`moment`], [`pure_moment`], [`outcome_moment`], [`collusion_moment`], [`gnmax_rdp`] |
//! | how much noise for a target, how many queries for a budget | [`calibrate`] |
//! | what was answered so far, and is there budget left | [`ledger`] |
//! | what do runs of the mechanism say | [`mod@audit`] |
//! | the paper's figures | [`figure`] |
//! | composition | [`composition`]: optimal (Kairouz, Oh, Viswanath), Gaussian, conversions |

pub mod audit;
pub mod calibrate;
pub mod composition;
pub mod figure;
pub mod ledger;
pub mod per_query;

mod account;
mod accountant;
mod argmax;
mod assumption;
mod claim;
mod collusion;
mod costs;
mod error;
mod event;
mod instance;
mod memo;
mod moments;
mod orders;
mod outcome;
mod quadrature;
mod release;
mod renyi;
mod rounding;
mod sound;
mod three_answers;
mod without_votes;

pub use account::{Account, Method, account, account_data_independent, account_up_to};
pub use accountant::{Accountant, LARGEST_ORDER};
pub use assumption::{Assume, Bound, Directions, Extent};
pub use error::AccountError;
pub use event::{Delta, Noise, PrivacyEvent};
pub use moments::{collusion_moment, exact_outcome_moment, moment, outcome_moment, pure_moment};
pub use outcome::{q, q_exact, q_pairs};
pub use per_query::per_query_epsilon;
pub use release::{Release, ReleaseOptions};
pub use renyi::{gaussian_rdp, gnmax_rdp, skellam_rdp};
pub use rounding::round_up;
