//! A lower bound on epsilon from runs of a mechanism. No correct claim can be below it.
//!
//! A mechanism runs many times on two neighbouring rows of votes. For one answer, chosen in separate runs, the bound
//! follows from the ratio of a lower confidence limit of its probability at one row and an upper limit at the other
//! (Clopper and Pearson 1934; Jagielski, Ullman and Oprea 2020). If a claim is below the bound, then, with the stated
//! confidence, the claim or the code is wrong.

use serde::{Deserialize, Serialize};
use statrs::function::beta::beta_reg;

mod argmax;

pub use argmax::{NoisyArgmax, ShareNoise, TruncatedShare};

/// Result of an audit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Audit {
    /// With the stated confidence, one run of the mechanism is not (epsilon, delta)-private for any epsilon below this,
    /// where delta is the delta of the audit.
    pub lower_bound: f64,
    /// The confidence of the bound.
    pub confidence: f64,
    /// The answer that gave the bound.
    pub answer: usize,
    /// Number of times that this answer came at the first and at the second row of votes.
    pub counts: [u64; 2],
    /// Runs at each row.
    pub runs: u64,
}

/// Audits one answer of a mechanism with `answers` possible answers. `run(neighbour)` returns an answer at the first or
/// second row of votes. A tenth of `runs` chooses the answer and the direction; the other runs give the bound.
///
/// A mechanism with these probabilities is not (epsilon, `delta`)-private for any epsilon below the bound.
pub fn audit_at(delta: f64, answers: usize, runs: u64, confidence: f64, mut run: impl FnMut(bool) -> usize) -> Audit {
    let mut count = |runs: u64| {
        let mut counts = vec![[0u64; 2]; answers.max(1)];
        for _ in 0..runs {
            for neighbour in [false, true] {
                let answer = run(neighbour).min(counts.len() - 1);
                counts[answer][usize::from(neighbour)] += 1;
            }
        }
        counts
    };
    let pilot_runs = (runs / 10).max(1);
    let pilot = count(pilot_runs);
    let mut best = (f64::NEG_INFINITY, 0, false);
    for (answer, &[first, second]) in pilot.iter().enumerate() {
        for (here, there, back) in [(first, second, false), (second, first, true)] {
            let bound = ratio_bound(delta, here, there, pilot_runs, confidence);
            if bound > best.0 {
                best = (bound, answer, back);
            }
        }
    }
    let (_, answer, back) = best;
    let runs = runs - pilot_runs.min(runs);
    let counts = count(runs)[answer];
    let (here, there) = if back { (counts[1], counts[0]) } else { (counts[0], counts[1]) };
    let lower_bound = ratio_bound(delta, here, there, runs, confidence).max(0.0);
    Audit { lower_bound, confidence, answer, counts, runs }
}

/// Returns `ln` of the lower limit of one probability, less delta, over the upper limit of the other. Each limit is
/// wrong with a probability of at most half of `1 - confidence`.
fn ratio_bound(delta: f64, here: u64, there: u64, runs: u64, confidence: f64) -> f64 {
    let wrong = (1.0 - confidence) / 2.0;
    let (low, high) = (lower_limit(here, runs, wrong), upper_limit(there, runs, wrong));
    if low > delta { ((low - delta) / high).ln() } else { f64::NEG_INFINITY }
}

/// Returns the lower confidence limit of a probability: the largest one below which `successes` or more of `runs` occur
/// with a probability of at most `wrong` (Clopper and Pearson 1934). More successes than runs count as `runs`.
pub(crate) fn lower_limit(successes: u64, runs: u64, wrong: f64) -> f64 {
    if successes == 0 || runs == 0 {
        return 0.0;
    }
    // P[X >= s] = I_p(s, n - s + 1) grows with p.
    let (s, n) = (successes.min(runs) as f64, runs as f64);
    bisect(|p| beta_reg(s, n - s + 1.0, p) <= wrong).0
}

/// Returns the upper confidence limit of a probability: the smallest one above which `successes` or fewer occur with a
/// probability of at most `wrong`.
pub(crate) fn upper_limit(successes: u64, runs: u64, wrong: f64) -> f64 {
    if successes >= runs {
        return 1.0;
    }
    let (s, n) = (successes as f64, runs as f64);
    bisect(|p| 1.0 - beta_reg(s + 1.0, n - s, p) > wrong).1
}

/// Finds the place in (0, 1) where a predicate that holds near 0 stops holding. Returns a point where it holds and one
/// where it does not.
fn bisect(holds: impl Fn(f64) -> bool) -> (f64, f64) {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if holds(middle) { low = middle } else { high = middle }
    }
    (low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clopper_pearson_limits_agree_with_scipy() {
        // scipy.stats.beta.ppf: 95 % two-sided limits for 3 of 10 and 0 of 20.
        assert!((lower_limit(3, 10, 0.025) - 0.066_739_51).abs() < 1e-7);
        assert!((upper_limit(3, 10, 0.025) - 0.652_452_85).abs() < 1e-7);
        assert_eq!(lower_limit(0, 20, 0.025), 0.0);
        assert!((upper_limit(0, 20, 0.025) - (1.0 - 0.025f64.powf(1.0 / 20.0))).abs() < 1e-9);
        assert_eq!(upper_limit(5, 5, 0.01), 1.0);
        assert_eq!(lower_limit(5, 3, 0.05), lower_limit(3, 3, 0.05));
    }

    #[test]
    fn a_mechanism_with_a_known_loss_is_bounded_from_below_and_closely() {
        // Randomised response with ratio 3: ln 3 = 1.0986. A plain counter stands in for randomness.
        let mut state = 0u64;
        let found = audit_at(0.0, 2, 200_000, 0.999, |neighbour| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let says_one = (state >> 33) % 4 < if neighbour { 1 } else { 3 };
            usize::from(says_one)
        });
        assert!(found.lower_bound < 3f64.ln() && found.lower_bound > 3f64.ln() - 0.05, "{found:?}");
    }
}
