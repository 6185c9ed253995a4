//! Composition of the privacy of single queries: conversion of moments, optimal composition of pure epsilons, exact
//! composition of Gaussian noise.

mod conversion;
mod convolution;
mod gaussian;
mod optimal;
mod profile;
mod skellam;
mod wide_skellam;

pub use conversion::{improved_epsilon, tail_bound_epsilon};
pub use convolution::Composition;
pub(crate) use convolution::{best_tilt, composed};
pub use gaussian::{gaussian_delta, gaussian_epsilon};
pub use optimal::{optimal_delta, optimal_epsilon, optimal_epsilon_of};
pub use profile::{PrivacyLossDistribution, PrivacyProfile};
pub(crate) use profile::{laplace_excess, pure_excess};
pub(crate) use skellam::skellam_epsilon;
pub(crate) use wide_skellam::wide_skellam_epsilon;

/// Halves an interval, whose upper end is enough, at most `times` times or until no number lies between its ends. Returns its upper
/// end.
fn halved([mut low, mut high]: [f64; 2], times: u32, enough: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..times {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if enough(middle) { high = middle } else { low = middle }
    }
    high
}

/// The largest number of queries that are composed: more would take too long.
pub(crate) const MAX_QUERIES: usize = 1_000_000;
