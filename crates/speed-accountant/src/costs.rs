//! What the rows of a run cost at one order of moments.

use std::collections::HashMap;

use rayon::prelude::*;
use speed_mechanism::HonestRatio;

use crate::collusion::{KnownNoise, KnownRow};
use crate::composition::{LossDistribution, Profile, improved_epsilon};
use crate::instance::{ExactDifference, ExactNoise, Instance, LARGEST_EPSILON};
use crate::moments::{
    Chord, Family, known_noise_excess, outcome_excess, outcome_moment, paper_without_votes, pure_moment, theorem_3,
};
use crate::outcome::{Gaps, OutcomeBound};
use crate::renyi::{SkellamCurve, gaussian_rdp, theorem_6, theorem_6_at};
use crate::sound::larger;
use crate::three_answers::Envelope;
use crate::{Bound, Directions, Noise, PrivacyEvent};

/// Rows are not worth their exact distributions if all of them together are this part of the sum of moments.
const NOT_WORTH_DISTRIBUTIONS: f64 = 1e-3;
/// Of each query's share of delta, what hardly shows.
const HARDLY_SHOWS: f64 = 1e-7;
/// Neighbours grow with the square of the classes: beyond this the bounds from `q` have to do.
const MOST_CLASSES: usize = 40;
/// Orders at which the neighbours that a search follows are chosen.
const LEADING_ORDERS: [f64; 7] = [0.5, 3.0, 12.0, 30.0, 90.0, 400.0, 2_000.0];

/// Steps of the grid of privacy losses from 0 to the epsilon of one query: more where that is large, and where two classes
/// make it cheap.
const STEPS: usize = 32;
const STEPS_OF_LARGE: usize = 96;
const STEPS_OF_TWO_CLASSES: usize = 256;
/// An epsilon of one query from which on it is large.
const LARGE: f64 = 0.7;
/// A thread takes at least so many rows: fewer are done before another one wakes.
const ROWS_OF_A_THREAD: usize = 32;
/// So few rows take every bound that is known.
const FEW_ROWS: usize = 16;
/// What a profile in closed form may be off by, relative to it.
const PROFILE_ROUNDING: f64 = 1e-13;

/// How the moment of a row follows from its `q`.
pub(crate) enum Law {
    /// Pure epsilon of one query.
    Pure { epsilon: f64, family: Family, known_noise: bool },
    /// A Rényi curve; `with_votes` says whether Theorem 6 of PATE 2018 applies.
    Renyi { curve: Curve, variance: f64, with_votes: bool },
}

pub(crate) enum Curve {
    Gaussian(PrivacyEvent),
    Skellam(Box<SkellamCurve>),
}

/// Rows that cost the same, once.
struct Row {
    times: f64,
    log_q: f64,
    log_q_back: f64,
    instance: Option<Instance>,
    leaders: Option<Instance>,
    known: Option<KnownRow>,
}

/// The sum of moments of all rows as a function of the order.
pub(crate) struct Costs {
    law: Law,
    rows: Vec<Row>,
    directions: Directions,
    epsilon: f64,
    within: f64,
    steps: usize,
    known_noise: Option<KnownNoise>,
}

/// What became of the noise of the teachers beyond the ratio `tau`, in all queries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Others {
    /// Nobody added it, or nobody is left.
    Missing,
    /// The adversary knows the noise of this ratio of the teachers; that of the others is missing.
    Known(HonestRatio),
}

/// A sum of moments, and how many rows the votes made cheaper.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Total {
    pub(crate) alpha: f64,
    pub(crate) dependent: usize,
}

/// What the costs of rows are to be of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CostsRequest<'a> {
    pub(crate) event: &'a PrivacyEvent,
    /// Pure epsilon of one query.
    pub(crate) epsilon: f64,
    /// The same but for a probability that the caller charges to delta.
    pub(crate) within: f64,
    pub(crate) others: Others,
    pub(crate) directions: Directions,
    pub(crate) bound: Bound,
    /// Whether `q` of close votes is integrated.
    pub(crate) integrals: bool,
    /// That of all queries.
    pub(crate) delta: f64,
}

