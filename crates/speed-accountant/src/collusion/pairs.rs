//! One row of votes: the law of the best of the others for every pair of classes, and the largest mean over pairs.

use std::rc::Rc;

use super::{Averaged, KnownNoise};
use crate::sound::larger;

/// Probability that is left out where it lies at places so far out.
const NEGLIGIBLE: f64 = 1e-13;
/// Pairs of which neither wins but with this probability are bounded by it.
const UNLIKELY: f64 = 1e-7;

/// How the best of the others resolves ties with a pair, and with what probability it is where.
#[derive(Clone, Debug)]
struct Group {
    /// What ties add to the marks of the class that loses and of the one that gains a vote.
    ties: [i64; 2],
    /// Whether the class that loses a vote wins against the other in a tie of how far each passes its mark.
    loser_first: bool,
    first: i64,
    weights: Rc<[f64]>,
}

/// A class that loses a vote and one that gains it.
#[derive(Clone, Debug)]
struct Pair {
    loses: i64,
    gains: i64,
    groups: Vec<Group>,
    /// Probability in no group.
    rest: f64,
    /// Bounds the probability that either wins, at the votes and at the neighbour.
    either_wins: f64,
}

/// The pairs of one row.
#[derive(Clone, Debug)]
pub(crate) struct KnownRow {
    /// Pairs with the winner first, then by how likely either wins.
    pairs: Vec<Pair>,
    /// Bounds how likely either wins of any pair that is not among them.
    unlikely: f64,
}

impl KnownNoise {
    /// Prepares a row.
    pub(crate) fn row(&self, counts: &[u32]) -> KnownRow {
        let counts: Vec<i64> = counts.iter().map(|&count| i64::from(count)).collect();
        let most = counts.iter().copied().max().unwrap_or(0);
        let reach = self.plane.reach();
        // The best of the others is hardly ever further from the winner than this.
        let highest = most + reach;
        let floor = counts.iter().copied().min().unwrap_or(0).max(most - 4 * reach) - reach;
        let lowest = self.threshold.map_or(floor, |threshold| floor.max(threshold)).min(highest);
        let places = (highest - lowest + 1) as usize;
        // P[noisy count <= lowest - 1 + i].
        let mut below: Vec<Vec<f64>> = counts
            .iter()
            .map(|count| (0..=places as i64).map(|i| self.below(lowest - 1 + i - count)).collect())
            .collect();
        if self.threshold.is_none() {
            // What is below the lowest place counts as there.
            below.iter_mut().for_each(|below| below[0] = 0.0);
        }
        // P[a class beats the winner], at the votes or with one vote more.
        let wins: Vec<f64> =
            counts.iter().map(|&count| if count == most { 1.0 } else { self.beats(most - count - 1) }).collect();
        let (mut pairs, mut unlikely) = (Vec::new(), 0.0f64);
        for low in 0..counts.len() {
            for high in low + 1..counts.len() {
                let either_wins = (wins[low] + wins[high]).min(1.0);
                if either_wins < UNLIKELY {
                    unlikely = unlikely.max(either_wins);
                    continue;
                }
                let groups = self.best_of_others(&below, low, high, lowest);
                let mass: f64 = groups.iter().flat_map(|group| group.weights.iter()).sum();
                let rest = (1.0 - mass).max(0.0) + 1e-15;
                for (loses, gains) in [(low, high), (high, low)] {
                    if counts[loses] > 0 {
                        let groups = groups.iter().map(|group| group.for_move(loses < gains)).collect();
                        pairs.push(Pair { loses: counts[loses], gains: counts[gains], groups, rest, either_wins });
                    }
                }
            }
        }
        pairs.sort_by(|a, b| b.either_wins.total_cmp(&a.either_wins));
        KnownRow { pairs, unlikely }
    }

