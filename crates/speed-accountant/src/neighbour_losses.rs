//! The exact distributions of the answer, at the votes and at every neighbour, for integer noise that the adversary
//! does not know.
//!
//! A neighbour moves one vote from a class with at least one vote to another class or to none, so that it becomes empty,
//! or an empty vote to a class. The probability of every answer is a sum over the winning noisy count; ties go to the
//! lowest class index, and the answer is "no answer" if no count reaches the threshold. The sums leave out at most `e^-45` times the smallest probability that matters.
//!
//! With more than three classes, answers of Laplace noise that are less likely than a part of a query's share of delta
//! are not computed individually. Their probability, with the mass beyond the tables, counts at the worst ratio, and
//! the probability of the likeliest answer is widened by the same amount on both sides. A relative margin covers
//! rounding. Where the support of other noise ends within the tables, the probabilities at each neighbour are summed
//! anew, because ratios of probabilities are not defined there.
//!
//! # A vote that becomes empty
//!
//! It is compared like every other move. For log-concave noise without a threshold it is never the worst one: minus the
//! logarithm of an answer's probability is a convex function of the counts (`three_answers/largest_moment.rs`, "Neighbours
//! that differ in a party"), also between integers. It does not change if all counts rise by 1, and a convex function
//! with a period is constant along it. So the move from class `a` to none is, but for such a rise, the mean over all
//! classes `b` of the moves from `a` to `b`, and its moment is at most the mean of theirs. For other noise, and with a
//! threshold, this is not known. An empty vote that becomes one for `b` is the mean of moves from all classes, of which
//! some may have no vote, so it may be the worst one.

use std::borrow::Cow;
use std::ops::Range;

use speed_mechanism::{DiscreteLaplace, Lattice, Mechanism};

use crate::event::PrivacyEvent;
use crate::lattice_noise::LatticeNoise;
use crate::logarithms::log_sum;
use crate::sound::larger;

/// Tails beyond `e^-CUT`, and `e^-CUT` times the smallest probability that matters, are left out of sums.
const CUT: f64 = 45.0;
/// Longer tables take too long.
const MAX_REACH: i64 = 20_000;
/// With at most this many classes every answer is summed, however unlikely it is.
const FEW_CLASSES: usize = 3;
/// Answers less likely than this are never summed.
const MIN_PROBABILITY: f64 = 1e-290;
/// Winning counts that together make up at most this part of an answer's probability, at every neighbour, are left out
/// of its sums. This is far below the rounding margin of the sums.
const UNSEEN: f64 = 1e-22;
/// Terms smaller than the largest by this factor's logarithm are left out of moments: far below the rounding margin.
const NO_MATTER: f64 = 48.0;
/// Relative margin for rounding in the comparison that leaves out neighbours whose moment is not the largest.
const NOT_WORST: f64 = 1e-9;
/// Relative margin for rounding in the sums.
const ROUNDING: f64 = 1e-11;
const UP: f64 = 1.0 + ROUNDING;
const DOWN: f64 = 1.0 - ROUNDING;
/// Tables serve votes that are this far apart without copies.
const BORROWED: usize = 500;
/// Votes further apart need too long a table.
const MAX_LEAD: i64 = 1_000_000;
/// Above this epsilon of one query, `e^epsilon` is too large to compute with.
pub(crate) const MAX_EPSILON: f64 = 300.0;

/// `ln` of the tail beyond the tables of noise without a pure epsilon, relative to the probability of answers that are
/// left out.
const BEYOND_TABLES: f64 = -25.0;

/// The treatment of answers that are too unlikely to matter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Unlikely {
    /// Their loss is at most this pure epsilon of one query.
    Bounded(f64),
    /// If they are less likely than this, and likelier than at the other votes, they are left out: their loss may be
    /// infinite. The caller charges [`Unlikely::charge`] to delta for each query.
    LeftOut(f64),
}

impl Unlikely {
    /// Returns the charge to delta for the answers that one query between `classes` classes leaves out, tails of the noise
    /// included.
    pub(crate) fn charge(self, classes: usize) -> f64 {
        match self {
            Self::Bounded(_) => 0.0,
            Self::LeftOut(probability) => (classes as f64 + 2.0) * probability,
        }
    }

    /// Returns the probability below which answers may be left out; 0 if none are.
    pub(crate) fn left_out(self) -> f64 {
        match self {
            Self::Bounded(_) => 0.0,
            Self::LeftOut(probability) => probability,
        }
    }

