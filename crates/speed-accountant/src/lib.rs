//! Privacy accounting for noisy-argmax aggregation with distributed noise.
//!
//! Its three main uses:
//! - compute the epsilon of answered queries from their votes ([`Accountant::account`]), and publish a bound of it
//!   ([`Accountant::release`]);
//! - compose queries before they are answered, whatever the votes are, or within a budget ([`PrivacyFilter`]);
//! - find noise for a target epsilon, or queries for a budget ([`calibrate`]).
//!
//! Teachers vote, each teacher adds its share of noise to its vote, and only the class with the largest noisy count is
//! answered (PATE; SPEED). This crate computes the privacy loss of these answers for the paper's continuous Laplace
//! noise, for the integer noise that can be encrypted, and for Gaussian and Skellam noise. Its input is the vote counts
//! and the specification of the noise: it contains no learning and no cryptography. A vote may be empty.
//! Only [`ledger`] accesses files.
//!
//! # From votes to a claim
//!
//! ```
//! use speed_accountant::{Accountant, Adversary, Delta, Extent, PrivacyEvent, round_up};
//! use speed_accountant::{HonestRatio, InverseScale, Mechanism};
//!
//! let event = PrivacyEvent::new(Mechanism::discrete_laplace(InverseScale::new(0.1)?), HonestRatio::new(0.9)?);
//! let accountant = Accountant::new(event, Delta::new(1e-5)?);
//!
//! // At given votes: tight, and not to be published. Noise of exactly a tenth of the teachers is missing.
//! let counts = vec![vec![240, 10, 0], vec![30, 25, 195]];
//! let spent = accountant.account(&counts, 250)?;
//! // Of any number of teachers up to a tenth, and the adversary may know the noise of some.
//! let colluding = accountant.with_adversary(Adversary::Colluding).with_extent(Extent::UpTo).account(&counts, 250)?;
//! // Whatever the votes are: may be published.
//! let worst = accountant.account_queries(2)?;
//! assert!(spent.epsilon <= colluding.epsilon && colluding.epsilon <= worst.epsilon);
//! assert!(worst.publishable && !spent.publishable);
//! println!("epsilon {}: {}", round_up(spent.epsilon, 2), spent.claim);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Noise for a target
//!
//! ```
//! use speed_accountant::calibrate::{Target, calibrate_noise};
//! use speed_accountant::{Adversary, Bound, Delta, HonestRatio, MechanismKind};
//!
//! // 175 of 250 teachers add their noise; whatever the votes are.
//! let tau = HonestRatio::new(0.7)?.effective(250)?;
//! let adversary = Adversary::ExternalWithDropout;
//! let (delta, bound) = (Delta::new(1e-5)?, Bound::Tight);
//! let target = Target { epsilon: 5.0, delta, tau, adversary, bound, classes: Some(10), threshold: None, checks: None };
//! let found = calibrate_noise(MechanismKind::DiscreteLaplace, 100, &target)?;
//! assert!(found.account.epsilon <= 5.0 && found.scale > 0.06);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | question | answer |
//! |---|---|
//! | the cost of these queries | [`Accountant::account`] |
//! | the same, to be published | [`Accountant::release`] |
//! | the cost of a number of queries whatever the votes are | [`Accountant::account_queries`] |
//! | the cost of answers after a check with noise of its own | [`Accountant::after`] |
//! | the same for several kinds of queries, if delta covers their samplers | [`PrivacyFilter::fixed_epsilon`] |
//! | the cost of queries that are chosen by looking at answers, and the rest of a budget | [`PrivacyFilter`] |
//! | a file that records the charges of a budget | [`ledger`] |
//! | noise for a target, queries for a budget | [`calibrate`] |
//! | the share of right labels, before the teachers vote | [`forecast`] |
//! | a lower bound from runs of the mechanism | [`mod@audit`] |
//! | composition: optimal (Kairouz, Oh, Viswanath), Gaussian, privacy loss distributions, conversions | [`composition`] |
//! | formulas one by one: pure epsilons, probabilities, moments, Rényi divergences | [`theory`] |
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

pub mod audit;
pub mod calibrate;
pub mod composition;
pub mod forecast;
pub mod ledger;
pub mod theory;

mod account;
mod accountant;
mod assumption;
mod checks;
mod claim;
mod collusion;
mod data_dependent;
mod data_independent;
mod delta;
mod epsilon_bound;
mod error;
mod event;
mod lattice_noise;
mod least_epsilon;
mod logarithms;
mod memo;
mod moment_bound;
mod moments;
mod neighbour_losses;
#[cfg(test)]
#[path = "../tests/neighbours.rs"]
mod neighbours;
mod noise_case;
mod orders;
mod outcome;
mod per_query;
mod price;
mod privacy_filter;
mod quadrature;
mod query_group;
mod release;
mod renyi;
mod rounding;
mod sampler;
mod smooth_release;
mod sound;
mod spent;
mod three_answers;
mod votes;

pub use account::Account;
pub use accountant::Accountant;
pub use assumption::{Adversary, Bound, Extent, NeighbouringRelation};
pub use checks::{AccountedChecks, Checks};
pub use claim::UNDIVIDED;
pub use delta::Delta;
pub use epsilon_bound::CompositionMethod;
pub use error::AccountError;
pub use event::PrivacyEvent;
pub use price::{Price, PriceError, PriceLimit, without_protection};
pub use privacy_filter::{Budget, PrivacyFilter, QueryBatch};
pub use release::{Release, ReleaseOptions};
pub use rounding::{epsilon_text, round_up};
pub use spent::{CompositionRule, Samplers, Spent};

// The noise of an event, so that an account needs this crate only.
pub use speed_mechanism::{
    HonestRatio, InverseScale, Mechanism, MechanismError, MechanismKind, NoiseCoins, NoiseDeviation, NoiseGenerator,
};
