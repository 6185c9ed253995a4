//! What the rows of a run cost at one order of moments.

use std::collections::HashMap;

use crate::collusion::{KnownNoise, KnownRow};
use crate::composition::{LossDistribution, Profile};
use crate::instance::{ExactNoise, Instance};
use crate::moments::{
    Chord, Family, known_noise_excess, outcome_excess, outcome_moment, paper_without_votes, pure_moment, theorem_3,
};
use crate::outcome::{Gaps, OutcomeBound};
use crate::renyi::{SkellamCurve, gaussian_rdp, theorem_6, theorem_6_at};
use crate::{Assume, Bound, Directions, Noise, PrivacyEvent};

/// Rows whose outcome is less likely than this to change are not worth their exact distributions.
const WORTH_DISTRIBUTIONS: f64 = -11.0;
/// Neighbours grow with the square of the classes: beyond this the bounds from `q` have to do.
const MOST_CLASSES: usize = 40;
/// Orders at which the neighbours that a search follows are chosen.
const LEADING_ORDERS: [f64; 5] = [0.5, 3.0, 12.0, 30.0, 90.0];

/// Steps of the grid of privacy losses from 0 to the epsilon of one query.
const STEPS: usize = 32;
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
    known_noise: Option<KnownNoise>,
}

/// A sum of moments, and how many rows the votes made cheaper.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Total {
    pub(crate) alpha: f64,
    pub(crate) dependent: usize,
}

impl Law {
    pub(crate) fn new(event: &PrivacyEvent, epsilon: f64, assume: Assume, bound: Bound) -> Self {
        let family = if bound == Bound::Paper { Family::Paper } else { Family::Exact };
        let known_noise = assume == Assume::Collusion;
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

    /// A bound that does not fall with `q`: for Rényi curves Theorem 6 at orders that do not depend on `q`.
    pub(crate) fn growing_with_q(&self, log_q: f64, l: f64, second_orders: &[f64]) -> f64 {
        match self {
            Self::Renyi { curve, with_votes: true, .. } => {
                let at = |&second: &f64| l * theorem_6_at(log_q, second, l + 1.0, |order| curve.rdp(order));
                second_orders.iter().map(at).fold(f64::INFINITY, f64::min)
            }
            Self::Pure { .. } | Self::Renyi { .. } => self.at(l)(log_q),
        }
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

impl Costs {
    /// Prepares rows of votes; `epsilon` is that of one query.
    pub(crate) fn new(
        event: &PrivacyEvent,
        epsilon: f64,
        assume: Assume,
        directions: Directions,
        bound: Bound,
        integrals: bool,
        rows: &[(Gaps, &[u32])],
    ) -> Self {
        // Nobody is left to collude where everybody's noise is secret.
        let assume = if event.tau().get() == 1.0 { Assume::Dropout } else { assume };
        // With known noise what counts is q with all of the noise unknown.
        let judged = if assume == Assume::Collusion { event.with_all_noise() } else { *event };
        let all: Vec<Gaps> = rows.iter().map(|(gaps, _)| gaps.clone()).collect();
        let mut outcome = OutcomeBound::new(&judged, bound, integrals, &all);
        let few_classes = rows.iter().all(|(gaps, _)| gaps.classes() <= MOST_CLASSES);
        let exact = if bound == Bound::Tight && assume != Assume::Collusion && few_classes {
            ExactNoise::new(event, epsilon)
        } else {
            None
        };
        let known_noise = if bound == Bound::Tight && assume == Assume::Collusion && few_classes {
            KnownNoise::new(event, epsilon)
        } else {
            None
        };
        let law = Law::new(event, epsilon, assume, bound);
        // The order of the classes matters only where ties are resolved.
        let mut distinct: HashMap<Vec<u32>, (usize, &Gaps)> = HashMap::new();
        let mut order: Vec<Vec<u32>> = Vec::new();
        for (gaps, counts) in rows {
            let mut key = counts.to_vec();
            if exact.is_none() && known_noise.is_none() {
                key.sort_unstable();
            }
            let entry = distinct.entry(key.clone()).or_insert((0, gaps));
            if entry.0 == 0 {
                order.push(key);
            }
            entry.0 += 1;
        }
        let rows = order
            .iter()
            .filter_map(|key| distinct.get(key).map(|&(times, gaps)| (key, times, gaps)))
            .map(|(counts, times, gaps)| {
                let log_q = outcome.log_q(gaps);
                let log_q_back =
                    if directions == Directions::Both { outcome.log_q_of_neighbours(gaps).max(log_q) } else { log_q };
                let worth = log_q_back > WORTH_DISTRIBUTIONS;
                let instance = exact.as_ref().filter(|_| worth).map(|exact| exact.instance(counts));
                let leaders = instance.as_ref().map(|instance| instance.leaders(&LEADING_ORDERS));
                let known = known_noise.as_ref().filter(|_| worth).map(|known| known.row(counts));
                Row { times: times as f64, log_q, log_q_back, instance, leaders, known }
            })
            .collect();
        Self { law, rows, directions, epsilon, known_noise }
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
        if self.known_noise.is_some() {
            return None;
        }
        let step = self.epsilon / STEPS as f64;
        let places: Vec<f64> = Profile::places(step, STEPS).collect();
        let mut all = [Vec::new(), Vec::new()];
        for row in &self.rows {
            let exact = row.instance.as_ref().map(|instance| instance.profiles(&places));
            for (back, (losses, log_q)) in all.iter_mut().zip([row.log_q, row.log_q_back]).enumerate() {
                let excess = |at: f64| {
                    let of = if known_noise { known_noise_excess } else { outcome_excess };
                    of(self.epsilon, log_q, at) * (1.0 + PROFILE_ROUNDING)
                };
                let mut profile = Profile::new(step, STEPS, excess);
                if let Some(exact) = &exact {
                    profile = profile.min(&Profile::of_values(step, exact[back].clone()));
                }
                losses.push((profile.connect(), row.times as u32));
            }
        }
        Some(all)
    }

    fn sum(&self, l: f64, exact: impl Fn(&Row) -> Option<(f64, f64)>) -> Total {
        let (without, with_votes) = (self.law.without_votes(l), self.law.at(l));
        let (mut there, mut back, mut dependent) = (0.0, 0.0, 0);
        for row in &self.rows {
            let exact = exact(row);
            let least = |log_q: f64, exact: Option<f64>| {
                let moment = with_votes(log_q).min(without);
                // A sum that overflows is no bound.
                exact.filter(|exact| exact.is_finite()).map_or(moment, |exact| moment.min(exact))
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
        Total { alpha: f64::max(there, back), dependent }
    }
}