    /// Where the best noisy count of all classes but two is, by whether its class is before both, between them or after
    /// both (a threshold counts as a class after all).
    fn best_of_others(&self, below: &[Vec<f64>], low: usize, high: usize, lowest: i64) -> Vec<Group> {
        let places = below[0].len();
        let product = |classes: std::ops::Range<usize>| {
            let mut product = vec![1.0; places];
            for class in classes.clone() {
                product.iter_mut().zip(&below[class]).for_each(|(product, factor)| *product *= factor);
            }
            (!classes.is_empty()).then_some(product)
        };
        let (before, between) = (product(0..low), product(low + 1..high));
        let mut after = product(high + 1..below.len());
        if self.threshold.is_some() {
            // All of the threshold's mass is at the lowest place: nothing is below.
            let after = after.get_or_insert_with(|| vec![1.0; places]);
            after[0] = 0.0;
        }
        let at = |values: &Option<Vec<f64>>, i: usize| values.as_ref().map_or(1.0, |values| values[i]);
        let mass = |which: usize, i: usize| {
            // The first of equals is the best: classes before it are below the place, those after it at most there.
            let value = |group: usize, values: &Option<Vec<f64>>| match group.cmp(&which) {
                std::cmp::Ordering::Less => at(values, i - 1),
                std::cmp::Ordering::Equal => at(values, i) - at(values, i - 1),
                std::cmp::Ordering::Greater => at(values, i),
            };
            value(0, &before) * value(1, &between) * value(2, &after)
        };
        let mut groups = Vec::new();
        for (which, present) in [before.is_some(), between.is_some(), after.is_some()].into_iter().enumerate() {
            if !present {
                continue;
            }
            let weights: Vec<f64> = (1..places).map(|i| mass(which, i)).collect();
            let Some(first) = weights.iter().position(|&weight| weight > NEGLIGIBLE) else { continue };
            let last = weights.iter().rposition(|&weight| weight > NEGLIGIBLE).unwrap_or(first);
            groups.push(Group {
                // Of the lower and the higher class, for now.
                ties: [i64::from(which == 0), i64::from(which <= 1)],
                loser_first: true,
                first: lowest + first as i64,
                weights: weights[first..=last].into(),
            });
        }
        if groups.is_empty() && before.is_none() && between.is_none() && after.is_none() {
            // Two classes: nobody else is in the way.
            groups.push(Group { ties: [0, 0], loser_first: true, first: i64::MIN / 4, weights: [1.0].into() });
        }
        groups
    }
}

impl Group {
    /// For a vote that moves from the lower to the higher class, or back. In terms of how far they pass their marks `a`
    /// wins where `u_b <= u_a + k`: `k` is the ties of `a` less those of `b`, less 1 if `b` comes before `a`, and that is 0
    /// or -1.
    fn for_move(&self, upwards: bool) -> Self {
        let [low, high] = self.ties;
        let (ties, k) = if upwards { ([low, high], low - high) } else { ([high, low], high - low - 1) };
        Self { ties, loser_first: k == 0, ..self.clone() }
    }
}

impl KnownRow {
    /// The largest mean excess over all pairs: from the votes to a neighbour's, and back.
    pub(crate) fn excess(&self, averaged: &Averaged, epsilon: f64) -> (f64, f64) {
        // Where the answer is hardly ever one of the two: the chord, docs/privacy.md.
        let chord = |either_wins: f64| averaged.cap * (either_wins * (1.0 + epsilon.exp())).min(1.0);
        let mut worst = (chord(self.unlikely), chord(self.unlikely));
        for pair in &self.pairs {
            let bound = chord(pair.either_wins);
            if bound <= worst.0.min(worst.1) {
                break;
            }
            let found = pair.excess(averaged);
            worst = (larger(worst.0, found.0), larger(worst.1, found.1));
        }
        (worst.0 + averaged.allowance, worst.1 + averaged.allowance)
    }
}

impl Pair {
    fn excess(&self, averaged: &Averaged) -> (f64, f64) {
        let (mut there, mut back) = (self.rest * averaged.cap, self.rest * averaged.cap);
        for group in &self.groups {
            for (weight, m) in group.weights.iter().zip(group.first..) {
                let (x, y) = (m + group.ties[0] - self.loses, m + group.ties[1] - self.gains);
                if group.loser_first {
                    there += weight * averaged.at(x, y).re;
                    back += weight * averaged.at(x + 1, y - 1).im;
                } else {
                    there += weight * averaged.at(y, x).im;
                    back += weight * averaged.at(y - 1, x + 1).re;
                }
            }
        }
        (there, back)
    }
}
