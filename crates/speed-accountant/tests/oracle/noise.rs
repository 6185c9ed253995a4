//! The integer noise `X = A - B`, where `A` and `B` are negative binomial, with full relative accuracy however far out.
//!
//! With `p = e^-gamma` and `c_j = shape (shape + 1) ... (shape + j - 1) / j!` the probability of `A = j` is
//! `(1 - p)^shape c_j p^j`. So `P[X >= t] = (1 - p)^(2 shape) p^t sum_j c_j p^(2j) sum_i c_(j+t+i) p^i` for `t >= 0`:
//! all terms are positive, and the factor of `p^t` neither overflows nor underflows.

/// Parts of a sum below `e^-REACH` times the sum are left out.
const REACH: f64 = 45.0;

/// The noise of one class, or the difference of two classes' noise (of twice the shape).
pub(crate) struct Noise {
    gamma: f64,
    log_scale: f64,
    furthest: i64,
    /// `c_j p^(2j)`.
    weights: Vec<f64>,
    /// `c_j`.
    coefficients: Vec<f64>,
    /// `sum_i c_(j+i) p^i`.
    tails: Vec<f64>,
}

impl Noise {
    /// Prepares the noise for values up to `furthest`.
    pub(crate) fn new(gamma: f64, shape: f64, furthest: i64) -> Self {
        let furthest = furthest.max(1);
        let terms = (0.5 * REACH / gamma) as usize + 8;
        let beyond = (REACH / gamma) as usize + 8;
        let coefficients = coefficients(shape, furthest as usize + terms + beyond);
        let p = (-gamma).exp();
        let one_minus_p = -(-gamma).exp_m1();
        let mut tails = coefficients.clone();
        let last = tails.len() - 1;
        // A geometric series replaces the rest: its error is damped by e^-REACH.
        tails[last] /= one_minus_p;
        for j in (0..last).rev() {
            tails[j] = coefficients[j] + p * tails[j + 1];
        }
        let weights = (0..terms).map(|j| coefficients[j] * (-2.0 * gamma * j as f64).exp()).collect();
        Self { gamma, log_scale: 2.0 * shape * one_minus_p.ln(), furthest, weights, coefficients, tails }
    }

    /// Returns `ln P[X = t]`.
    pub(crate) fn log_pmf(&self, t: i64) -> f64 {
        self.scaled(t.abs(), &self.coefficients)
    }

    /// Returns `ln P[X >= t]`.
    pub(crate) fn log_at_least(&self, t: i64) -> f64 {
        if t >= 1 { self.scaled(t, &self.tails) } else { log_complement(self.scaled(1 - t, &self.tails)) }
    }

    fn scaled(&self, t: i64, of: &[f64]) -> f64 {
        assert!(t <= self.furthest, "{t} is beyond the table");
        let sum = dot(&self.weights, &of[t as usize..]);
        self.log_scale - self.gamma * t as f64 + sum.ln()
    }
}

/// Returns `ln P[h heads]` of fair coins for all `h`, from ratios of neighbours, so that many coins lose no digits.
pub(crate) fn log_heads(coins: usize) -> Vec<f64> {
    let log_ratio = |heads: usize| ((coins - heads) as f64 / (heads + 1) as f64).ln();
    let mut log = vec![0.0f64; coins + 1];
    (coins / 2..coins).for_each(|heads| log[heads + 1] = log[heads] + log_ratio(heads));
    (0..coins / 2).rev().for_each(|heads| log[heads] = log[heads + 1] - log_ratio(heads));
    // The likeliest number counts 1.
    let log_sum = log.iter().map(|log| log.exp()).sum::<f64>().ln();
    log.iter_mut().for_each(|log| *log -= log_sum);
    log
}

/// Returns `ln(1 - e^log)`.
pub(crate) fn log_complement(log: f64) -> f64 {
    (-log.exp()).ln_1p()
}

