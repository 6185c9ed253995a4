//! Certified probabilities of one teacher's share of noise.
//!
//! The share is `A - B`, where `A` and `B` are negative binomial of shape `r = 1/n`, and `p = e^-gamma`. Its
//! probability generating function is `c (1 - p z)^-r (1 - p/z)^-r`. Taking the logarithmic derivative gives the
//! recurrence
//!
//! `(1 + p^2) k P_k = p (k - 1 + r) P_{k-1} + p (k + 1 - r) P_{k+1}`,
//!
//! so, for the ratio `rho_k = P_k / P_{k-1}`,
//!
//! `rho_k = p (1 - s/k) / (1 + p^2 - p (1 + s/k) rho_{k+1})` with `s = 1 - r`,
//!
//! which grows with `rho_{k+1}` and becomes independent of its start as it runs downwards. `rho` lies in [0, p],
//! because every term of `P_k = sum_j a_j a_{j+k}` shrinks by `p (r + j + k - 1)/(j + k) <= p` when k grows by one. So
//! the recurrence started from [0, p], in outward-rounded arithmetic, encloses every ratio.

use crate::enclosure::Enclosure;
use crate::fixed::Fixed;

/// Enclosures of `P_0, P_1, ..., P_K` (the distribution is symmetric), and a bound on the probability beyond.
pub(crate) struct SharePmf {
    pub(crate) probabilities: Vec<Enclosure>,
    /// At least `P[|share| > K]`.
    pub(crate) beyond: Fixed,
}

impl SharePmf {
    /// Returns the probabilities up to `largest` (at least 1) for inverse scale `gamma` and `teachers` teachers.
    pub(crate) fn new(gamma: f64, teachers: u32, largest: u32) -> Self {
        let one = Enclosure::ONE;
        let p = Enclosure::exp_negative(gamma);
        let one_plus_square = one.add(p.mul(p));
        let s = one.sub(one.div(Enclosure::integer(teachers)));

        let mut ratios = Vec::with_capacity(largest as usize);
        let mut ratio = Enclosure { low: Fixed::ZERO, high: p.high };
        for k in (1..=largest).rev() {
            let fraction = s.div(Enclosure::integer(k));
            let divisor = one_plus_square.sub(p.mul(one.add(fraction)).mul(ratio));
            ratio = p.mul(one.sub(fraction)).div(divisor);
            ratios.push(ratio);
        }

        // The weights P_k / P_0 and their sum give P_0, because the probabilities sum to one.
        let mut weights = vec![one];
        let mut weight = one;
        let mut sum = Enclosure::ZERO;
        for ratio in ratios.into_iter().rev() {
            weight = weight.mul(ratio);
            sum = sum.add(weight);
            weights.push(weight);
        }
        let beyond = weight.mul(p).div(one.sub(p)).high;
        let sum = Enclosure { low: sum.low, high: sum.high.add(beyond) };
        let total = one.add(sum).add(sum);
        let first = one.div(total);
        Self {
            probabilities: weights.into_iter().map(|weight| weight.mul(first)).collect(),
            beyond: beyond.add(beyond).mul_up(first.high),
        }
    }
}
