//! One row of votes: the law of the best of the other classes for every move of a vote, and the largest mean over moves.

use std::sync::Arc;

use super::known_noise::{AveragedExcess, KnownNoise};
use crate::sound::larger;

/// The outermost places with at most this probability are left out.
const NEGLIGIBLE: f64 = 1e-13;

/// Ties of the best of the other classes with a pair, and the probability of each place of that best.
#[derive(Clone, Debug)]
struct TieGroup {
    /// Added by ties to the mark of the class that loses a vote and to the mark of the class that gains it.
    ties: [i64; 2],
    /// True if the class that loses a vote wins when both classes pass their marks by the same amount.
    loser_first: bool,
    first: i64,
    weights: Arc<[f64]>,
}

/// The counts that a neighbour's vote changes.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// One class loses a vote and one gains it.
    Between { loses: i64, gains: i64 },
    /// A vote becomes empty, or an empty vote becomes one for this class.
    Alone { count: i64, gains: bool },
}

/// A vote that moves, and the best of the classes that do not change.
#[derive(Clone, Debug)]
struct MovedVote {
    change: Change,
    groups: Vec<TieGroup>,
    /// Probability that is in no group.
    rest: f64,
    /// Bound on the probability that a class that changes wins, at the votes and at the neighbour.
    either_wins: f64,
}

/// The moves of one row.
#[derive(Clone, Debug)]
pub(crate) struct KnownRow {
    /// Moves, by decreasing bound on the probability that a class that changes wins.
    pairs: Vec<MovedVote>,
    /// The same bound for any move that is not listed.
    unlikely: f64,
}

impl KnownRow {
    /// Prepares a row, of which votes may be empty.
    ///
    /// With two classes and no threshold, emptying or filling a vote costs no more than moving a vote between the classes,
    /// for any known noise (`ExactDifference::losses`). This also holds if the losing class has no vote. The move then
    /// represents the filling of an empty vote.
    ///
    /// Otherwise the best of all classes but one is revealed if only that class changes. In the examined accounts of
    /// PATE's size this costs less than a move between two classes; for few coins and high orders it may cost more.
    pub(crate) fn new(noise: &KnownNoise, counts: &[u32], has_empty_vote: bool) -> Self {
        let counts: Vec<i64> = counts.iter().map(|&count| i64::from(count)).collect();
        let most = counts.iter().copied().max().unwrap_or(0);
        let reach = noise.plane.reach();
        // The best of the other classes is hardly ever further above the winner than this.
        let highest = most + reach;
        let floor = counts.iter().copied().min().unwrap_or(0).max(most - 4 * reach) - reach;
        let lowest = noise.threshold.map_or(floor, |threshold| floor.max(threshold)).min(highest);
        let places = (highest - lowest + 1) as usize;
        // P[noisy count <= lowest - 1 + i].
        let mut below: Vec<Vec<f64>> = counts
            .iter()
            .map(|count| (0..=places as i64).map(|i| noise.below(lowest - 1 + i - count)).collect())
            .collect();
        if noise.threshold.is_none() {
            // Counts below the lowest place count as at that place.
            below.iter_mut().for_each(|below| below[0] = 0.0);
        }
        // P[a class beats the winner], at the votes or with one vote more.
        let wins: Vec<f64> =
            counts.iter().map(|&count| if count == most { 1.0 } else { noise.beats(most - count - 1) }).collect();
        let others = OtherClasses::new(&below, noise.threshold.is_some());
        let (mut pairs, mut unlikely) = (Vec::new(), 0.0f64);
        let one_difference = counts.len() == 2 && noise.threshold.is_none();
        // The best of all classes but one does not change if only that one does.
        for (class, &count) in counts.iter().enumerate().filter(|_| !one_difference) {
            let either_wins = wins[class];
            if either_wins < noise.unlikely_pair() {
                unlikely = unlikely.max(either_wins);
                continue;
            }
            let groups = others.best([others.before(class), None, others.after(class)], lowest);
            let rest = rest_of(&groups);
            for gains in [false, true].into_iter().filter(|&gains| if gains { has_empty_vote } else { count > 0 }) {
                let change = Change::Alone { count, gains };
                pairs.push(MovedVote { change, groups: groups.clone(), rest, either_wins });
            }
        }
        for low in 0..counts.len() {
            let mut between: Option<Vec<f64>> = None;
            for high in low + 1..counts.len() {
                if high > low + 1 {
                    between = Some(others.with(between, high - 1));
                }
                let either_wins = (wins[low] + wins[high]).min(1.0);
                if either_wins < noise.unlikely_pair() {
                    unlikely = unlikely.max(either_wins);
                    continue;
                }
                let groups = others.best([others.before(low), between.as_deref(), others.after(high)], lowest);
                let rest = rest_of(&groups);
                for (loses, gains) in [(low, high), (high, low)] {
                    if counts[loses] > 0 || one_difference && has_empty_vote {
                        let groups = groups.iter().map(|group| group.for_move(loses < gains)).collect();
                        let change = Change::Between { loses: counts[loses], gains: counts[gains] };
                        pairs.push(MovedVote { change, groups, rest, either_wins });
                    }
                }
            }
        }
        pairs.sort_by(|a, b| b.either_wins.total_cmp(&a.either_wins));
        Self { pairs, unlikely }
    }

