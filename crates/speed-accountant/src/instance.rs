//! The exact distributions of the answer, at the votes and at every neighbour, for integer noise that nobody knows.
//!
//! A neighbour moves one vote from a class that has one to another class. The probability of every answer is a sum over
//! the winning noisy count, with ties going to the lowest class index, and "no answer" where no count reaches the
//! threshold. What the sums leave out is far below anything that shows.

use speed_mechanism::DiscreteLaplace;

use crate::{Noise, PrivacyEvent};

/// Tails beyond `e^-CUT` are left out of sums.
const CUT: f64 = 45.0;
/// Answers less likely than this, at the votes and by at most `e^epsilon` at a neighbour, are not summed: they count with
/// this probability and the worst ratio.
const NEGLIGIBLE: f64 = 1e-13;
/// Relative margin for rounding in the sums.
const ROUNDING: f64 = 1e-11;

/// The noise of one class, tabulated.
pub(crate) struct ExactNoise {
    reach: i64,
    epsilon: f64,
    threshold: Option<i64>,
    pmf: Table,
    /// `P[r <= k]`.
    below: Table,
    /// What one vote more or less makes of them: `P[r <= k + 1] / P[r <= k]` and so on.
    below_up: Table,
    below_down: Table,
    pmf_up: Table,
    pmf_down: Table,
}

/// A function of an integer from `-reach - 3` to `reach + 3`, and its values outside.
struct Table {
    values: Vec<f64>,
    first: i64,
    before: f64,
    after: f64,
}

impl Table {
    fn new(reach: i64, before: f64, after: f64, f: impl Fn(i64) -> f64) -> Self {
        let first = -reach - 3;
        Self { values: (first..=-first).map(f).collect(), first, before, after }
    }

    fn at(&self, k: i64) -> f64 {
        let index = k - self.first;
        if index < 0 { self.before } else { self.values.get(index as usize).copied().unwrap_or(self.after) }
    }

    /// The values at `from, from + 1, ...`.
    fn window(&self, from: i64, places: usize) -> Vec<f64> {
        (from..).take(places).map(|k| self.at(k)).collect()
    }
}

impl ExactNoise {
    /// For discrete Laplace noise; `epsilon` is that of one query.
    pub(crate) fn new(event: &PrivacyEvent, epsilon: f64) -> Option<Self> {
        let Noise::DiscreteLaplace { gamma } = event.noise() else { return None };
        let reach = (CUT / gamma.get()).ceil() as i64 + 3;
        // Tables that are far too long for what they are worth.
        if reach > 20_000 {
            return None;
        }
        let noise = DiscreteLaplace::of_class(gamma, event.tau()).lattice(reach as usize + 5);
        let log_below = |k: i64| noise.log_survival(-k);
        Some(Self {
            reach,
            epsilon,
            threshold: event.threshold().map(|threshold| threshold as i64),
            pmf: Table::new(reach, 0.0, 0.0, |k| noise.log_pmf(k).exp()),
            below: Table::new(reach, 0.0, 1.0, |k| log_below(k).exp()),
            below_up: Table::new(reach, 1.0, 1.0, |k| (log_below(k + 1) - log_below(k)).exp()),
            below_down: Table::new(reach, 1.0, 1.0, |k| (log_below(k - 1) - log_below(k)).exp()),
            pmf_up: Table::new(reach, 1.0, 1.0, |k| (noise.log_pmf(k + 1) - noise.log_pmf(k)).exp()),
            pmf_down: Table::new(reach, 1.0, 1.0, |k| (noise.log_pmf(k - 1) - noise.log_pmf(k)).exp()),
        })
    }

    /// The distributions at these votes and at all their neighbours.
    pub(crate) fn instance(&self, counts: &[u32]) -> Instance {
        Distributions::new(self, counts).instance(self.epsilon)
    }
}

/// One answer at the votes and at a neighbour: logarithms of its two probabilities.
type Pair = (f64, f64);

/// The privacy loss at one row of votes towards each of its neighbours.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Instance {
    /// For each neighbour: the likeliest answer's pair, and those of the others.
    neighbours: Vec<(Pair, Vec<Pair>)>,
    /// Probability that is not in any pair, to be counted with the worst ratio.
    rest: f64,
    epsilon: f64,
}