    /// Returns the logarithm of the probability of an answer. Without a pure epsilon a probability that has lost digits
    /// counts as 0, so that the loss towards it is infinite.
    fn log(self, probability: f64) -> f64 {
        match self {
            Self::LeftOut(_) if probability < MIN_PROBABILITY => f64::NEG_INFINITY,
            _ => probability.ln(),
        }
    }

    fn pure_epsilon(self) -> f64 {
        match self {
            Self::Bounded(epsilon) => epsilon,
            Self::LeftOut(_) => f64::INFINITY,
        }
    }
}

pub(crate) struct ExactNoise {
    reach: i64,
    unlikely: Unlikely,
    /// True if the noise ends within the tables, where ratios of its probabilities are not defined.
    ends: bool,
    threshold: Option<i64>,
    /// Answers less likely than this count with the worst ratio.
    negligible: f64,
    /// Probability of noise beyond the tables, for one class.
    tail: f64,
    pmf: Table,
    /// `P[r <= k]`.
    below: Table,
    /// Their ratios for one vote more or less: `P[r <= k + 1] / P[r <= k]` and so on.
    below_up: Table,
    below_down: Table,
    pmf_up: Table,
    pmf_down: Table,
}

/// A function of an integer from `-reach - 3` to `reach + 3`, and its values outside.
struct Table {
    /// The values, followed by `reach` and at least [`BORROWED`] values of `after`, so that windows for votes that are not
    /// far apart are borrowed.
    values: Vec<f64>,
    first: i64,
    before: f64,
    after: f64,
}

impl Table {
    fn new(reach: i64, before: f64, after: f64, f: impl Fn(i64) -> f64) -> Self {
        let first = -reach - 3;
        let outside = std::iter::repeat_n(after, (reach as usize).max(BORROWED));
        Self { values: (first..=-first).map(f).chain(outside).collect(), first, before, after }
    }

    fn at(&self, k: i64) -> f64 {
        let index = k - self.first;
        if index < 0 { self.before } else { self.values.get(index as usize).copied().unwrap_or(self.after) }
    }

    /// Returns the values at `from, from + 1, ...`.
    fn window(&self, from: i64, places: usize) -> Cow<'_, [f64]> {
        let inside = usize::try_from(from - self.first).ok().and_then(|start| self.values.get(start..start + places));
        inside.map_or_else(|| (from..).take(places).map(|k| self.at(k)).collect(), Cow::Borrowed)
    }
}

impl ExactNoise {
    /// Creates the tables for discrete Laplace noise. `epsilon` is for one query; probabilities below `smallest` hardly
    /// affect the result.
    pub(crate) fn new(event: &PrivacyEvent, epsilon: f64, smallest: f64) -> Option<Self> {
        let Mechanism::DiscreteLaplace { gamma } = event.mechanism() else { return None };
        let negligible = smallest.clamp(MIN_PROBABILITY, 1e-13);
        let reach = ((CUT - (negligible / 1e-13).ln()) / gamma.get()).ceil() as i64 + 3;
        if reach > MAX_REACH || epsilon.is_nan() || epsilon > MAX_EPSILON {
            return None;
        }
        let noise = DiscreteLaplace::of_class(gamma, event.tau()).lattice(reach as usize + 5);
        Some(Self::of_lattice(event, &noise, reach, Unlikely::Bounded(epsilon), negligible))
    }

    /// Creates the tables for noise whose loss is bounded only except for a small probability. Answers less likely than
    /// `left_out` may be left out.
    pub(crate) fn leaving_out(event: &PrivacyEvent, left_out: f64) -> Option<Self> {
        let noise = LatticeNoise::new(event)?;
        let log_tail = left_out.ln() + BEYOND_TABLES;
        let mut reach = (8.0 * noise.deviation()).ceil() as i64 + 8;
        loop {
            if reach > MAX_REACH || log_tail.is_nan() {
                return None;
            }
            let lattice = noise.of_class(reach as usize + 6);
            // The tables hold ratios of probabilities up to here.
            let ends = [-reach - 4, reach + 4].into_iter().any(|end| lattice.log_pmf(end) == f64::NEG_INFINITY);
            if lattice.log_survival(reach).max(lattice.log_below(-reach)) <= log_tail {
                let exact = Self::of_lattice(event, &lattice, reach, Unlikely::LeftOut(left_out), 0.0);
                return Some(Self { ends, ..exact });
            }
            reach += reach / 4;
        }
    }