    /// Computes the largest mean excess over all moves: from the votes to a neighbour's, and back.
    pub(crate) fn excess(&self, averaged: &AveragedExcess, epsilon: f64) -> (f64, f64) {
        if !averaged.allowance.is_finite() {
            return (f64::INFINITY, f64::INFINITY);
        }
        let of_unlikely = |either_wins: f64| averaged.of_unlikely_pair(either_wins, epsilon);
        let mut worst = (of_unlikely(self.unlikely), of_unlikely(self.unlikely));
        for pair in &self.pairs {
            let bound = of_unlikely(pair.either_wins);
            if bound <= worst.0.min(worst.1) {
                break;
            }
            let found = pair.excess(averaged);
            worst = (larger(worst.0, found.0), larger(worst.1, found.1));
        }
        (worst.0 + averaged.allowance, worst.1 + averaged.allowance)
    }
}

/// The noisy counts of all classes except a pair, grouped by whether a class comes before, between or after the two.
struct OtherClasses<'a> {
    /// `P[noisy count <= place]` of each class.
    below: &'a [Vec<f64>],
    /// The product of these over all classes before each class.
    before: Vec<Vec<f64>>,
    /// The product of these over all classes after each class. A threshold counts as a class after all others.
    after: Vec<Vec<f64>>,
    threshold: bool,
}

impl<'a> OtherClasses<'a> {
    fn new(below: &'a [Vec<f64>], threshold: bool) -> Self {
        let places = below[0].len();
        let products = |classes: &mut dyn Iterator<Item = usize>, first: Vec<f64>| -> Vec<Vec<f64>> {
            let mut product = first;
            let until = |class: usize| {
                let more = multiplied(product.clone(), &below[class]);
                std::mem::replace(&mut product, more)
            };
            classes.map(until).collect()
        };
        let before = products(&mut (0..below.len()), vec![1.0; places]);
        let mut nobody_after = vec![1.0; places];
        if threshold {
            // All of the threshold's mass is at the lowest place: nothing is below.
            nobody_after[0] = 0.0;
        }
        let mut after = products(&mut (0..below.len()).rev(), nobody_after);
        after.reverse();
        Self { below, before, after, threshold }
    }

    /// Returns the product over the classes before this one, if there are any.
    fn before(&self, class: usize) -> Option<&[f64]> {
        (class > 0).then(|| &self.before[class][..])
    }

    /// Returns the product over the classes after this one and the threshold, if there are any.
    fn after(&self, class: usize) -> Option<&[f64]> {
        (class + 1 < self.below.len() || self.threshold).then(|| &self.after[class][..])
    }