impl Instance {
    /// The largest moments of order `l` over all neighbours: from these votes to a neighbour's, and back.
    pub(crate) fn moments(&self, l: f64) -> (f64, f64) {
        let log_rest = self.rest.ln() + self.epsilon * (l + 1.0);
        let mut worst = (0.0f64, 0.0f64);
        for (likeliest, others) in &self.neighbours {
            let moment = |pick: fn(&Pair) -> Pair| {
                let stays = term(pick(likeliest), l);
                let leaves: f64 = others.iter().map(|pair| term(pick(pair), l).exp()).sum();
                let leaves = leaves * (1.0 + ROUNDING * (l + 1.0)) + log_rest.exp();
                crate::moments::log_sum(stays, leaves.ln())
            };
            worst.0 = worst.0.max(moment(|pair| *pair));
            worst.1 = worst.1.max(moment(|pair| (pair.1, pair.0)));
        }
        worst
    }

    /// Privacy profiles on a grid, the largest over all neighbours at each place: how much `delta(alpha)` exceeds `(1 -
    /// alpha)_+`, from these votes to a neighbour's, and back.
    pub(crate) fn profiles(&self, places: &[f64]) -> [Vec<f64>; 2] {
        let alphas: Vec<f64> = places.iter().map(|place| place.exp()).collect();
        let mut worst = [vec![0.0f64; alphas.len()], vec![0.0f64; alphas.len()]];
        let mut excess = vec![0.0; alphas.len()];
        let mut losing: Vec<(f64, f64)> = Vec::new();
        for (likeliest, others) in &self.neighbours {
            for (back, worst) in worst.iter_mut().enumerate() {
                let pick = |pair: &Pair| if back == 0 { (pair.0, pair.1) } else { (pair.1, pair.0) };
                // The likeliest from how likely it is not the answer, so that nothing cancels.
                let (here, there) = pick(likeliest);
                let (q, q_there) = (-here.exp_m1(), -there.exp_m1());
                for (excess, alpha) in excess.iter_mut().zip(&alphas) {
                    let (tells_nothing, less) = (1.0 - alpha, q - alpha * q_there);
                    // (1 - q - alpha (1 - q'))_+ - (1 - alpha)_+
                    *excess = if tells_nothing <= 0.0 {
                        (tells_nothing - less).max(0.0)
                    } else {
                        (-less).max(-tells_nothing)
                    };
                }
                losing.clear();
                losing.extend(others.iter().map(pick).map(|(p, p_there)| (p.exp(), p_there.exp())));
                for &(p, p_there) in &losing {
                    excess
                        .iter_mut()
                        .zip(&alphas)
                        .for_each(|(excess, alpha)| *excess += (p - alpha * p_there).max(0.0));
                }
                worst.iter_mut().zip(&excess).for_each(|(worst, excess)| *worst = worst.max(*excess));
            }
        }
        // Sums are off by a relative part of the probability that is not the likeliest's.
        let left = self.neighbours.iter().map(|(likeliest, _)| -likeliest.0.exp_m1() - likeliest.1.exp_m1());
        let off = ROUNDING * left.fold(0.0, f64::max) + self.rest * self.epsilon.exp();
        worst.iter_mut().flatten().for_each(|worst| *worst += off);
        worst
    }

    /// Only the neighbours that are worst at one of these orders: enough to look for a good order with.
    pub(crate) fn leaders(&self, orders: &[f64]) -> Self {
        let mut leaders: Vec<usize> = Vec::new();
        for &l in orders {
            for back in [false, true] {
                let of = |i: usize| {
                    let single = Self { neighbours: vec![self.neighbours[i].clone()], ..*self };
                    let moments = single.moments(l);
                    if back { moments.1 } else { moments.0 }
                };
                if let Some(best) = (0..self.neighbours.len()).max_by(|&i, &j| of(i).total_cmp(&of(j))) {
                    leaders.push(best);
                }
            }
        }
        leaders.sort_unstable();
        leaders.dedup();
        Self { neighbours: leaders.into_iter().map(|i| self.neighbours[i].clone()).collect(), ..*self }
    }
}

/// `ln p^{l+1} / p'^l`.
fn term((here, there): Pair, l: f64) -> f64 {
    here + l * (here - there)
}

/// Arrays over the noisy counts that can win.
struct Distributions<'a> {
    noise: &'a ExactNoise,
    counts: Vec<i64>,
    first: i64,
    places: usize,
    /// `ways[k][x]`: probability that class `k`'s noisy count is `x` and beats all others.
    ways: Vec<Vec<f64>>,
}

impl<'a> Distributions<'a> {
    fn new(noise: &'a ExactNoise, counts: &[u32]) -> Self {
        let counts: Vec<i64> = counts.iter().map(|&count| i64::from(count)).collect();
        let most = counts.iter().copied().max().unwrap_or(0);
        let last = most + noise.reach;
        let first = (most - noise.reach).max(noise.threshold.unwrap_or(i64::MIN)).min(last);
        let places = (last - first + 1) as usize;
        let ways = winning(noise, &counts, first, places);
        Self { noise, counts, first, places, ways }
    }

