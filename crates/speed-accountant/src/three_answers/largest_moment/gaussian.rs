//! Gaussian noise as the sum of discrete Gaussian noise on a lattice and of noise that the adversary may see.
//!
//! Let `v` be the variance of the noise of one class, in squared places of a lattice that divides a vote into `s`
//! places. Let `G` be discrete Gaussian noise of variance `v'` on this lattice, so `P[G = k]` is proportional to
//! `e^{-k^2 / 2 v'}`, and let `V` be independent Gaussian noise of variance `w = v - v'`.
//!
//! 1. *`G + V` is Gaussian noise, but for a factor near 1.* With `t = v' w / v` and `c = x v' / v`,
//!    `k^2 / 2 v' + (x - k)^2 / 2 w = x^2 / 2 v + (k - c)^2 / 2 t`. So the density of `G + V` at `x` is a constant
//!    times `e^{-x^2 / 2 v} sum over k of e^{-(k - c)^2 / 2 t}`. By Poisson summation this sum is
//!    `sqrt(2 pi t) (1 + 2 sum over j >= 1 of e^{-2 pi^2 t j^2} cos(2 pi j c))`, and the constant is that of the
//!    density, within a part of `2.01 e^{-2 pi^2 v'}`. For `t >= 2.3` the density is that of Gaussian noise within a
//!    factor `1 +- 4e-20`.
//! 2. *Marks are integers.* Show the adversary also `V` of both classes and `m`. Class `a` reaches its mark if `G_a` is
//!    at least `A`, the smallest integer that is at least `s (m - n_a) - V_a`. If both classes exceed `A` and `B` by
//!    different integers, the larger excess wins; otherwise the fractions alone decide, which `V` determines. These are
//!    the marks and the two tie rules of the three answers ([`crate::three_answers`]). A moved vote changes the marks
//!    by exactly `s` places. `G` is log-concave.
//! 3. *A vote of several places.* The ratio of `P[o]` at `(A, B)` to that at `(A + s, B - s)` is a product of `s`
//!    ratios of neighbours one place apart, at `(A + i, B - i)`. Each of them grows with `A` and falls with `B`, and so
//!    does the product. Probabilities are monotone as before. So rectangles are bounded by their corners, and the two
//!    cases outside hold with tails `s` places further in.
//! 4. *The factor.* Two noises at two votes change a loss by at most 2e-19 and a probability by a part of at most
//!    1e-19. The margins of every query (1e-9 of the excess, 1e-12 of the charge) cover it.
//!
//! `s` is the smallest number with at least 40 places in a deviation, so `G` has at most 0.15 % less variance than the
//! noise.

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
