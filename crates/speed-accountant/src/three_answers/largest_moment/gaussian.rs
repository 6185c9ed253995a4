//! Gaussian noise as the sum of discrete Gaussian noise on a lattice and of noise that the adversary may see.
//!
//! Let `G` be discrete Gaussian noise of variance `v'` on the integers, and `V` independent Gaussian noise of variance `w`.
//! The density of `G + V` is that of Gaussian noise of variance `v = v' + w`, within a factor of `1 +- 2.01 e^{-2 pi^2 t}`
//! with `t = v' w / v` (Poisson summation). Given `V`, marks are integers. So `w` of a few squared places makes the three
//! answers with Gaussian noise as private as with `G`, for which every mark can be examined. docs/privacy.md, "Largest
//! moment", has the argument.

use speed_mechanism::{HonestRatio, NoiseDeviation};

/// `t`: the factor is within `1 +- 4e-20`, far within the margins of the bound.
const SMOOTHING: f64 = 2.3;
/// A lattice finer than votes is used for noise of fewer places than this. `G` has a part of about `SMOOTHING` over its
/// square less variance than the noise.
const PLACES: f64 = 40.0;
/// With noise of fewer votes the largest moments of small deltas are at the edge of the removed answers, where the division
/// of rectangles takes long.
const NARROWEST: f64 = 5.0;
/// Wider noise takes too long. It is the sum of noise of this deviation and of noise that the adversary may see.
const WIDEST: f64 = 128.0;
/// Two noisy counts of noise of more votes reveal less than the answer with noise of `WIDEST`.
const TOO_WIDE: f64 = 1.25 * WIDEST;

/// The part `G` of Gaussian noise, on a lattice that divides a vote.
#[derive(Clone, Copy, Debug)]
pub(super) struct OnLattice {
    /// In places of the lattice.
    pub(super) deviation: f64,
    /// Places in a vote.
    pub(super) vote: i64,
}

impl OnLattice {
    /// Returns `None` for noise that is too narrow or too wide.
    pub(super) fn new(sigma: NoiseDeviation, tau: HonestRatio) -> Option<Self> {
        let votes = sigma.get() * tau.get().sqrt();
        if !(NARROWEST..=TOO_WIDE).contains(&votes) {
            return None;
        }
        let votes = votes.min(WIDEST);
        let vote = (PLACES / votes).ceil();
        let variance = (votes * vote).powi(2);
        // `v' w / v` is then above `SMOOTHING`.
        let seen = SMOOTHING * (1.0 + 2.0 * SMOOTHING / variance);
        Some(Self { deviation: (variance - seen).sqrt(), vote: vote as i64 })
    }

    /// Returns a place that discrete Gaussian noise reaches with at most a probability, given as its logarithm.
    pub(super) fn reaching(deviation: f64, log_tail: f64) -> i64 {
        // P[G >= m] is at most P[N >= m - 1], and that at most e^{-(m - 1)^2 / 2 v} / 2.
        (deviation * (-2.0 * log_tail).sqrt()).ceil() as i64 + 1
    }
}