    fn instance(&self, epsilon: f64) -> Instance {
        let classes = self.counts.len();
        // "No answer" is one answer more.
        let silent = classes;
        let mut base: Vec<f64> = self.ways.iter().map(|ways| ways.iter().sum()).collect();
        base.push(self.nobody(|_| 0));
        let answers: Vec<usize> = (0..=classes).filter(|&k| base[k] > NEGLIGIBLE).collect();
        let rest = (base.len() - answers.len()) as f64 * NEGLIGIBLE + 1e-20;
        let likeliest = answers.iter().copied().max_by(|&a, &b| base[a].total_cmp(&base[b])).unwrap_or(0);
        let rivals: Vec<Rival> = (0..classes).map(|class| Rival::new(self, class)).collect();
        let mut neighbours = Vec::new();
        for from in (0..classes).filter(|&k| self.counts[k] > 0) {
            for to in (0..classes).filter(|&k| k != from) {
                let there = |k: usize| {
                    if k == silent {
                        return self.nobody(|class| i64::from(class == to) - i64::from(class == from));
                    }
                    // Lower classes win ties, so they must be beaten strictly.
                    let loses = if k == from { &rivals[k].own_up } else { &rivals[from].eased[usize::from(from < k)] };
                    let gains = if k == to { &rivals[k].own_down } else { &rivals[to].pressed[usize::from(to < k)] };
                    self.ways[k].iter().zip(loses).zip(gains).map(|((ways, a), b)| ways * a * b).sum::<f64>()
                };
                let others: Vec<(f64, f64)> =
                    answers.iter().filter(|&&k| k != likeliest).map(|&k| (base[k], there(k))).collect();
                // The likeliest from the others: exact where they are unlikely.
                let (q, q_there) = others.iter().fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
                let pairs = others.iter().map(|pair| (pair.0.ln(), pair.1.ln())).collect();
                neighbours.push(((ln_one_minus(q), ln_one_minus(q_there)), pairs));
            }
        }
        Instance { neighbours, rest, epsilon }
    }

    /// Probability that no count reaches the threshold, where votes moved.
    fn nobody(&self, moved: impl Fn(usize) -> i64) -> f64 {
        let Some(threshold) = self.noise.threshold else { return 0.0 };
        let counts = self.counts.iter().enumerate();
        counts.map(|(class, count)| self.noise.below.at(threshold - 1 - count - moved(class))).product()
    }
}

fn winning(noise: &ExactNoise, counts: &[i64], first: i64, places: usize) -> Vec<Vec<f64>> {
    let multiply = |product: &mut [f64], factors: &[f64]| {
        product.iter_mut().zip(factors).for_each(|(product, factor)| *product *= factor);
    };
    let mut ways: Vec<Vec<f64>> = counts.iter().map(|count| noise.pmf.window(first - count, places)).collect();
    let mut product = vec![1.0; places];
    for (ways, count) in ways.iter_mut().zip(counts) {
        multiply(ways, &product);
        multiply(&mut product, &noise.below.window(first - 1 - count, places));
    }
    product.fill(1.0);
    for (ways, count) in ways.iter_mut().zip(counts).rev() {
        multiply(ways, &product);
        multiply(&mut product, &noise.below.window(first - count, places));
    }
    ways
}

/// What a class that loses or gains a vote does to probabilities at each winning count.
struct Rival {
    /// Beating it where it lost a vote: where it loses ties, and where it wins them.
    eased: [Vec<f64>; 2],
    /// The same where it gained a vote.
    pressed: [Vec<f64>; 2],
    /// Its own count where it lost a vote, and where it gained one.
    own_up: Vec<f64>,
    own_down: Vec<f64>,
}

impl Rival {
    fn new(of: &Distributions<'_>, class: usize) -> Self {
        let from = of.first - of.counts[class];
        let window = |table: &Table, lower: i64| table.window(from - lower, of.places);
        Self {
            eased: [window(&of.noise.below_up, 0), window(&of.noise.below_up, 1)],
            pressed: [window(&of.noise.below_down, 0), window(&of.noise.below_down, 1)],
            own_up: window(&of.noise.pmf_up, 0),
            own_down: window(&of.noise.pmf_down, 0),
        }
    }
}

fn ln_one_minus(q: f64) -> f64 {
    (-q.min(1.0 - 1e-16)).ln_1p()
}
