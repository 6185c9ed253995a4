//! Binomial noise: the number of heads of fair coins.
//!
//! Every teacher tosses the same number of coins for each class, so the sum of `n` coins is Binomial(n, 1/2). It is
//! counted here from half of the coins, rounded down, so that it is symmetric about 0 for an even number of coins and
//! about 1/2 for an odd one. Nothing else depends on the constant: all classes have the same number of coins, so an
//! argmax does not see it. The support is bounded, and the deviation is `sqrt(n) / 2`.
//!
//! With `N - h` tails for `h` heads the ratio of neighbours is `P[h + 1] / P[h] = (N - h) / (h + 1)`, and the tails
//! follow from `R_h = P[X >= h] / P[h] = 1 + P[h + 1] / P[h] R_{h+1}`, a sum of positive terms.

use crate::{HonestRatio, Lattice, NoiseCoins};

/// Binomial noise of one class, or of the difference of two, counted from half of its coins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binomial {
    coins: u64,
}

impl Binomial {
    /// Creates the noise of one class if a ratio `tau` of the teachers toss their coins, which are `coins` of all
    /// teachers together. Only entire coins count.
    pub fn of_class(coins: NoiseCoins, tau: HonestRatio) -> Self {
        Self { coins: coins.of_ratio(tau) }
    }

    /// Creates the difference of two classes' noise if a ratio `tau` of the teachers toss their coins. A tail of the
    /// second class counts like a head of the first, so the difference is the noise of twice as many coins.
    pub fn of_difference(coins: NoiseCoins, tau: HonestRatio) -> Self {
        Self { coins: 2 * coins.of_ratio(tau) }
    }

    /// Returns the number of coins.
    pub fn coins(&self) -> u64 {
        self.coins
    }

    /// Returns the variance, in square votes.
    pub fn variance(&self) -> f64 {
        self.coins as f64 / 4.0
    }

    /// Computes the probabilities and tails up to `reach` votes from the centre, in time proportional to the smaller of
    /// `reach + 10 sigma` and the support.
    pub fn lattice(&self, reach: usize) -> Lattice {
        let odd = self.coins % 2;
        // Heads beyond the centre, rounded up; `last` is the support's end.
        let (centre, last) = (self.coins / 2 + odd, (self.coins / 2) as usize);
        // The part that a tail leaves out beyond `start` shrinks on the way down to `reach` like the noise itself.
        let squares = (reach as f64).powi(2) + 90.0 * (self.variance() + reach as f64) + 10_000.0;
        let start = (squares.sqrt().ceil() as usize).min(last);
        let mut entries = vec![(f64::NEG_INFINITY, 0.0); reach + 1];
        let mut tail = 1.0;
        for k in (0..=start).rev() {
            let heads = centre + k as u64;
            let ratio = (self.coins - heads) as f64 / (heads + 1) as f64;
            tail = 1.0 + ratio * tail;
            if let Some(entry) = entries.get_mut(k) {
                *entry = (ratio.ln(), tail);
            }
        }
        if odd == 1 { Lattice::about_one_half(entries) } else { Lattice::from_ratios(entries) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binomial(coins: u64) -> Binomial {
        Binomial::of_class(NoiseCoins::new(coins).expect("valid"), HonestRatio::ALL)
    }

    /// Row `coins` of Pascal's triangle, divided by its sum.
    fn pascal(coins: u64) -> Vec<f64> {
        let mut row = vec![1.0];
        for _ in 0..coins {
            let shifted = row.iter().copied().chain([0.0]).zip([0.0].into_iter().chain(row.iter().copied()));
            row = shifted.map(|(a, b)| 0.5 * (a + b)).collect();
        }
        row
    }

    #[test]
    fn probabilities_and_tails_are_those_of_pascals_triangle() {
        for coins in [1, 2, 3, 10, 31, 200, 801] {
            let (row, lattice) = (pascal(coins), binomial(coins).lattice(500));
            assert_eq!(lattice.twice_centre(), (coins % 2) as i64);
            let square = |(heads, p): (usize, &f64)| p * (heads as f64 - 0.5 * coins as f64).powi(2);
            let variance: f64 = row.iter().enumerate().map(square).sum();
            assert!((variance / binomial(coins).variance() - 1.0).abs() < 1e-12, "{coins} coins: {variance}");
            for (heads, &p) in row.iter().enumerate() {
                let k = heads as i64 - (coins / 2) as i64;
                let at_least: f64 = row[heads..].iter().rev().sum();
                let at_most: f64 = row[..=heads].iter().sum();
                for (found, exact) in
                    [(lattice.log_pmf(k), p), (lattice.log_survival(k), at_least), (lattice.log_below(k), at_most)]
                {
                    assert!((found - exact.ln()).abs() < 1e-11, "{coins} coins, {k}: {found} against {}", exact.ln());
                }
            }
            let beyond = (coins - coins / 2 + 1) as i64;
            assert_eq!(lattice.log_pmf(beyond), f64::NEG_INFINITY);
            assert_eq!(lattice.log_survival(beyond).exp(), 0.0);
            assert_eq!(lattice.log_below(beyond), 0.0);
        }
    }

    #[test]
    fn many_coins_have_the_reference_digits() {
        // ln P[X = k] and ln P[X >= k], computed with mpmath at 40 digits.
        for (coins, k, log_pmf, log_survival) in [
            (57_600, 0, -5.706_434_616_264_496, -0.689_828_189_933_852_3),
            (57_600, 300, -8.831_436_876_963_197, -5.069_947_977_556_619),
            (57_600, 1_500, -83.865_436_105_016_91, -81.558_872_230_235_75),
            (1_000_001, 1, -7.133_547_881_625_365, -std::f64::consts::LN_2),
            (1_000_001, 2_500, -19.628_574_933_558_306, -15.054_666_146_557_4),
        ] {
            let lattice = binomial(coins).lattice(3_000);
            assert!((lattice.log_pmf(k) - log_pmf).abs() < 1e-11, "{coins} {k}: {}", lattice.log_pmf(k));
            assert!((lattice.log_survival(k) - log_survival).abs() < 1e-11, "{coins} {k}");
        }
    }
}
