//! Optimal composition of pure epsilons (Kairouz, Oh and Viswanath 2015): the worst mechanism is randomised response, so
//! the composition of randomised responses is exact.

use std::collections::BTreeMap;

use statrs::function::gamma::ln_gamma;

use super::halved;

/// Error of sums of logarithms, a generous bound, in the logarithm of delta.
const MARGIN: f64 = 1e-10;
/// Terms that together are less than this part of a sum are replaced by their bound.
const NEGLIGIBLE: f64 = 1e-18;

/// Returns the least delta at which `queries` queries of `epsilon` each are (`total`, delta)-differentially private:
/// `sum over i of C(k, i) (e^{(k - i) epsilon} - e^{total + i epsilon})_+ / (1 + e^epsilon)^k`.
pub fn optimal_delta(epsilon: f64, queries: usize, total: f64) -> f64 {
    Responses::new(epsilon, queries).delta(total).0
}

/// Returns the least total epsilon of `queries` queries of `epsilon` each at `delta`, rounded up.
pub fn optimal_epsilon(epsilon: f64, queries: usize, delta: f64) -> f64 {
    let allowed = delta * (1.0 - margin(queries as f64));
    let responses = Responses::new(epsilon, queries);
    smallest(queries as f64 * epsilon, |total| responses.delta(total).0 <= allowed)
}

/// Returns the least total epsilon of queries of different epsilons at `delta`, rounded up. Each epsilon is given with
/// its number of queries.
///
/// Exact composition of different epsilons is #P-complete (Murtagh and Vadhan 2016), so losses are rounded up to a grid
/// of a hundred-thousandth of the sum of all epsilons. The result is an upper bound, at most one step per different
/// epsilon above the optimum.
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
            let losses = Losses::from_groups(groups, delta);
            // Rounded up, because it is returned without being evaluated.
            let all: f64 = groups.iter().map(|&(epsilon, times)| epsilon * times as f64).sum::<f64>() * (1.0 + 1e-12);
            let times: f64 = groups.iter().map(|&(_, times)| times as f64).sum();
            let allowed = delta * (1.0 - margin(times));
            smallest(all, |total| losses.delta(total) <= allowed).min(all)
        }
    }
}

/// Returns the margin for this number of queries: beyond some hundred thousand queries `ln_gamma` loses digits.
fn margin(queries: f64) -> f64 {
    MARGIN * (1.0 + queries * 1e-3)
}

/// The losses of `k` randomised responses: `(k - 2 i) epsilon` with the binomial probability that `i` of them are
/// false.
///
/// Probabilities are computed from the largest on, each from the one before. The ratio of neighbouring probabilities
/// only falls, so where it is below 1 a geometric series bounds all remaining ones. The number of terms of a sum is
/// about the width of the binomial distribution, about ten times the square root of `k`.
struct Responses {
    epsilon: f64,
    k: f64,
    /// The likeliest number of false responses.
    mode: f64,
}

/// A probability relative to the first one of a walk, and the ratio of the next probability to it.
#[derive(Clone, Copy)]
struct Term {
    i: f64,
    weight: f64,
    ratio: f64,
}

impl Term {
    /// Bounds the sum of all terms after this one.
    fn rest(self) -> f64 {
        if self.ratio < 1.0 { self.weight * self.ratio / (1.0 - self.ratio) } else { f64::INFINITY }
    }
}

impl Responses {
    fn new(epsilon: f64, queries: usize) -> Self {
        let k = queries as f64;
        let mode = ((k + 1.0) / (1.0 + epsilon.exp())).floor().clamp(0.0, k);
        Self { epsilon, k, mode }
    }

    /// Returns the loss if `i` responses are false.
    fn loss(&self, i: f64) -> f64 {
        (self.k - 2.0 * i) * self.epsilon
    }

    /// Returns the logarithm of the probability of `i` false responses.
    fn log_probability(&self, i: f64) -> f64 {
        let k = self.k;
        let log_ways = ln_gamma(k + 1.0) - ln_gamma(i + 1.0) - ln_gamma(k - i + 1.0);
        log_ways - i * self.epsilon - k * (-self.epsilon).exp().ln_1p()
    }

    /// Iterates over the terms from `start` to `end`, both included.
    fn walk(&self, start: f64, end: f64) -> impl Iterator<Item = Term> {
        let (k, epsilon, up) = (self.k, self.epsilon, end >= start);
        let ratio = move |i: f64| match () {
            () if i == end => 0.0,
            () if up => (k - i) / (i + 1.0) * (-epsilon).exp(),
            () => i / (k - i + 1.0) * epsilon.exp(),
        };
        let first = Term { i: start, weight: 1.0, ratio: ratio(start) };
        std::iter::successors(Some(first), move |term| {
            let i = if up { term.i + 1.0 } else { term.i - 1.0 };
            (term.i != end).then(|| Term { i, weight: term.weight * term.ratio, ratio: ratio(i) })
        })
    }

    /// Returns `E[(1 - e^{total - loss})_+]`, and the number of terms summed.
    fn delta(&self, total: f64) -> (f64, usize) {
        let excess = |i: f64| self.loss(i) - total;
        // The largest number of false responses whose loss is above the total.
        let mut last = ((self.k - total / self.epsilon) / 2.0).floor().clamp(0.0, self.k);
        if last.is_nan() {
            last = 0.0;
        }
        while last < self.k && excess(last + 1.0) > 0.0 {
            last += 1.0;
        }
        while excess(last) <= 0.0 {
            if last == 0.0 {
                return (0.0, 0);
            }
            last -= 1.0;
        }
        let start = last.min(self.mode);
        let (mut sum, mut terms) = (0.0, 0);
        for (from, end) in [(start, 0.0), (start, last)] {
            // The second walk omits its first term, which the first walk included.
            for term in self.walk(from, end).skip(usize::from(terms > 0)) {
                sum += term.weight * -(-excess(term.i)).exp_m1();
                terms += 1;
                if term.rest() <= NEGLIGIBLE * sum {
                    sum += term.rest();
                    break;
                }
            }
        }
        (self.log_probability(start).exp() * sum, terms)
    }
}