    fn of_lattice(event: &PrivacyEvent, noise: &Lattice, reach: i64, unlikely: Unlikely, negligible: f64) -> Self {
        let log_below = |k: i64| noise.log_below(k);
        Self {
            reach,
            unlikely,
            ends: false,
            threshold: event.threshold().map(|threshold| threshold as i64),
            negligible,
            tail: noise.log_survival(reach).max(noise.log_below(-reach)).exp(),
            pmf: Table::new(reach, 0.0, 0.0, |k| noise.log_pmf(k).exp()),
            below: Table::new(reach, 0.0, 1.0, |k| log_below(k).exp()),
            below_up: Table::new(reach, 1.0, 1.0, |k| (log_below(k + 1) - log_below(k)).exp()),
            below_down: Table::new(reach, 1.0, 1.0, |k| (log_below(k - 1) - log_below(k)).exp()),
            pmf_up: Table::new(reach, 1.0, 1.0, |k| (noise.log_pmf(k + 1) - noise.log_pmf(k)).exp()),
            pmf_down: Table::new(reach, 1.0, 1.0, |k| (noise.log_pmf(k - 1) - noise.log_pmf(k)).exp()),
        }
    }

    pub(crate) fn has_pure_epsilon(&self) -> bool {
        matches!(self.unlikely, Unlikely::Bounded(_))
    }

    /// Returns the distributions at these votes, of which some may be empty, and at all their neighbours.
    pub(crate) fn losses(&self, counts: &[u32], has_empty_vote: bool) -> NeighbourLosses {
        Distributions::new(self, counts, has_empty_vote).losses()
    }
}

/// The same for two classes and no threshold, where the answer depends only on one difference of noise. It is computed
/// in logarithms, so it works however little noise there is.
pub(crate) struct ExactDifference {
    noise: Lattice,
    unlikely: Unlikely,
}

impl ExactDifference {
    /// Creates the table for integer noise and rows of two counts.
    pub(crate) fn new<'a>(
        event: &PrivacyEvent,
        unlikely: Unlikely,
        rows: impl Iterator<Item = &'a [u32]>,
    ) -> Option<Self> {
        let noise = LatticeNoise::new(event)?;
        if unlikely == Unlikely::Bounded(f64::INFINITY) {
            return None;
        }
        let mut furthest = 0;
        for row in rows {
            let [first, second] = *row else { return None };
            furthest = furthest.max(i64::from(first.abs_diff(second)));
        }
        if event.threshold().is_some() || furthest > MAX_LEAD {
            return None;
        }
        Some(Self { noise: noise.of_difference(furthest as usize + 6), unlikely })
    }

    /// Returns the distributions at these votes and at the neighbours that can be worst.
    ///
    /// Emptying or filling a vote changes the lead by one. Moving a vote between the classes changes it by two. Two steps in
    /// the same direction cost at least as much as one, for both directions of the inequality. The reason is that the
    /// probability of a class after one step lies between its probabilities at the votes and after two steps. A divergence of
    /// two answers is a convex function of each of the two distributions, with its least value where they are equal. If an
    /// answer is left out after two steps, it is also left out after one; then the moment of the other one is at most 1. So
    /// one step counts only if the class that would lose the second vote has none.
    pub(crate) fn losses(&self, counts: &[u32], has_empty_vote: bool) -> NeighbourLosses {
        let [first, second] = [0, 1].map(|class| counts.get(class).map_or(0, |&count| i64::from(count)));
        let lead = first - second;
        // The first class wins ties, so it wins if the difference of the noise is at most its lead.
        let both = |lead: i64| [self.noise.log_survival(-lead), self.noise.log_survival(lead + 1)];
        let likeliest = usize::from(lead < 0);
        let moves = [(first, -1), (second, 1)];
        let neighbours = moves.into_iter().filter(|(loses, _)| *loses > 0 || has_empty_vote).map(|(loses, step)| {
            let (here, there) = (both(lead), both(lead + if loses > 0 { 2 * step } else { step }));
            let pair = |class: usize| (here[class], there[class]);
            let (stays, leaves) = (pair(likeliest), pair(1 - likeliest));
            Neighbour { likeliest: [stays, (stays.1, stays.0)], others: vec![leaves] }
        });
        NeighbourLosses { neighbours: neighbours.collect(), rest: 0.0, unlikely: self.unlikely }
    }
}