impl Law {
    pub(crate) fn new(event: &PrivacyEvent, epsilon: f64, others: Others, bound: Bound) -> Self {
        let family = if bound == Bound::Paper { Family::Paper } else { Family::Exact };
        let known_noise = others != Others::Missing;
        let (curve, sigma) = match event.noise() {
            Noise::Laplace { .. } | Noise::DiscreteLaplace { .. } => {
                return Self::Pure { epsilon, family, known_noise };
            }
            Noise::Gaussian { sigma } => (Curve::Gaussian(*event), sigma),
            Noise::Skellam { sigma } => (Curve::Skellam(Box::new(SkellamCurve::new(sigma, event.tau()))), sigma),
        };
        let variance = sigma.get() * sigma.get() * event.tau().get();
        Self::Renyi { curve, variance, with_votes: !known_noise }
    }

    pub(crate) fn without_votes(&self, l: f64) -> f64 {
        match self {
            Self::Pure { epsilon, family: Family::Paper, .. } => paper_without_votes(*epsilon, l),
            Self::Pure { epsilon, family: Family::Exact, .. } => pure_moment(*epsilon, l),
            Self::Renyi { curve, .. } => l * curve.rdp(l + 1.0),
        }
    }

    /// The moments of one order as a function of `ln q`.
    pub(crate) fn at(&self, l: f64) -> impl Fn(f64) -> f64 + '_ {
        let chord = match self {
            Self::Pure { epsilon, family, known_noise: true } => Some(Chord::new(*family, *epsilon, l)),
            _ => None,
        };
        move |log_q| match (self, &chord) {
            (_, Some(chord)) => chord.moment(log_q),
            (Self::Pure { epsilon, family: Family::Paper, .. }, None) => theorem_3(*epsilon, log_q, l),
            (Self::Pure { epsilon, family: Family::Exact, .. }, None) => outcome_moment(*epsilon, log_q, l),
            (Self::Renyi { curve, variance, with_votes: true }, None) => {
                l * theorem_6(log_q, *variance, l + 1.0, |order| curve.rdp(order))
            }
            (Self::Renyi { .. }, None) => self.without_votes(l),
        }
    }

    /// A bound that does not fall with `q`: for Rényi curves Theorem 6 at orders that do not depend on `q`; the envelope of
    /// three answers where that is less.
    pub(crate) fn growing_with_q(&self, log_q: f64, l: f64, second_orders: &[f64], envelope: Option<&Envelope>) -> f64 {
        let of_envelope = envelope.map_or(f64::INFINITY, |envelope| envelope.at(log_q).ln_1p());
        let of_law = match self {
            Self::Renyi { curve, with_votes: true, .. } => {
                let at = |&second: &f64| l * theorem_6_at(log_q, second, l + 1.0, |order| curve.rdp(order));
                second_orders.iter().map(at).fold(f64::INFINITY, f64::min)
            }
            Self::Pure { .. } | Self::Renyi { .. } => self.at(l)(log_q),
        };
        of_law.min(of_envelope)
    }
}

impl Curve {
    fn rdp(&self, order: f64) -> f64 {
        match self {
            Self::Gaussian(event) => match event.noise() {
                Noise::Gaussian { sigma } => gaussian_rdp(sigma, event.tau(), order),
                _ => f64::INFINITY,
            },
            Self::Skellam(curve) => curve.rdp(order),
        }
    }
}

/// Rows without distributions of their own hardly matter: those whose `ln q` differ by less than this count as one, with
/// the larger.
const MERGED: f64 = 0.25;

/// Merges the rows that are not worth their distributions.
fn with_the_rest_merged(rows: Vec<Row>) -> Vec<Row> {
    let up = |log_q: f64| (log_q / MERGED).ceil() * MERGED;
    let mut merged: Vec<Row> = Vec::new();
    let mut places: HashMap<[u64; 2], usize> = HashMap::new();
    for row in rows {
        if row.instance.is_some() || row.known.is_some() {
            merged.push(row);
            continue;
        }
        let (log_q, log_q_back) = (up(row.log_q), up(row.log_q_back));
        let place = *places.entry([log_q, log_q_back].map(f64::to_bits)).or_insert(merged.len());
        match merged.get_mut(place) {
            Some(same) => same.times += row.times,
            None => merged.push(Row { log_q, log_q_back, ..row }),
        }
    }
    merged
}