    fn with(&self, product: Option<Vec<f64>>, class: usize) -> Vec<f64> {
        match product {
            Some(product) => multiplied(product, &self.below[class]),
            None => self.below[class].clone(),
        }
    }

    /// Returns the distribution of the best noisy count over its places, in one group for each non-empty part.
    fn best(&self, parts: [Option<&[f64]>; 3], lowest: i64) -> Vec<TieGroup> {
        let places = self.below[0].len();
        let mut groups = Vec::new();
        for (which, part) in parts.into_iter().enumerate() {
            let Some(part) = part else { continue };
            // The first of equal counts is the best: classes before it are below the place, classes after it are at
            // most there.
            let mut weights: Vec<f64> = part.windows(2).map(|of| of[1] - of[0]).collect();
            for (other, factors) in parts.into_iter().enumerate() {
                let Some(factors) = factors.filter(|_| other != which) else { continue };
                let factors = if other < which { &factors[..places - 1] } else { &factors[1..] };
                weights.iter_mut().zip(factors).for_each(|(weight, factor)| *weight *= factor);
            }
            let Some(first) = weights.iter().position(|&weight| weight > NEGLIGIBLE) else { continue };
            let last = weights.iter().rposition(|&weight| weight > NEGLIGIBLE).unwrap_or(first);
            groups.push(TieGroup {
                // These are the ties of the lower and the higher class; `for_move` orients them.
                ties: [i64::from(which == 0), i64::from(which <= 1)],
                loser_first: true,
                first: lowest + first as i64,
                weights: weights[first..=last].into(),
            });
        }
        if groups.is_empty() && parts.iter().all(Option::is_none) {
            // Two classes without a threshold: there is no other class to beat.
            groups.push(TieGroup { ties: [0, 0], loser_first: true, first: i64::MIN / 4, weights: [1.0].into() });
        }
        groups
    }
}

fn rest_of(groups: &[TieGroup]) -> f64 {
    let mass: f64 = groups.iter().flat_map(|group| group.weights.iter()).sum();
    (1.0 - mass).max(0.0) + 1e-15
}

fn multiplied(mut product: Vec<f64>, factors: &[f64]) -> Vec<f64> {
    product.iter_mut().zip(factors).for_each(|(product, factor)| *product *= factor);
    product
}

impl TieGroup {
    /// Orients the group for a vote that moves from the lower to the higher class, or back. Let `u_a` and `u_b` be how
    /// far the classes pass their marks. Then `a` wins if `u_b <= u_a + k`, where `k` is the ties of `a` minus the ties
    /// of `b`, minus 1 if `b` comes before `a`. `k` is 0 or -1.
    fn for_move(&self, upwards: bool) -> Self {
        let [low, high] = self.ties;
        let (ties, k) = if upwards { ([low, high], low - high) } else { ([high, low], high - low - 1) };
        Self { ties, loser_first: k == 0, ..self.clone() }
    }
}

impl MovedVote {
    fn excess(&self, averaged: &AveragedExcess) -> (f64, f64) {
        let (mut there, mut back) = (self.rest * averaged.cap, self.rest * averaged.cap);
        for group in &self.groups {
            for (weight, m) in group.weights.iter().zip(group.first..) {
                let [a, b] = group.ties.map(|tie| m + tie);
                let (towards, from) = match self.change {
                    Change::Between { loses, gains } if group.loser_first => {
                        (averaged.at(a - loses, b - gains).re, averaged.at(a - loses + 1, b - gains - 1).im)
                    }
                    Change::Between { loses, gains } => {
                        (averaged.at(b - gains, a - loses).im, averaged.at(b - gains - 1, a - loses + 1).re)
                    }
                    Change::Alone { count, gains: false } => {
                        (averaged.at_alone(a - count).re, averaged.at_alone(a - count + 1).im)
                    }
                    Change::Alone { count, gains: true } => {
                        (averaged.at_alone(a - count).im, averaged.at_alone(a - count - 1).re)
                    }
                };
                there += weight * towards;
                back += weight * from;
            }
        }
        (there, back)
    }
}