/// One answer at the votes and at a neighbour: logarithms of its two probabilities.
type AnswerPair = (f64, f64);

/// The privacy loss at one row of votes towards each of its neighbours.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NeighbourLosses {
    neighbours: Vec<Neighbour>,
    /// Probability at the votes that is in no pair.
    rest: f64,
    unlikely: Unlikely,
}

#[derive(Clone, Debug, PartialEq)]
struct Neighbour {
    /// The likeliest answer, from the votes and back. The first of the two probabilities may be too large and the
    /// second too small, by the probability that is in no pair.
    likeliest: [AnswerPair; 2],
    others: Vec<AnswerPair>,
}

impl NeighbourLosses {
    /// Returns the largest moments of order `l` over all neighbours: from these votes to a neighbour's, and back.
    pub(crate) fn moments(&self, l: f64) -> (f64, f64) {
        self.worst(l).map(|worst| worst.map_or(0.0, |(_, moment)| moment.max(0.0))).into()
    }

    /// Returns the neighbours with the largest moments of order `l`, from these votes and back, with these moments.
    fn worst(&self, l: f64) -> [Option<(usize, f64)>; 2] {
        let log_rest = match self.unlikely {
            // At a neighbour, the rest is at most e^epsilon times as likely.
            Unlikely::Bounded(epsilon) => self.rest.ln() + epsilon * (l + 1.0),
            Unlikely::LeftOut(_) => f64::NEG_INFINITY,
        };
        // Answers below this that are likelier than at the other votes are left out.
        let least = self.unlikely.left_out().ln();
        let mut terms = Vec::new();
        [0, 1].map(|back| {
            let mut worst: Option<(usize, f64)> = None;
            for (index, Neighbour { likeliest, others }) in self.neighbours.iter().enumerate() {
                let losing = |&(here, there): &AnswerPair| if back == 0 { (here, there) } else { (there, here) };
                let shown = others.iter().map(losing).filter(|&(here, there)| !(here < least && here >= there));
                terms.clear();
                terms.extend(shown.map(|pair| term(pair, l) + ROUNDING * (l + 1.0)).chain([log_rest]));
                let largest = terms.iter().copied().fold(f64::NEG_INFINITY, larger);
                let stays = term(likeliest[back], l);
                // Most neighbours are clearly not the worst: ln(e^a + e^b) <= a + e^{b - a}.
                let most = stays + (largest - stays).exp() * terms.len() as f64;
                if worst.is_some_and(|(_, worst)| most < worst - NOT_WORST * worst.abs()) {
                    continue;
                }
                let leaves = if largest > f64::NEG_INFINITY {
                    // The rounding margin covers terms that are left out.
                    let matter = terms.iter().filter(|term| term.is_nan() || **term >= largest - NO_MATTER);
                    largest + matter.map(|term| (term - largest).exp()).sum::<f64>().ln()
                } else {
                    largest
                };
                let moment = larger(log_sum(stays, leaves), f64::NEG_INFINITY);
                if worst.is_none_or(|(_, worst)| moment >= worst) {
                    worst = Some((index, moment));
                }
            }
            worst
        })
    }

    /// Computes privacy profiles on a grid, the largest over all neighbours at each place: how much `delta(alpha)`
    /// exceeds `(1 - alpha)_+`, from these votes to a neighbour's, and back.
    pub(crate) fn profiles(&self, places: &[f64]) -> [Vec<f64>; 2] {
        let alphas: Vec<f64> = places.iter().map(|place| place.exp()).collect();
        let mut worst = [vec![0.0f64; alphas.len()], vec![0.0f64; alphas.len()]];
        let mut excess = vec![0.0; alphas.len()];
        let mut pairs: Vec<(f64, f64)> = Vec::new();
        for Neighbour { likeliest, others } in &self.neighbours {
            pairs.clear();
            pairs.extend(others.iter().map(|&(here, there)| (here.exp(), there.exp())));
            for (back, worst) in worst.iter_mut().enumerate() {
                let of_likeliest = excess_of_likeliest(likeliest[back]);
                excess.iter_mut().zip(&alphas).for_each(|(excess, &alpha)| *excess = of_likeliest(alpha));
                for &(here, there) in &pairs {
                    let (p, p_there) = if back == 0 { (here, there) } else { (there, here) };
                    excess
                        .iter_mut()
                        .zip(&alphas)
                        .for_each(|(excess, alpha)| *excess += (p * UP - alpha * p_there * DOWN).max(0.0));
                }
                worst.iter_mut().zip(&excess).for_each(|(worst, excess)| *worst = larger(*worst, *excess));
            }
        }
        let off = match self.unlikely {
            Unlikely::Bounded(epsilon) => self.rest * epsilon.exp(),
            Unlikely::LeftOut(_) => self.rest,
        };
        worst.iter_mut().flatten().for_each(|worst| *worst += off);
        worst
    }

