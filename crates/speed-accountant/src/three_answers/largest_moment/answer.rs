//! Bounds on the three answers, and the excess of a moment that they allow.

use crate::sound::larger;

/// The excess of the moment of one order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Excess {
    pub(crate) l: f64,
    pub(crate) removed: f64,
    pub(crate) rounding: f64,
}

/// Bounds on one answer: of its probabilities, and of the ratio of the first to the second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub(crate) here: f64,
    pub(crate) there: f64,
    /// Logarithms.
    pub(crate) lowest: f64,
    pub(crate) highest: f64,
}

impl Excess {
    /// Returns the larger bound of both directions.
    pub(super) fn of(&self, answers: &[Answer]) -> f64 {
        let sum = |reversed: bool| -> f64 {
            let term = |answer: &Answer| if reversed { answer.reversed() } else { *answer }.excess(self);
            answers.iter().map(term).sum()
        };
        larger(sum(false), sum(true))
    }
}

impl Answer {
    /// Creates the exact answer with these logarithms of its probabilities.
    pub(crate) fn of_logarithms(here: f64, there: f64) -> Self {
        // Both are 0 beyond the support.
        let ratio = if here == there { 0.0 } else { here - there };
        Self { here: here.exp(), there: there.exp(), lowest: ratio, highest: ratio }
    }

    /// Creates the bounds of an answer that is unlikely on both sides.
    pub(super) fn unlikely(most: f64) -> Self {
        Self { here: most, there: most, lowest: f64::NEG_INFINITY, highest: f64::INFINITY }
    }

    /// Creates the bounds of an answer whose probabilities are at most these and less by at most `off`.
    pub(super) fn about(here: f64, there: f64, off: f64) -> Self {
        let ln = |here: f64, there: f64| if here > 0.0 { (here / there.max(0.0)).ln() } else { f64::NEG_INFINITY };
        Self { here, there, lowest: ln(here - off, there), highest: ln(here, there - off) }
    }

    /// Returns the same bounds with both sides exchanged.
    pub(crate) fn reversed(self) -> Self {
        Self { here: self.there, there: self.here, lowest: -self.highest, highest: -self.lowest }
    }

    /// Bounds the probability of this answer times the power `l` of its ratio, or 0 if the answer is left out.
    pub(crate) fn moment(&self, of: &Excess) -> f64 {
        let highest = self.highest + of.rounding;
        if self.here == 0.0 || self.here < of.removed && self.highest > 0.0 {
            return 0.0;
        }
        self.here * (of.l * highest).exp() * (1.0 + 1e-11)
    }

    /// Bounds the term of this answer in the excess.
    pub(crate) fn excess(&self, of: &Excess) -> f64 {
        let Excess { l, removed, rounding } = *of;
        let (mut lowest, mut highest) = (self.lowest - rounding, self.highest + rounding);
        if self.here < removed {
            (lowest, highest) = (lowest.min(0.0), highest.min(0.0));
        }
        let phi = larger(phi(lowest, l), phi(highest, l));
        // An infinite ratio stays infinite, even if the other probability is 0.
        if phi == f64::INFINITY { phi } else { self.there * phi * (1.0 + 1e-11) }
    }
}

/// Returns `r^{l+1} - 1 - (l + 1)(r - 1)` for `ln r`.
pub(super) fn phi(log_ratio: f64, l: f64) -> f64 {
    let order = l + 1.0;
    let power = order * log_ratio;
    if power.abs() < 0.02 && log_ratio.abs() < 0.02 {
        // The sum over j >= 2 of (order^j - order) log_ratio^j / j!; the terms left out are below a rounding error.
        let (mut sum, mut term, mut power) = (0.0, log_ratio, order);
        for j in 2..=8 {
            term *= log_ratio / f64::from(j);
            power *= order;
            sum += (power - order) * term;
        }
        return sum.max(0.0);
    }
    let power = power.exp_m1();
    // Otherwise both terms may be infinite.
    if power == f64::INFINITY { power } else { larger(power - order * log_ratio.exp_m1(), 0.0) }
}

/// Bounds the excess where both marks are beyond the window, on the same or on different sides.
pub(super) fn outside_both(tail: f64, excess: &Excess) -> f64 {
    let rare = Answer::unlikely(tail);
    let certain = Answer { here: 1.0, there: 1.0, lowest: 2.0 * (-tail).ln_1p(), highest: -2.0 * (-tail).ln_1p() };
    excess.of(&[rare, rare, certain])
}

#[cfg(test)]
mod tests {
    use super::phi;

    #[test]
    fn the_divergence_has_no_cancellation() {
        for (log_ratio, l) in [(1e-7, 3.0), (-1e-5, 0.02), (3e-4, 60.0), (0.019, 0.05), (0.02, 0.99), (-0.3, 20.0)] {
            // By quadrature of the second derivative: (l + 1) l times the integral of r^{l - 1} (r_1 - r).
            let end = f64::exp_m1(log_ratio);
            let steps = 20_000;
            let integral: f64 = (0..steps)
                .map(|i| {
                    let x = end * (f64::from(i) + 0.5) / f64::from(steps);
                    (1.0 + x).powf(l - 1.0) * (end - x) * end / f64::from(steps)
                })
                .sum();
            let exact = (l + 1.0) * l * integral;
            assert!((phi(log_ratio, l) / exact - 1.0).abs() < 1e-5, "{log_ratio} {l}: {} {exact}", phi(log_ratio, l));
        }
        for log_ratio in [715.0, f64::INFINITY, f64::NAN] {
            assert_eq!(phi(log_ratio, 2.0), f64::INFINITY);
        }
        assert_eq!(phi(f64::NEG_INFINITY, 2.0), 2.0);
        assert_eq!(phi(0.0, 2.0), 0.0);
    }
}