/// Which rows (how many times, `ln q` at the votes and at the worst neighbour) matter enough at one of the orders that are
/// likely to be best.
fn worth_distributions(law: &Law, rows: &[(f64, f64, f64)], delta: f64) -> Vec<bool> {
    let moments = |l: f64| -> Vec<f64> {
        let (at, without) = (law.at(l), law.without_votes(l));
        rows.iter().map(|&(times, _, log_q)| times * at(log_q).min(without)).collect()
    };
    // About the best order, from one in each octave.
    let octaves = (-4..=12).map(|octave| 2f64.powi(octave));
    let epsilon = |l: f64| improved_epsilon(moments(l).iter().sum(), l, delta);
    let best = octaves.map(|l| (epsilon(l), l)).min_by(|a, b| a.0.total_cmp(&b.0)).map_or(1.0, |best| best.1);
    let mut worth = vec![false; rows.len()];
    for factor in [1.0, 2.5] {
        let moments = moments(factor * best);
        let mut left = NOT_WORTH_DISTRIBUTIONS * moments.iter().sum::<f64>();
        let mut rising: Vec<usize> = (0..rows.len()).collect();
        rising.sort_by(|&i, &j| moments[i].total_cmp(&moments[j]));
        for i in rising {
            left -= moments[i];
            worth[i] |= left.is_nan() || left < 0.0;
        }
    }
    worth
}

impl Costs {
    /// Prepares rows of votes; `epsilon` is that of one query, and `delta` that of all of them.
    pub(crate) fn new(request: &CostsRequest<'_>, rows: &[(Gaps, &[u32])]) -> Self {
        let CostsRequest { event, epsilon, within, others, directions, bound, integrals, delta } = *request;
        // With known noise what counts is q with that noise unknown.
        let judged = match others {
            Others::Missing => *event,
            Others::Known(known) => event.with_more_noise(known),
        };
        let all: Vec<Gaps> = rows.iter().map(|(gaps, _)| gaps.clone()).collect();
        let outcome = OutcomeBound::new(&judged, bound, integrals, &all);
        let few_classes = rows.iter().all(|(gaps, _)| gaps.classes() <= MOST_CLASSES);
        let share = delta / rows.len() as f64;
        let tight = bound == Bound::Tight && few_classes;
        let counts = || rows.iter().map(|(_, counts)| *counts);
        let (mut exact, mut difference, mut known_noise) = (None, None, None);
        match others {
            _ if !tight => {}
            Others::Missing => {
                difference = ExactDifference::new(event, epsilon, counts());
                if difference.is_none() {
                    exact = ExactNoise::new(event, epsilon, HARDLY_SHOWS * share);
                }
            }
            Others::Known(known) => known_noise = KnownNoise::new(event, known, epsilon),
        }
        let law = Law::new(event, within, others, bound);
        // The order of the classes matters only where ties are resolved.
        let mut distinct: HashMap<Vec<u32>, (usize, &Gaps)> = HashMap::new();
        let mut order: Vec<Vec<u32>> = Vec::new();
        for (gaps, counts) in rows {
            let mut key = counts.to_vec();
            if exact.is_none() && difference.is_none() && known_noise.is_none() {
                key.sort_unstable();
            }
            let entry = distinct.entry(key.clone()).or_insert((0, gaps));
            if entry.0 == 0 {
                order.push(key);
            }
            entry.0 += 1;
        }
        let bounds: Vec<(f64, f64, f64)> = order
            .par_iter()
            .filter_map(|key| distinct.get(key))
            .map(|&(times, gaps)| {
                let log_q = outcome.log_q(gaps);
                let back = if directions == Directions::Both { outcome.log_q_of_neighbours(gaps) } else { log_q };
                (times as f64, log_q, larger(back, log_q))
            })
            .collect();
        let worth = if exact.is_some() || known_noise.is_some() {
            worth_distributions(&law, &bounds, delta)
        } else {
            vec![difference.is_some(); bounds.len()]
        };
        let rows: Vec<Row> = order
            .par_iter()
            .zip(bounds)
            .zip(worth)
            .map(|((counts, (times, log_q, log_q_back)), worth)| {
                let instance = exact.as_ref().filter(|_| worth).map(|exact| exact.instance(counts));
                let instance = instance.or_else(|| difference.as_ref().map(|exact| exact.instance(counts)));
                let leaders = instance.as_ref().map(|instance| instance.leaders(&LEADING_ORDERS));
                let known = known_noise.as_ref().filter(|_| worth).map(|known| known.row(counts));
                Row { times, log_q, log_q_back, instance, leaders, known }
            })
            .collect();
        let rows = if exact.is_some() || known_noise.is_some() { with_the_rest_merged(rows) } else { rows };
        let steps = match all.first().map(Gaps::classes) {
            Some(2) if event.threshold().is_none() => STEPS_OF_TWO_CLASSES,
            _ if epsilon > LARGE => STEPS_OF_LARGE,
            // Losses beyond `within` are rare.
            _ => (STEPS as f64 * (epsilon / within).clamp(1.0, 4.0)).ceil() as usize,
        };
        Self { law, rows, directions, epsilon, within, steps, known_noise }
    }