/// The distribution of the sum of losses on a grid, with every loss rounded up.
struct Losses {
    step: f64,
    /// Entry `i` is the probability that the sum is `first + i` steps.
    first: i64,
    probabilities: Vec<f64>,
    /// The probability that was left out: it counts as an infinite loss.
    infinite: f64,
}

impl Losses {
    fn from_groups(groups: &[(f64, usize)], delta: f64) -> Self {
        // Each group is an exact binomial; only its grid positions are rounded, once for the entire group.
        let all: f64 = groups.iter().map(|&(epsilon, times)| epsilon * times as f64).sum();
        let step = all / 100_000.0;
        let mut sum = Self { step, first: 0, probabilities: vec![1.0], infinite: 0.0 };
        // Small enough that all groups together leave out only a small part of delta.
        let all: usize = groups.iter().map(|&(_, times)| times + 1).sum();
        let negligible = 1e-12 * delta / all as f64;
        for &(epsilon, times) in groups {
            sum = sum.plus(epsilon, times, negligible);
        }
        sum
    }

    fn plus(&self, epsilon: f64, times: usize, negligible: f64) -> Self {
        let responses = Responses::new(epsilon, times);
        let largest = responses.log_probability(responses.mode).exp();
        let mut terms: Vec<(i64, f64)> = Vec::new();
        let mut left_out = 0.0;
        for end in [0.0, responses.k] {
            // The second walk omits its first term, which the first walk included.
            for term in responses.walk(responses.mode, end).skip(usize::from(!terms.is_empty())) {
                let place = responses.loss(term.i) / self.step;
                let place = (place + 1e-12 * place.abs()).ceil() as i64;
                terms.push((place, largest * term.weight));
                if largest * term.rest() <= negligible {
                    left_out += largest * term.rest();
                    break;
                }
            }
        }
        let lowest = terms.iter().map(|&(place, _)| place).min().unwrap_or(0);
        let highest = terms.iter().map(|&(place, _)| place).max().unwrap_or(0);
        let mut probabilities = vec![0.0; self.probabilities.len() + (highest - lowest) as usize];
        for (place, probability) in terms {
            let offset = (place - lowest) as usize;
            for (to, from) in probabilities[offset..].iter_mut().zip(&self.probabilities) {
                *to += probability * from;
            }
        }
        let infinite = self.infinite + left_out * (1.0 + 1e-9);
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

/// Returns the smallest number from 0 to `most` that is enough, rounded up. `most` itself is taken for enough, and may have been
/// rounded down once.
fn smallest(most: f64, enough: impl Fn(f64) -> bool) -> f64 {
    if enough(0.0) {
        return 0.0;
    }
    halved([0.0, most.next_up()], 200, enough)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums every term of the definition, in logarithms.
    fn all_terms(epsilon: f64, queries: usize, total: f64) -> f64 {
        let responses = Responses::new(epsilon, queries);
        let excess = |i: f64| (responses.loss(i) - total).max(0.0);
        (0..=queries).map(|i| i as f64).map(|i| responses.log_probability(i).exp() * -(-excess(i)).exp_m1()).sum()
    }

    #[test]
    fn sums_from_the_largest_term_equal_the_sums_of_all_terms() {
        for epsilon in [1e-4, 0.02, 0.2, 1.0, 3.0, 40.0, 800.0] {
            for queries in [1, 2, 7, 100, 3_001] {
                let most = epsilon * queries as f64;
                for share in [-0.3, 0.0, 1e-9, 0.1, 0.33, 0.5, 0.9, 0.999_999, 1.0, 1.5] {
                    let (found, all) =
                        (optimal_delta(epsilon, queries, share * most), all_terms(epsilon, queries, share * most));
                    assert!(
                        (found - all).abs() <= 1e-11 * all,
                        "{epsilon} {queries} {share}: {found:e} against {all:e}"
                    );
                }
            }
        }
        assert_eq!(optimal_delta(0.0, 10, 0.0), 0.0);
        assert!((optimal_delta(0.0, 10, -1.0) - (1.0 - (-1f64).exp())).abs() < 1e-12);
    }

    #[test]
    fn the_work_grows_with_the_root_of_the_number_of_queries() {
        for (epsilon, queries, delta) in [(2e-3, 1_000_000, 1e-5), (2e-3, 2_000_000, 1e-280), (0.2, 1_000_000, 0.5)] {
            let total = optimal_epsilon(epsilon, queries, delta);
            let (found, terms) = Responses::new(epsilon, queries).delta(total);
            assert!(found <= delta && found >= delta * (1.0 - 1e-6), "{found:e} against {delta:e}");
            assert!(terms < 30 * queries.isqrt(), "{terms} terms for {queries} queries");
        }
    }

    #[test]
    fn a_million_queries_cost_as_their_gaussian_limit_says() {
        // Small losses of many queries are those of Gaussian noise (Dong, Roth and Su 2019): mu = epsilon times the
        // square root of k.
        let (epsilon, queries) = (2e-3, 1_000_000);
        let found = optimal_epsilon(epsilon, queries, 1e-5);
        let limit = super::super::gaussian_epsilon(epsilon * (queries as f64).sqrt(), 1e-5);
        assert!((found / limit - 1.0).abs() < 1e-3, "{found} against {limit}");
    }
}
