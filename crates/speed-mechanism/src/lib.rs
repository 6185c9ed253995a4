//! Noise mechanisms of SPEED: the distribution of the noise, its shares per teacher, and its tails.
//!
//! Its three main uses:
//! - draw one teacher's share of the noise, exactly ([`NoiseShare`], [`SkellamShare`]);
//! - bound the sum of all shares, for the range that an aggregation must hold ([`sum_support_bound`]);
//! - name a noise with its scale, for accounts and rounds ([`Mechanism`]).
//!
//! The paper (section 3.2) lets every teacher add a share of Laplace noise to its one-hot vote, so that no party knows
//! the complete noise. Here the noise is an **integer** from the start: integers are encrypted, so integers are
//! analysed. Each of `n` teachers draws `A - B`, where `A` and `B` are negative binomial of shape `1/n`. The sum over
//! all teachers has the discrete Laplace distribution, and the sum over a ratio `tau` of them a generalised one of
//! shape `tau`.
//!
//! | module | content |
//! |---|---|
//! | [`laplace`] | the paper's continuous noise, analytically (Theorem 2 and Proposition 4 are about it) |
//! | [`discrete_laplace`] | the integer noise, analytically |
//! | [`NoiseShare`] | the sampler of one teacher's share of discrete Laplace noise |
//! | [`BinomialShare`] | the sampler of one teacher's share of binomial noise: the heads of its coins |
//! | [`SkellamShare`] | the sampler of one teacher's share of Skellam noise, the integer counterpart of Gaussian noise |
//! | [`DiscreteGaussian`] | distribution and sampler of integer noise that one party adds |
//! | [`sum_support_bound`] | the largest summed noise: the range that an aggregation must hold |
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod binomial_share;
mod enclosure;
mod erfc;
mod error;
mod exact;
mod fixed;
mod generator;
mod lattice;
mod mechanism;
mod parameters;
mod share;
mod share_pmf;
mod skellam_share;
mod tail;

pub mod binomial;
pub mod discrete_gaussian;
pub mod discrete_laplace;
pub mod gaussian;
pub mod laplace;
pub mod laplace_table;
pub mod skellam;

pub use binomial::Binomial;
pub use binomial_share::BinomialShare;
pub use discrete_gaussian::DiscreteGaussian;
pub use discrete_laplace::DiscreteLaplace;
pub use erfc::log_normal_survival;
pub use error::MechanismError;
pub use gaussian::Gaussian;
pub use generator::NoiseGenerator;
pub use laplace::GeneralisedLaplace;
pub use laplace_table::LaplaceTable;
pub use lattice::Lattice;
pub use mechanism::{Mechanism, MechanismKind};
pub use parameters::{HonestRatio, InverseScale, NoiseCoins, NoiseDeviation};
pub use share::NoiseShare;
pub use skellam::Skellam;
pub use skellam_share::SkellamShare;
pub use tail::{skellam_support_bound, sum_support_bound};
