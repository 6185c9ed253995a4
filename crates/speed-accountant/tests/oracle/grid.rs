//! Compositions with too many outcomes to enumerate: a certified lower bound on a grid of losses.
//!
//! Outcomes of a query, or parts of them, are merged into groups until the loss of each group is a place of the grid.
//! This is post-processing, so the least epsilon gets smaller, by very little. Groups are composed by a transform of
//! tilted masses, minus a bound on the transform's error.

use crate::oracle::composition::{Losses, Outcome};

/// Number of grid places up to the largest loss of a query, if they fit.
const FINEST: f64 = 2_000.0;
/// The longest transform.
const MAX_LENGTH: usize = 1 << 18;
/// Logarithm of the part of the tilted distribution that the transform may leave out.
const LOG_BEYOND: f64 = -60.0;

/// Masses on a grid with its own origin: their places and the logarithms of their probabilities, which may be too small
/// for a double.
struct Groups {
    origin: f64,
    places: Vec<i64>,
    log_p: Vec<f64>,
}

/// Computes a lower bound of the least epsilon of these runs, or returns `least` if that is larger.
pub(crate) fn least_epsilon(runs: &[(Vec<Outcome>, usize)], log_delta: f64, least: f64) -> f64 {
    let runs: Vec<(Vec<Outcome>, usize)> = runs
        .iter()
        .map(|(query, times)| {
            let mut query = query.clone();
            // The total that all queries leave out is negligible relative to delta.
            let unlikely = log_delta - 40.0 - ((query.len() * times) as f64).ln();
            query.retain(|outcome| outcome.log_p > unlikely);
            query.sort_by(|a, b| b.loss.total_cmp(&a.loss));
            (query, *times)
        })
        .collect();
    let highest = runs.iter().filter_map(|(query, _)| query.first()).map(|first| first.loss).fold(0.0, f64::max);
    // A step of a subnormal loss would be zero. A lower bound may leave such losses out.
    if highest <= FINEST * f64::MIN_POSITIVE {
        return least;
    }
    // Places stay distinct however low the lowest loss is.
    let lowest = runs.iter().filter_map(|(query, _)| query.last()).map(|last| last.loss).fold(0.0, f64::min);
    let mut step = (highest / FINEST).max((highest - lowest) * 1e-9);
    loop {
        let grouped: Vec<(Groups, f64)> =
            runs.iter().map(|(query, times)| (Groups::new(query, step), *times as f64)).collect();
        if let Some(losses) = compose(&grouped, step, log_delta) {
            return losses.least_epsilon(least);
        }
        step *= 2.0;
    }
}

impl Groups {
    /// Groups outcomes sorted by decreasing loss.
    fn new(query: &[Outcome], step: f64) -> Self {
        // The lowest outcomes have nothing below to merge with and are often the likeliest, so they are the origin.
        let lowest = query.last().map_or(0.0, |last| last.loss);
        let above_lowest = query.partition_point(|outcome| outcome.loss >= lowest + step);
        let last = together(&query[above_lowest..], lowest);
        let origin = last.loss;
        let mut query = query[..above_lowest].to_vec();
        query.push(last);
        let (mut places, mut log_p) = (Vec::new(), Vec::new());
        let mut next = 0;
        let mut left = 1.0;
        while let Some(first) = query.get(next) {
            let mut place = ((first.loss - origin) / step).floor().max(0.0);
            // From 2^53 on a place less one is the same double, so the step down is relative there.
            while place > 0.0 && origin + place * step > first.loss {
                place = (place * (1.0 - f64::EPSILON)).floor().min(place - 1.0);
            }
            let target = origin + place * step;
            // How much more likely the group is than its loss implies, relative to its first outcome.
            let scale = first.log_p;
            let (mut above, mut mass) = (0.0, 0.0);
            while let Some(outcome) = query.get(next).filter(|outcome| outcome.loss >= target) {
                let p = left * (outcome.log_p - scale).exp();
                above -= p * (target - outcome.loss).exp_m1();
                mass += p;
                (next, left) = (next + 1, 1.0);
            }
            while let Some(outcome) = query.get(next).filter(|_| above > 0.0) {
                let p = left * (outcome.log_p - scale).exp();
                let below = p * (target - outcome.loss).exp_m1();
                if below <= above {
                    above -= below;
                    mass += p;
                    (next, left) = (next + 1, 1.0);
                } else {
                    let share = above / below;
                    mass += p * share;
                    left *= 1.0 - share;
                    above = 0.0;
                }
            }
            places.push(place as i64);
            log_p.push(scale + mass.ln());
        }
        Self { origin, places, log_p }
    }