    /// Returns the largest loss of an answer that is at least this likely where it loses.
    pub(crate) fn largest_loss(&self, probability: f64) -> f64 {
        let least = probability.ln();
        let pairs = self.neighbours.iter().flat_map(|neighbour| neighbour.likeliest.iter().chain(&neighbour.others));
        pairs
            .filter(|(here, there)| here.max(*there) >= least)
            .map(|(here, there)| (here - there).abs())
            .filter(|loss| loss.is_finite())
            .fold(0.0, larger)
    }

    /// Keeps only the neighbours that are worst at one of these orders, which is enough to search for a good order.
    pub(crate) fn leaders(&self, orders: &[f64]) -> Self {
        let worst = orders.iter().flat_map(|&l| self.worst(l));
        let mut leaders: Vec<usize> = worst.flatten().map(|(index, _)| index).collect();
        leaders.sort_unstable();
        leaders.dedup();
        Self { neighbours: leaders.into_iter().map(|i| self.neighbours[i].clone()).collect(), ..*self }
    }
}

/// Returns `ln p^{l+1} / p'^l`.
fn term((here, there): AnswerPair, l: f64) -> f64 {
    here + l * (here - there)
}

/// Arrays over the noisy counts that can win.
struct Distributions<'a> {
    noise: &'a ExactNoise,
    counts: Vec<i64>,
    has_empty_vote: bool,
    first: i64,
    places: usize,
    /// `ways[k][x]`: probability that class `k`'s noisy count is `x` and beats all others.
    ways: Vec<Vec<f64>>,
}

impl<'a> Distributions<'a> {
    fn new(noise: &'a ExactNoise, counts: &[u32], has_empty_vote: bool) -> Self {
        let counts: Vec<i64> = counts.iter().map(|&count| i64::from(count)).collect();
        let most = counts.iter().copied().max().unwrap_or(0);
        let last = most + noise.reach + i64::from(noise.ends);
        let first = (most - noise.reach - i64::from(noise.ends)).max(noise.threshold.unwrap_or(i64::MIN)).min(last);
        let places = (last - first + 1) as usize;
        let ways = winning(noise, &counts, first, places);
        Self { noise, counts, has_empty_vote, first, places, ways }
    }

