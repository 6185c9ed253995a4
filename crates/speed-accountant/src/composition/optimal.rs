//! Optimal composition of pure epsilons (Kairouz, Oh and Viswanath 2015): the worst mechanism is randomised response, so
//! the composition of randomised responses is exact.

use std::collections::BTreeMap;

use statrs::function::gamma::ln_gamma;

/// Error of sums of logarithms, generously, in the logarithm of delta.
const MARGIN: f64 = 1e-10;

/// Returns the least delta at which `queries` queries of `epsilon` each are (`total`, delta)-differentially private: `sum over i
/// of C(k, i) (e^{(k - i) epsilon} - e^{total + i epsilon})_+ / (1 + e^epsilon)^k`.
#[must_use]
pub fn optimal_delta(epsilon: f64, queries: usize, total: f64) -> f64 {
    let k = queries as f64;
    let log_one = epsilon + (-epsilon).exp().ln_1p();
    (0..=queries)
        .map(|i| {
            let i = i as f64;
            // The loss is (k - 2 i) epsilon.
            let excess = (k - 2.0 * i) * epsilon - total;
            if excess <= 0.0 {
                return 0.0;
            }
            let log_ways = ln_gamma(k + 1.0) - ln_gamma(i + 1.0) - ln_gamma(k - i + 1.0);
            (log_ways + (k - i) * epsilon - k * log_one).exp() * -(-excess).exp_m1()
        })
        .sum()
}

/// Returns the least total epsilon of `queries` queries of `epsilon` each at `delta`, rounded up.
#[must_use]
pub fn optimal_epsilon(epsilon: f64, queries: usize, delta: f64) -> f64 {
    // Beyond some hundred thousand queries ln_gamma loses digits: the margin grows with them.
    let allowed = delta * (1.0 - MARGIN * (1.0 + queries as f64 * 1e-4));
    smallest(queries as f64 * epsilon, |total| optimal_delta(epsilon, queries, total) <= allowed)
}

/// Returns the same for queries of different epsilons: each with the number of queries that have it.
///
/// Exact composition of different epsilons is #P-complete (Murtagh and Vadhan 2016), so losses are rounded up to a grid of
/// a hundred-thousandth of the sum of all epsilons: an upper bound, at most one step a different epsilon above the optimum.
#[must_use]
pub fn optimal_epsilon_of(queries: &[(f64, usize)], delta: f64) -> f64 {
    let mut distinct: BTreeMap<u64, (f64, usize)> = BTreeMap::new();
    for &(epsilon, times) in queries.iter().filter(|(epsilon, times)| *epsilon > 0.0 && *times > 0) {
        distinct.entry(epsilon.to_bits()).or_insert((epsilon, 0)).1 += times;
    }
    let groups: Vec<(f64, usize)> = distinct.into_values().collect();
    match groups.as_slice() {
        [] => 0.0,
        &[(epsilon, times)] => optimal_epsilon(epsilon, times, delta),
        groups => {
            let losses = Losses::of(groups, delta);
            let all: f64 = groups.iter().map(|&(epsilon, times)| epsilon * times as f64).sum();
            smallest(all, |total| losses.delta(total) <= delta * (1.0 - MARGIN)).min(all)
        }
    }
}

/// The distribution of the sum of losses on a grid, every loss rounded up.
struct Losses {
    step: f64,
    /// Probability that the sum is `first + i` steps.
    first: i64,
    probabilities: Vec<f64>,
    /// Probability that was left out: of a loss that may be anything.
    infinite: f64,
}

impl Losses {
    fn of(groups: &[(f64, usize)], delta: f64) -> Self {
        // Each group is a binomial, exact; only its places are rounded, once for the whole group.
        let all: f64 = groups.iter().map(|&(epsilon, times)| epsilon * times as f64).sum();
        let step = all / 100_000.0;
        let mut sum = Self { step, first: 0, probabilities: vec![1.0], infinite: 0.0 };
        // So little that all of it together is a small part of delta.
        let all: usize = groups.iter().map(|&(_, times)| times + 1).sum();
        let negligible = 1e-12 * delta / all as f64;
        for &(epsilon, times) in groups {
            sum = sum.plus(epsilon, times, negligible);
        }
        sum
    }

    fn plus(&self, epsilon: f64, times: usize, negligible: f64) -> Self {
        let k = times as f64;
        let log_one = epsilon + (-epsilon).exp().ln_1p();
        type Terms = Vec<(i64, f64)>;
        let (terms, left_out): (Terms, Terms) = (0..=times)
            .map(|i| {
                let i = i as f64;
                let log_ways = ln_gamma(k + 1.0) - ln_gamma(i + 1.0) - ln_gamma(k - i + 1.0);
                let place = ((k - 2.0 * i) * epsilon / self.step * (1.0 + 1e-12)).ceil() as i64;
                (place, (log_ways + (k - i) * epsilon - k * log_one).exp())
            })
            .partition(|&(_, probability)| probability > negligible);
        let lowest = terms.iter().map(|&(place, _)| place).min().unwrap_or(0);
        let highest = terms.iter().map(|&(place, _)| place).max().unwrap_or(0);
        let mut probabilities = vec![0.0; self.probabilities.len() + (highest - lowest) as usize];
        for (place, probability) in terms {
            let offset = (place - lowest) as usize;
            for (to, from) in probabilities[offset..].iter_mut().zip(&self.probabilities) {
                *to += probability * from;
            }
        }
        let infinite = self.infinite + left_out.iter().map(|term| term.1).sum::<f64>() * (1.0 + 1e-9);
        Self { step: self.step, first: self.first + lowest, probabilities, infinite }
    }

    /// Returns `E[(1 - e^{total - loss})_+]`.
    fn delta(&self, total: f64) -> f64 {
        self.infinite
            + self
                .probabilities
                .iter()
                .zip(self.first..)
                .map(|(probability, place)| (place as f64 * self.step - total, probability))
                .filter(|(excess, _)| *excess > 0.0)
                .map(|(excess, probability)| probability * -(-excess).exp_m1())
                .sum::<f64>()
    }
}

/// Returns the smallest number from 0 to `most` that is enough, rounded up.
fn smallest(most: f64, enough: impl Fn(f64) -> bool) -> f64 {
    if enough(0.0) {
        return 0.0;
    }
    let (mut low, mut high) = (0.0, most);
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if enough(middle) { high = middle } else { low = middle }
    }
    high
}