    /// Returns the logarithm of `sum e^(tilt loss)`.
    fn log_moment(&self, tilt: f64, step: f64) -> f64 {
        let losses = || self.places.iter().map(|place| self.origin + *place as f64 * step);
        let terms = || self.log_p.iter().zip(losses()).map(|(log_p, loss)| log_p + tilt * loss);
        let largest = terms().fold(f64::NEG_INFINITY, f64::max);
        largest + terms().map(|term| (term - largest).exp()).sum::<f64>().ln()
    }

    fn highest(&self) -> i64 {
        self.places.iter().copied().max().unwrap_or(0)
    }
}

/// Merges these outcomes into one, whose loss is between theirs; `lowest` is their lowest loss.
fn together(outcomes: &[Outcome], lowest: f64) -> Outcome {
    let scale = outcomes.iter().map(|outcome| outcome.log_p).fold(f64::NEG_INFINITY, f64::max);
    let (mut mass, mut less) = (0.0, 0.0);
    for outcome in outcomes {
        let p = (outcome.log_p - scale).exp();
        mass += p;
        less -= p * (lowest - outcome.loss).exp_m1();
    }
    Outcome { log_p: scale + mass.ln(), loss: lowest - (-less / mass).ln_1p() }
}

/// Composes the runs into one list of outcomes. Returns `None` if the transform would be too long.
fn compose(runs: &[(Groups, f64)], step: f64, log_delta: f64) -> Option<Losses> {
    let log_moment = |tilt: f64| runs.iter().map(|(groups, times)| times * groups.log_moment(tilt, step)).sum::<f64>();
    let tilt = best_tilt(step, |tilt| (log_moment(tilt) - log_delta) / tilt);
    let log_sum = log_moment(tilt);
    let origin: f64 = runs.iter().map(|(groups, times)| groups.origin * times).sum();
    let highest: i64 = runs.iter().map(|(groups, times)| groups.highest() * *times as i64).sum();
    // Chernoff's bounds of the reach of the tilted sum on both sides.
    let reach = |sign: f64| {
        let bound = |more: f64| (log_moment(tilt + sign * more) - log_sum - LOG_BEYOND) / more;
        sign * bound(best_tilt(step, bound))
    };
    let place = |loss: f64| (loss - origin) / step;
    let first = place(reach(-1.0)).floor().max(0.0);
    let last = place(reach(1.0)).ceil().min(highest as f64);
    if last - first + 1.0 > MAX_LENGTH as f64 {
        return None;
    }
    let (first, length) = (first as usize, ((last - first).max(0.0) as usize + 1).next_power_of_two());
    let transform = Transform::new(length);
    let mut product = vec![(1.0, 0.0); length];
    let mut factors = Vec::new();
    for (groups, times) in runs {
        let log_sum = groups.log_moment(tilt, step);
        // Places beyond the window wrap around to the other side. Their mass is small and is subtracted below.
        let mut line = vec![(0.0, 0.0); length];
        for (place, log_p) in groups.places.iter().zip(&groups.log_p) {
            let loss = groups.origin + *place as f64 * step;
            line[*place as usize % length].0 += (log_p + tilt * loss - log_sum).exp();
        }
        transform.run(&mut line, false);
        for (product, factor) in product.iter_mut().zip(&line) {
            *product = multiply(*product, power(*factor, *times as u64));
        }
        factors.push((line, *times));
    }
    // Each factor has an error of a few units for each level of the transform; so has the inverse transform.
    let unit = 16.0 * f64::EPSILON * (f64::from(length.ilog2()) + 1.0);
    let size = |z: &(f64, f64)| z.0.hypot(z.1);
    let mut off = product.iter().map(size).sum::<f64>();
    for changed in 0..factors.len() {
        // One factor of the product has an error, the others are taken as they are.
        let (_, times) = &factors[changed];
        let power = |run: usize| factors[run].1 as i32 - i32::from(run == changed);
        let rest = |i: usize| (0..factors.len()).map(|run| size(&factors[run].0[i]).powi(power(run))).product::<f64>();
        off += times * (0..length).map(rest).sum::<f64>();
    }
    let off = unit * (off / length as f64 + f64::EPSILON) + 2.0 * LOG_BEYOND.exp();
    transform.run(&mut product, true);
    let masses = (first..first + length).map(|place| (product[place % length], place)).filter(|(mass, _)| mass.0 > off);
    let outcomes = masses.map(|(mass, place)| {
        let loss = origin + place as f64 * step;
        Outcome { log_p: (mass.0 - off).ln() + log_sum - tilt * loss, loss }
    });
    Some(Losses::from_outcomes(outcomes.collect(), log_delta))
}