    /// Lists the places that a vote can leave: classes with votes, and that of the empty vote, after all classes.
    fn places_with_votes(&self) -> impl Iterator<Item = usize> + '_ {
        (0..=self.counts.len()).filter(|&place| self.counts.get(place).map_or(self.has_empty_vote, |&count| count > 0))
    }

    fn index(&self, from: usize, to: usize) -> usize {
        from * (self.counts.len() + 1) + to
    }

    fn losses(&self) -> NeighbourLosses {
        let (classes, unlikely) = (self.counts.len(), self.noise.unlikely);
        let negligible = match unlikely {
            // Every answer is summed.
            Unlikely::LeftOut(_) => f64::NEG_INFINITY,
            Unlikely::Bounded(_) if classes <= FEW_CLASSES => MIN_PROBABILITY,
            Unlikely::Bounded(_) => self.noise.negligible,
        };
        // "No answer" is one more answer.
        let silent = classes;
        let mut base: Vec<f64> = self.ways.iter().map(|ways| ways.iter().sum()).collect();
        base.push(self.nobody(|_| 0));
        let (answers, left_out): (Vec<usize>, Vec<usize>) = (0..=classes).partition(|&k| base[k] > negligible);
        let rest = left_out.iter().map(|&k| base[k]).sum::<f64>() + 2.0 * classes as f64 * self.noise.tail;
        let rest_there = match unlikely {
            Unlikely::Bounded(epsilon) => rest * epsilon.exp(),
            Unlikely::LeftOut(_) => rest,
        };
        let likeliest = answers.iter().copied().max_by(|&a, &b| base[a].total_cmp(&base[b])).unwrap_or(0);
        let there = if self.noise.ends { self.at_neighbours() } else { self.towards_neighbours(&answers, &base) };
        let mut neighbours = Vec::new();
        for from in self.places_with_votes() {
            for to in (0..=classes).filter(|&k| k != from) {
                let there = |k: usize| {
                    if k == silent {
                        return self.nobody(|class| i64::from(class == to) - i64::from(class == from));
                    }
                    there[k][self.index(from, to)]
                };
                let others: Vec<(f64, f64)> =
                    answers.iter().filter(|&&k| k != likeliest).map(|&k| (base[k], there(k))).collect();
                // If the likeliest answer is close to certain, it is computed from the others, so that nothing cancels.
                let (q, q_there) = others.iter().fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
                let stays = there(likeliest);
                let here = log_of_likeliest(base[likeliest], q, rest);
                let there = log_of_likeliest(stays, q_there, rest_there);
                let others = others.iter().map(|pair| (unlikely.log(pair.0), unlikely.log(pair.1))).collect();
                neighbours.push(Neighbour { likeliest: [(here.0, there.1), (there.0, here.1)], others });
            }
        }
        NeighbourLosses { neighbours, rest, unlikely }
    }

    /// Returns the same as [`Self::towards_neighbours`] for all classes, by sums at the votes of each neighbour.
    fn at_neighbours(&self) -> Vec<Vec<f64>> {
        let classes = self.counts.len();
        let mut there = vec![vec![0.0; (classes + 1) * (classes + 1)]; classes];
        for from in self.places_with_votes() {
            for to in (0..=classes).filter(|&to| to != from) {
                let mut moved = self.counts.clone();
                for (place, by) in [(from, -1), (to, 1)] {
                    moved.get_mut(place).into_iter().for_each(|count| *count += by);
                }
                // A count that gained a vote reaches one place further.
                for (class, ways) in winning(self.noise, &moved, self.first, self.places).iter().enumerate() {
                    there[class][self.index(from, to)] = ways.iter().sum();
                }
            }
        }
        there
    }

    /// Returns, for each class among `answers`, its probability after a vote moved, at the [`Self::index`] of the move.
    /// `base` holds the probabilities at the votes. The factor for the class that loses a vote is multiplied in once for
    /// all classes that can gain it, because most of the time goes into these sums.
    fn towards_neighbours(&self, answers: &[usize], base: &[f64]) -> Vec<Vec<f64>> {
        let classes = self.counts.len();
        let rivals: Vec<Rival<'_>> = (0..classes).map(|class| Rival::new(self, class)).collect();
        let mut there = vec![Vec::new(); classes];
        let mut lost = vec![0.0; self.places];
        // The factor of an empty vote.
        let unchanged = vec![1.0; self.places];
        for &k in answers.iter().filter(|&&k| k < classes) {
            there[k] = vec![0.0; (classes + 1) * (classes + 1)];
            let shown = self.shown(&self.ways[k], base[k]);
            let lost = &mut lost[..shown.len()];
            for from in self.places_with_votes() {
                // Lower classes win ties, so they must be beaten strictly.
                let loses: &[f64] = match rivals.get(from) {
                    Some(own) if k == from => &own.own_up,
                    Some(rival) => &rival.eased[usize::from(from < k)],
                    None => &unchanged,
                };
                let factors = self.ways[k][shown.clone()].iter().zip(&loses[shown.clone()]);
                lost.iter_mut().zip(factors).for_each(|(lost, (ways, loses))| *lost = ways * loses);
                let gains = |to: usize| -> &[f64] {
                    let gains: &[f64] = match rivals.get(to) {
                        Some(own) if k == to => &own.own_down,
                        Some(rival) => &rival.pressed[usize::from(to < k)],
                        None => &unchanged,
                    };
                    &gains[shown.clone()]
                };
                let others: Vec<usize> = (0..=classes).filter(|&to| to != from).collect();
                let sums = &mut there[k][self.index(from, 0)..][..=classes];
                let (threes, rest) = others.as_chunks::<3>();
                for group in threes {
                    let of_group = sums_of_products(lost, group.map(gains));
                    group.iter().zip(of_group).for_each(|(&to, sum)| sums[to] = sum);
                }
                rest.iter().for_each(|&to| [sums[to]] = sums_of_products(lost, [gains(to)]));
            }
        }
        there
    }

    /// Returns the range of winning counts for the sums of an answer; `sum` is the sum of its `ways`.
    fn shown(&self, ways: &[f64], sum: f64) -> Range<usize> {
        // At a neighbour a count weighs at most e^epsilon times as much, and the answer at least e^-epsilon times.
        let unseen = 0.5 * UNSEEN * (-2.0 * self.noise.unlikely.pure_epsilon()).exp() * sum;
        let within = |total: &mut f64, &value: &f64| {
            *total += value;
            (*total <= unseen).then_some(())
        };
        let first = ways.iter().scan(0.0, within).count();
        let last = ways.iter().rev().scan(0.0, within).count();
        first..(ways.len() - last).max(first)
    }

    /// Returns the probability that no count reaches the threshold after votes moved.
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
    let mut ways: Vec<Vec<f64>> =
        counts.iter().map(|count| noise.pmf.window(first - count, places).into_owned()).collect();
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