    /// Whether known noise is averaged exactly, which takes long for each order.
    pub(crate) fn is_exact_mixture(&self) -> bool {
        self.known_noise.is_some()
    }

    /// The certified sum of moments of order `l`: over all neighbours, in the worse direction.
    pub(crate) fn total(&self, l: f64) -> Total {
        let averaged = self.known_noise.as_ref().map(|known| known.averaged(l));
        self.sum(l, |row| {
            let known =
                row.known.as_ref().zip(averaged.as_ref()).map(|(row, averaged)| row.excess(averaged, self.epsilon));
            let known = known.map(|(there, back)| (there.ln_1p(), back.ln_1p()));
            known.or_else(|| row.instance.as_ref().map(|instance| instance.moments(l)))
        })
    }

    /// The same without what is expensive and unlikely to matter: to look for a good order with.
    pub(crate) fn estimate(&self, l: f64) -> f64 {
        self.sum(l, |row| row.leaders.as_ref().map(|leaders| leaders.moments(l))).alpha
    }

    /// Loss distributions of all rows that dominate every neighbour's, from the votes and back, with how often each
    /// comes; none for noise without a pure epsilon, for the paper's formulas, and where known noise is averaged exactly,
    /// which moments do better than the chord's distributions.
    pub(crate) fn losses(&self) -> Option<[Vec<(LossDistribution, u32)>; 2]> {
        let Law::Pure { family: Family::Exact, known_noise, .. } = self.law else { return None };
        // Beyond that the numbers of a profile are too large.
        if self.known_noise.is_some() || self.epsilon.is_nan() || self.epsilon > LARGEST_EPSILON {
            return None;
        }
        let step = self.epsilon / self.steps as f64;
        let places: Vec<f64> = Profile::places(step, self.steps).collect();
        let of_row = |row: &Row| {
            let exact = row.instance.as_ref().map(|instance| instance.profiles(&places));
            [(0, row.log_q), (1, row.log_q_back)].map(|(back, log_q)| {
                let excess = |at: f64| {
                    let of = if known_noise { known_noise_excess } else { outcome_excess };
                    of(self.within, log_q, at) * (1.0 + PROFILE_ROUNDING)
                };
                let profile = match &exact {
                    Some(exact) if self.rows.len() <= FEW_ROWS => {
                        Profile::of_values(step, exact[back].clone()).min(&Profile::new(step, self.steps, excess))
                    }
                    Some(exact) => Profile::of_values(step, exact[back].clone()),
                    None => Profile::new(step, self.steps, excess),
                };
                (profile.connect(), row.times as u32)
            })
        };
        let (there, back) = self.rows.par_iter().map(of_row).map(<(_, _)>::from).unzip();
        Some([there, back])
    }

    fn sum(&self, l: f64, exact: impl Fn(&Row) -> Option<(f64, f64)> + Sync + Send) -> Total {
        let (without, with_votes) = (self.law.without_votes(l), self.law.at(l));
        let (mut there, mut back, mut dependent) = (0.0, 0.0, 0);
        let few = self.rows.len() <= FEW_ROWS;
        let exact: Vec<Option<(f64, f64)>> = self.rows.par_iter().with_min_len(ROWS_OF_A_THREAD).map(exact).collect();
        for (row, exact) in self.rows.iter().zip(exact) {
            // A sum that overflows is no bound.
            let least = |log_q: f64, exact: Option<f64>| match exact.filter(|exact| exact.is_finite()) {
                // What is exact is hardly ever above, by its margins: not worth it for many rows.
                Some(exact) if few => exact.min(with_votes(log_q)).min(without),
                Some(exact) => exact.min(without),
                None => with_votes(log_q).min(without),
            };
            let moment = least(row.log_q, exact.map(|exact| exact.0));
            let moment_back = if self.directions == Directions::Both {
                least(row.log_q_back, exact.map(|exact| exact.1))
            } else {
                moment
            };
            there += row.times * moment;
            back += row.times * moment_back;
            if moment.max(moment_back) < without {
                dependent += row.times as usize;
            }
        }
        Total { alpha: larger(there, back), dependent }
    }
}