/// Finds the tilt with the least Chernoff bound by golden section of the tilt's logarithm.
fn best_tilt(step: f64, bound: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = ((1e-9 / step).ln(), (20.0 / step).ln());
    let golden = 0.5 * (5f64.sqrt() - 1.0);
    for _ in 0..32 {
        let (a, b) = (high - golden * (high - low), low + golden * (high - low));
        if bound(a.exp()) <= bound(b.exp()) { high = b } else { low = a }
    }
    (0.5 * (low + high)).exp()
}

fn multiply(a: (f64, f64), b: (f64, f64)) -> (f64, f64) {
    (a.0 * b.0 - a.1 * b.1, a.0 * b.1 + a.1 * b.0)
}

fn power(mut base: (f64, f64), mut exponent: u64) -> (f64, f64) {
    let mut result = (1.0, 0.0);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = multiply(result, base);
        }
        base = multiply(base, base);
        exponent >>= 1;
    }
    result
}

/// A fast Fourier transform whose length is a power of two. The accountant uses rustfft, and the oracle shares no code with it.
struct Transform {
    roots: Vec<(f64, f64)>,
}

impl Transform {
    fn new(length: usize) -> Self {
        let angle = |i: usize| -std::f64::consts::TAU * i as f64 / length as f64;
        Self { roots: (0..length / 2).map(|i| (angle(i).cos(), angle(i).sin())).collect() }
    }

    fn run(&self, values: &mut [(f64, f64)], back: bool) {
        let length = values.len();
        if length < 2 {
            return;
        }
        let shift = usize::BITS - length.ilog2();
        for i in 0..length {
            let j = i.reverse_bits() >> shift;
            if i < j {
                values.swap(i, j);
            }
        }
        let mut half = 1;
        while half < length {
            let stride = length / (2 * half);
            for block in values.chunks_exact_mut(2 * half) {
                let (first, second) = block.split_at_mut(half);
                for (i, (a, b)) in first.iter_mut().zip(second).enumerate() {
                    let root = self.roots[i * stride];
                    let turned = multiply(*b, if back { (root.0, -root.1) } else { root });
                    (*a, *b) = ((a.0 + turned.0, a.1 + turned.1), (a.0 - turned.0, a.1 - turned.1));
                }
            }
            half *= 2;
        }
        if back {
            values.iter_mut().for_each(|value| *value = (value.0 / length as f64, value.1 / length as f64));
        }
    }
}
