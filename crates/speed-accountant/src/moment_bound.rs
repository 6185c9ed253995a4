//! The moment of one row of votes as a function of the probability of another outcome.

use std::cell::OnceCell;
use std::sync::Arc;

use speed_mechanism::Mechanism;

use crate::assumption::Bound;
use crate::moments::{Chord, Family, outcome_moment, paper_without_votes, pure_moment, theorem_3};
use crate::noise_case::{NoiseCase, OtherNoise};
use crate::renyi::{RenyiCurve, theorem_6, theorem_6_at};
use crate::three_answers::{Envelope, LargestMoment};

/// A bound of the moment of one query given `ln q`.
pub(crate) enum MomentBound {
    /// From the pure epsilon of one query.
    Pure { epsilon: f64, family: Family, known_noise: bool },
    /// From a Rényi curve; `with_votes` says whether Theorem 6 of PATE 2018 applies.
    Renyi { curve: RenyiCurve, variance: f64, with_votes: bool },
    /// The largest moment of three answers, whatever the votes are; `None` if it is not known. The caller charges the
    /// answers that it leaves out to delta.
    Largest(Option<Arc<LargestMoment>>),
    /// An estimate of the same, which only guides the search for an order.
    Estimated(Arc<LargestMoment>),
}

impl MomentBound {
    /// Creates the bound of one case; `epsilon` is for one query. For noise whose loss is bounded only except for a small
    /// probability, answers less likely than `removed` may be left out.
    pub(crate) fn new(case: &NoiseCase, epsilon: f64, bound: Bound, removed: f64) -> Self {
        if matches!(case.event.mechanism(), Mechanism::Binomial { .. }) {
            return Self::Largest(LargestMoment::of_event(&case.event, removed));
        }
        let family = if bound == Bound::Paper { Family::Paper } else { Family::Exact };
        let known_noise = case.others != OtherNoise::Missing;
        match RenyiCurve::new(&case.event) {
            None => Self::Pure { epsilon, family, known_noise },
            Some((curve, variance)) => Self::Renyi { curve, variance, with_votes: !known_noise },
        }
    }

    /// Returns a substitute for the search for an order if the data-independent moment takes long.
    pub(crate) fn estimated(&self) -> Option<Self> {
        match self {
            Self::Largest(Some(query)) if query.is_wide() => Some(Self::Estimated(Arc::clone(query))),
            _ => None,
        }
    }

    /// Returns whether the moments of rows depend on `q`.
    pub(crate) fn uses_q(&self) -> bool {
        matches!(self, Self::Pure { .. } | Self::Renyi { with_votes: true, .. })
    }

    /// Returns the data-independent moment of order `l`.
    pub(crate) fn without_votes(&self, l: f64) -> f64 {
        match self {
            Self::Pure { epsilon, family: Family::Paper, .. } => paper_without_votes(*epsilon, l),
            Self::Pure { epsilon, family: Family::Exact, .. } => pure_moment(*epsilon, l),
            Self::Renyi { curve, .. } => l * curve.rdp(l + 1.0),
            Self::Largest(query) => query.as_ref().map_or(f64::INFINITY, |query| query.excess(l).ln_1p()),
            Self::Estimated(query) => query.estimate_of(false, l).ln_1p(),
        }
    }

    /// Returns the moments of one order as a function of `ln q`.
    pub(crate) fn at(&self, l: f64) -> impl Fn(f64) -> f64 + '_ {
        let chord = match self {
            Self::Pure { epsilon, family, known_noise: true } => Some(Chord::new(*family, *epsilon, l)),
            _ => None,
        };
        // It takes long, does not depend on `q`, and is needed only for rows without exact distributions.
        let any = OnceCell::new();
        move |log_q| match (self, &chord) {
            (_, Some(chord)) => chord.moment(log_q),
            (Self::Pure { epsilon, family: Family::Paper, .. }, None) => theorem_3(*epsilon, log_q, l),
            (Self::Pure { epsilon, family: Family::Exact, .. }, None) => outcome_moment(*epsilon, log_q, l),
            (Self::Renyi { curve, variance, with_votes: true }, None) => {
                l * theorem_6(log_q, *variance, l + 1.0, |order| curve.rdp(order))
            }
            (Self::Renyi { .. } | Self::Largest(_) | Self::Estimated(_), None) => {
                *any.get_or_init(|| self.without_votes(l))
            }
        }
    }

    /// Returns a bound that does not decrease as `q` grows: for Rényi curves, Theorem 6 at orders that do not depend on
    /// `q`; or the envelope of three answers if it is smaller.
    pub(crate) fn growing_with_q(&self, log_q: f64, l: f64, second_orders: &[f64], envelope: Option<&Envelope>) -> f64 {
        let of_envelope = envelope.map_or(f64::INFINITY, |envelope| envelope.at(log_q).ln_1p());
        let of_bound = match self {
            Self::Renyi { curve, with_votes: true, .. } => {
                let at = |&second: &f64| l * theorem_6_at(log_q, second, l + 1.0, |order| curve.rdp(order));
                second_orders.iter().map(at).fold(f64::INFINITY, f64::min)
            }
            Self::Pure { .. } | Self::Renyi { .. } | Self::Largest(_) | Self::Estimated(_) => self.at(l)(log_q),
        };
        of_bound.min(of_envelope)
    }
}