/// Returns `c_0, ..., c_terms`, each to the full precision of a double, because products are carried with twice the
/// digits.
fn coefficients(shape: f64, terms: usize) -> Vec<f64> {
    let (mut high, mut low) = (1.0f64, 0.0f64);
    let mut all = Vec::with_capacity(terms + 1);
    all.push(1.0);
    for j in 1..=terms {
        let j = j as f64;
        // (j - 1 + shape) / j.
        let sum = j - 1.0 + shape;
        let part = sum - (j - 1.0);
        let sum_low = ((j - 1.0) - (sum - part)) + (shape - part);
        let ratio = sum / j;
        let ratio_low = ((-ratio).mul_add(j, sum) + sum_low) / j;
        let product = high * ratio;
        let rest = high.mul_add(ratio, -product) + (high * ratio_low + low * ratio);
        high = product + rest;
        low = rest - (high - product);
        all.push(high);
    }
    all
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut lanes = [0.0; 8];
    let (a_chunks, b_chunks) = (a.chunks_exact(8), b[..a.len()].chunks_exact(8));
    let rest: f64 = a_chunks.remainder().iter().zip(b_chunks.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in a_chunks.zip(b_chunks) {
        for ((lane, a), b) in lanes.iter_mut().zip(a).zip(b) {
            *lane += a * b;
        }
    }
    rest + lanes.iter().sum::<f64>()
}

/// Logarithms of a noise's probabilities, tabulated from `-furthest` to `furthest`.
pub(crate) struct Table {
    furthest: i64,
    pmf: Vec<f64>,
    at_least: Vec<f64>,
    at_most: Vec<f64>,
}

impl Table {
    pub(crate) fn new(gamma: f64, shape: f64, furthest: i64) -> Self {
        let noise = Noise::new(gamma, shape, furthest + 1);
        let beyond: Vec<f64> = (1..=furthest).map(|t| noise.log_at_least(t)).collect();
        let mut at_least: Vec<f64> = beyond.iter().rev().map(|&log| log_complement(log)).collect();
        at_least.insert(0, log_complement(noise.log_at_least(furthest + 1)));
        at_least.extend(beyond);
        let at_most = at_least.iter().rev().copied().collect();
        Self { furthest, pmf: (-furthest..=furthest).map(|t| noise.log_pmf(t)).collect(), at_least, at_most }
    }

    /// Creates the heads of fair coins, less half of the coins, rounded down.
    pub(crate) fn of_coins(coins: usize, furthest: i64) -> Self {
        let heads = log_heads(coins);
        let log_pmf = |t: i64| {
            let heads = usize::try_from(t + coins as i64 / 2).ok().and_then(|place| heads.get(place));
            heads.copied().unwrap_or(f64::NEG_INFINITY)
        };
        let beyond = coins as i64 + 1;
        let cumulated = |places: &mut dyn Iterator<Item = i64>| -> Vec<(i64, f64)> {
            let mut log = f64::NEG_INFINITY;
            places
                .map(|t| {
                    let (large, small) = (log.max(log_pmf(t)), log.min(log_pmf(t)));
                    log = if large == f64::NEG_INFINITY { large } else { large + (small - large).exp().ln_1p() };
                    (t, log)
                })
                .collect()
        };
        let far = furthest.max(beyond);
        let kept = |(t, log): (i64, f64)| (t.abs() <= furthest).then_some(log);
        let mut at_least: Vec<f64> = cumulated(&mut (-far..=far).rev()).into_iter().filter_map(kept).collect();
        at_least.reverse();
        let at_most: Vec<f64> = cumulated(&mut (-far..=far)).into_iter().filter_map(kept).collect();
        // Close to 1 the other tail has more digits.
        let precise = |tail: &[f64], other: &dyn Fn(usize) -> Option<f64>| -> Vec<f64> {
            let complement = |i: usize, log: f64| match other(i) {
                Some(other) if log > -0.5 => log_complement(other),
                _ => log,
            };
            tail.iter().enumerate().map(|(i, &log)| complement(i, log)).collect()
        };
        Self {
            furthest,
            pmf: (-furthest..=furthest).map(log_pmf).collect(),
            at_least: precise(&at_least, &|i| i.checked_sub(1).map(|i| at_most[i])),
            at_most: precise(&at_most, &|i| at_least.get(i + 1).copied()),
        }
    }

    pub(crate) fn furthest(&self) -> i64 {
        self.furthest
    }

    /// Returns `ln P[X = t]`.
    pub(crate) fn log_pmf(&self, t: i64) -> f64 {
        self.pmf[(t + self.furthest) as usize]
    }

    /// Returns `ln P[X >= t]`.
    pub(crate) fn log_at_least(&self, t: i64) -> f64 {
        self.at_least[(t + self.furthest) as usize]
    }

    /// Returns `ln P[X <= t]`.
    pub(crate) fn log_at_most(&self, t: i64) -> f64 {
        self.at_most[(t + self.furthest) as usize]
    }
}
