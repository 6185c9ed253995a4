//! Lower bounds of the least epsilon of composed privacy losses at a delta.

use std::sync::OnceLock;

/// Relative allowance for rounding in sums, in the direction that makes epsilon smaller.
const ROUNDING: f64 = 1e-10;
/// Outcomes that together are less likely than `e^-NEGLIGIBLE` delta are left out.
const NEGLIGIBLE: f64 = 32.0;
/// The largest number of outcomes, over all runs, that are enumerated.
const MAX_OUTCOMES: usize = 300_000;

/// One outcome: the logarithm of its probability, and its privacy loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) log_p: f64,
    pub(crate) loss: f64,
}

/// Lists the outcomes of a query at two neighbouring sets of votes, from the logarithms of their probabilities.
pub(crate) fn outcomes(here: &[f64], there: &[f64]) -> Vec<Outcome> {
    let possible = here.iter().zip(there).filter(|(here, _)| **here > f64::NEG_INFINITY);
    possible.map(|(&log_p, &log_there)| Outcome { log_p, loss: log_p - log_there }).collect()
}

/// All outcomes of runs of independent queries, each with a distribution of its loss, as a product of lists.
pub(crate) struct Losses {
    lists: Vec<Vec<Outcome>>,
    log_delta: f64,
}

impl Losses {
    /// Composes each query `times` times. Returns `None` if there are too many outcomes to enumerate.
    pub(crate) fn new(runs: &[(Vec<Outcome>, usize)], log_delta: f64) -> Option<Self> {
        let sizes = runs.iter().map(|(query, times)| ways(query.len(), *times));
        if sizes.clone().any(|size| size > MAX_OUTCOMES as f64) {
            return None;
        }
        let mut lists: Vec<Vec<Outcome>> =
            runs.iter().map(|(query, times)| likely(repeated(query, *times), log_delta)).collect();
        lists.sort_by_key(Vec::len);
        let all = lists.iter().try_fold(1usize, |all, list| all.checked_mul(list.len()))?;
        (all <= MAX_OUTCOMES).then_some(Self { lists, log_delta })
    }

    /// Creates the losses from one list of outcomes of the composition.
    pub(crate) fn from_outcomes(outcomes: Vec<Outcome>, log_delta: f64) -> Self {
        Self { lists: vec![likely(outcomes, log_delta)], log_delta }
    }

    /// Says whether `delta(epsilon)` is above delta.
    pub(crate) fn exceed(&self, epsilon: f64) -> bool {
        self.excess(epsilon).0 > 1.0 + ROUNDING
    }

    /// Returns `delta(epsilon) / delta`, and its rate of decrease with epsilon.
    fn excess(&self, epsilon: f64) -> (f64, f64) {
        let mut sum = (0.0, 0.0);
        walk(&self.lists, 1.0, epsilon, self.log_delta, &mut sum);
        sum
    }

    /// Returns the least epsilon of the composition, or `least` if that is larger. It is never above the exact value
    /// except for rounding.
    pub(crate) fn least_epsilon(&self, least: f64) -> f64 {
        let largest: f64 = self.lists.iter().map(|list| list.first().map_or(0.0, |first| first.loss)).sum();
        let (mut low, mut high) = (least, largest);
        if high <= low || !self.exceed(low) {
            return least;
        }
        let mut next = 0.5 * (low + high);
        for step in 0..200 {
            let (value, slope) = self.excess(next);
            let log = (value / (1.0 + ROUNDING)).ln();
            if log > 0.0 {
                low = next;
                if log < 1e-10 {
                    break;
                }
            } else {
                high = next;
            }
            if high - low <= 1e-12 * high {
                break;
            }
            // Newton's method on the logarithm, and halving if it makes no progress.
            let newton = next + log * value / slope;
            let aimed = newton - 1e-11 * newton.abs();
            next = if step % 4 != 3 && aimed > low && aimed < high { aimed } else { 0.5 * (low + high) };
        }
        low
    }
}

fn walk(lists: &[Vec<Outcome>], weight: f64, epsilon: f64, log_scale: f64, sum: &mut (f64, f64)) {
    let Some((list, rest)) = lists.split_first() else { return };
    let furthest: f64 = rest.iter().map(|list| list.first().map_or(0.0, |first| first.loss)).sum();
    for outcome in list.iter().take_while(|outcome| outcome.loss + furthest > epsilon) {
        let p = weight * (outcome.log_p - log_scale).exp();
        if rest.is_empty() {
            let fallen = (epsilon - outcome.loss).exp_m1();
            sum.0 -= p * fallen;
            sum.1 += p * (1.0 + fallen);
        } else {
            walk(rest, p, epsilon - outcome.loss, 0.0, sum);
        }
    }
}

/// Removes the outcomes that are too unlikely to matter and sorts by decreasing loss. Leaving any out makes delta
/// smaller.
fn likely(mut outcomes: Vec<Outcome>, log_delta: f64) -> Vec<Outcome> {
    let least = log_delta - NEGLIGIBLE - (outcomes.len() as f64).ln();
    outcomes.retain(|outcome| outcome.log_p > least);
    outcomes.sort_by(|a, b| b.loss.total_cmp(&a.loss));
    outcomes
}

/// Counts the outcomes of `times` queries with this number of answers, regardless of order.
fn ways(answers: usize, times: usize) -> f64 {
    (1..answers).map(|i| (times + i) as f64 / i as f64).product()
}

/// Lists all outcomes of `times` equal queries, regardless of order.
fn repeated(query: &[Outcome], times: usize) -> Vec<Outcome> {
    if times == 1 {
        return query.to_vec();
    }
    let mut all = Vec::new();
    let start = Outcome { log_p: log_factorial(times), loss: 0.0 };
    distribute(query, times, start, &mut all);
    all
}

fn distribute(query: &[Outcome], left: usize, so_far: Outcome, all: &mut Vec<Outcome>) {
    let Some((answer, rest)) = query.split_first() else { return };
    let with = |times: usize| {
        let n = times as f64;
        let log_p = so_far.log_p - log_factorial(times) + n * answer.log_p;
        Outcome { log_p, loss: so_far.loss + n * answer.loss }
    };
    if rest.is_empty() {
        all.push(with(left));
    } else {
        (0..=left).for_each(|times| distribute(rest, left - times, with(times), all));
    }
}

/// Largest number with a known factorial.
const MOST: i32 = 100_000;

/// Returns `ln n!`.
pub(crate) fn log_factorial(n: usize) -> f64 {
    static TABLE: OnceLock<Vec<f64>> = OnceLock::new();
    let table = TABLE.get_or_init(|| {
        // Compensated sums: rounding errors are carried along.
        let (mut sum, mut lost) = (0.0f64, 0.0f64);
        let mut table = vec![0.0];
        for n in 1..=MOST {
            let term = f64::from(n).ln() + lost;
            let next = sum + term;
            lost = term - (next - sum);
            sum = next;
            table.push(sum);
        }
        table
    });
    table[n]
}