/// Effect of a class that loses or gains a vote on probabilities at each winning count.
struct Rival<'a> {
    /// Factors for beating it after it lost a vote: if it loses ties, and if it wins them.
    eased: [Cow<'a, [f64]>; 2],
    /// The same after it gained a vote.
    pressed: [Cow<'a, [f64]>; 2],
    /// Factors for its own count after it lost a vote (`own_up`), and after it gained one (`own_down`).
    own_up: Cow<'a, [f64]>,
    own_down: Cow<'a, [f64]>,
}

impl<'a> Rival<'a> {
    fn new(of: &Distributions<'a>, class: usize) -> Self {
        let from = of.first - of.counts[class];
        let window = |table: &'a Table, lower: i64| table.window(from - lower, of.places);
        Self {
            eased: [window(&of.noise.below_up, 0), window(&of.noise.below_up, 1)],
            pressed: [window(&of.noise.below_down, 0), window(&of.noise.below_down, 1)],
            own_up: window(&of.noise.pmf_up, 0),
            own_down: window(&of.noise.pmf_down, 0),
        }
    }
}

/// Returns `sum a b` for several `b`, in lanes, because in a plain sum each term waits for the previous one.
fn sums_of_products<const N: usize>(a: &[f64], b: [&[f64]; N]) -> [f64; N] {
    const LANES: usize = 8;
    let (of_a, rest_of_a) = a.as_chunks::<LANES>();
    let of_b = b.map(|b| b.as_chunks::<LANES>());
    let mut sums = [[0.0; LANES]; N];
    for (place, a) in of_a.iter().enumerate() {
        for (sums, (b, _)) in sums.iter_mut().zip(&of_b) {
            for ((sum, a), b) in sums.iter_mut().zip(a).zip(&b[place]) {
                *sum += a * b;
            }
        }
    }
    std::array::from_fn(|i| {
        let rest: f64 = rest_of_a.iter().zip(of_b[i].1).map(|(a, b)| a * b).sum();
        rest + sums[i].iter().sum::<f64>()
    })
}

/// Returns an upper and a lower bound of `ln p`, where `p` was summed and `1 - p` is from `q` to `q + rest`.
fn log_of_likeliest(p: f64, q: f64, rest: f64) -> (f64, f64) {
    if q + rest < 0.5 { ((-q).ln_1p(), (-(q + rest)).ln_1p()) } else { (p.ln() + ROUNDING, p.ln() - ROUNDING) }
}

/// Returns `(p - alpha p')_+ - (1 - alpha)_+` as a function of `alpha`, for logarithms of two probabilities, without
/// cancellation if both are close to 1.
fn excess_of_likeliest((log_p, log_p_there): AnswerPair) -> impl Fn(f64) -> f64 {
    let close_to_1 = log_p >= -std::f64::consts::LN_2 && log_p_there >= -std::f64::consts::LN_2;
    let (p, p_there) = (log_p.exp() * UP, log_p_there.exp() * DOWN);
    let (q, q_there) = (-log_p.exp_m1() * DOWN, -log_p_there.exp_m1() * UP);
    move |alpha| {
        let tells_nothing = 1.0 - alpha;
        if !close_to_1 {
            return (p - alpha * p_there).max(0.0) - tells_nothing.max(0.0);
        }
        let less = q - alpha * q_there;
        if tells_nothing <= 0.0 { (tells_nothing - less).max(0.0) } else { (-less).max(-tells_nothing) }
    }
}
