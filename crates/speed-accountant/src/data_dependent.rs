//! Costs of the rows of a run, given their votes, at one moment order.

mod check;
mod exact;
mod rows;

use rayon::prelude::*;

use crate::assumption::{Assumptions, NeighbouringRelation};
use crate::collusion::KnownNoise;
use crate::composition::{PrivacyLossDistribution, PrivacyProfile};
use crate::event::PrivacyEvent;
use crate::moment_bound::MomentBound;
use crate::moments::{Family, known_noise_excess, outcome_excess};
use crate::neighbour_losses::{MAX_EPSILON, NeighbourLosses, Unlikely};
use crate::noise_case::NoiseCase;
use crate::outcome::OutcomeBound;
use crate::sound::larger;
use crate::votes::CheckedCounts;
use check::CheckCase;
use exact::{ExactMethod, ExactRow};
use rows::{CostRow, DistinctRow, RowBound, worth_distributions};

/// Orders for which a search selects the neighbours that it follows.
const LEADING_ORDERS: [f64; 7] = [0.5, 3.0, 12.0, 30.0, 90.0, 400.0, 2_000.0];

/// The same for noise without a pure epsilon, of which every row is followed.
const LEADING_ORDERS_OF_ALL: [f64; 3] = [1.0, 8.0, 60.0];

/// Steps of the grid of privacy losses from 0 to the epsilon of one query. More steps are used if that epsilon is
/// large, and if two classes make them cheap.
const STEPS: usize = 32;
const STEPS_OF_LARGE: usize = 96;
const STEPS_OF_TWO_CLASSES: usize = 256;
/// An epsilon of one query above this value is large.
const LARGE: f64 = 0.7;
/// A thread takes at least this many rows: fewer rows are finished before another thread wakes up.
const ROWS_OF_A_THREAD: usize = 32;
/// If there are at most this many rows, every known bound is computed for each.
const FEW_ROWS: usize = 16;
/// Part of a query's share of delta that losses beyond the grid may have, for noise without a pure epsilon.
const BEYOND_GRID: f64 = 1e-4;
/// Relative error of a profile in closed form.
const PROFILE_ROUNDING: f64 = 1e-13;

/// A request for the costs of rows in one case of the other teachers' noise.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CostsRequest {
    pub(crate) case: NoiseCase,
    pub(crate) assumptions: Assumptions,
    /// True if `q` of close votes is integrated.
    pub(crate) integrals: bool,
    /// Pure epsilon of one query.
    pub(crate) epsilon: f64,
    /// Epsilon of one query, except with a probability that the caller charges to delta.
    pub(crate) within: f64,
    /// Delta of all queries.
    pub(crate) delta: f64,
    /// The treatment of answers that are too unlikely to matter.
    pub(crate) unlikely: Unlikely,
    /// The check before every query, if any, and the probability below which its outcomes are left out.
    pub(crate) check: Option<(PrivacyEvent, f64)>,
}

/// The sum of the moments of all rows as a function of the order.
pub(crate) struct DataDependentCosts {
    moments: MomentBound,
    rows: Vec<CostRow>,
    relation: NeighbouringRelation,
    epsilon: f64,
    within: f64,
    steps: usize,
    known_noise: Option<KnownNoise>,
    check: Option<CheckCase>,
    /// Delta of one query, for noise without a pure epsilon whose rows all have exact distributions.
    share: Option<f64>,
}

/// A sum of moments, and the number of rows that the votes made cheaper.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Total {
    pub(crate) alpha: f64,
    pub(crate) dependent: usize,
}

impl DataDependentCosts {
    /// Prepares the costs of rows of votes.
    pub(crate) fn new(request: &CostsRequest, votes: &CheckedCounts<'_>) -> Self {
        let CostsRequest { case, assumptions, integrals, epsilon, within, delta, unlikely, check } = *request;
        let check = check.map(|(event, removed)| CheckCase::new(&event, removed, &case, votes.teachers));
        let (bound, relation) = (assumptions.bound, assumptions.relation);
        let exact = ExactMethod::choose(&case, bound, unlikely, delta, votes);
        let moments = MomentBound::new(&case, within, bound, unlikely.left_out());
        let distinct = DistinctRow::list(votes, exact.resolves_ties());
        let bounds = if moments.uses_q() {
            let outcome = OutcomeBound::new(&case.with_all_noise_unknown(), bound, integrals, &votes.gaps);
            RowBound::all(&distinct, &outcome, relation)
        } else {
            distinct.iter().map(DistinctRow::without_bound).collect()
        };
        let worth =
            if exact.is_selective() { worth_distributions(&moments, &bounds, delta) } else { vec![true; bounds.len()] };
        let orders =
            if unlikely.left_out() > 0.0 { LEADING_ORDERS_OF_ALL.as_slice() } else { LEADING_ORDERS.as_slice() };
        let parts = distinct.par_iter().zip(bounds).zip(worth);
        let rows: Vec<CostRow> = parts
            .map(|((row, bound), worth)| {
                let ExactRow { neighbours, known } = exact.row(row, worth);
                let leaders = neighbours.as_ref().map(|neighbours| neighbours.leaders(orders));
                let check = check.as_ref().and_then(|check| check.row(&row.counts, row.has_empty_vote));
                CostRow { bound, neighbours, leaders, known, check }
            })
            .collect();
        let rows = if exact.is_selective() { CostRow::with_the_rest_merged(rows) } else { rows };
        let steps = steps(request, votes.classes);
        let all_exact = rows.iter().all(|row| row.neighbours.is_some());
        let share = (unlikely.left_out() > 0.0 && all_exact).then_some(delta / votes.queries() as f64);
        Self { moments, rows, relation, epsilon, within, steps, known_noise: exact.known_noise(), check, share }
    }

    /// Returns whether known noise is averaged exactly, which takes long for each order.
    pub(crate) fn is_exact_mixture(&self) -> bool {
        self.known_noise.is_some()
    }

    /// Computes the certified sum of moments of order `l`: over all neighbours, in the worse direction.
    pub(crate) fn total(&self, l: f64) -> Total {
        let averaged = self.known_noise.as_ref().map(|known| known.averaged(l));
        self.sum(&self.moments, l, |row| {
            let known =
                row.known.as_ref().zip(averaged.as_ref()).map(|(row, averaged)| row.excess(averaged, self.epsilon));
            let known = known.map(|(there, back)| (there.ln_1p(), back.ln_1p()));
            known.or_else(|| row.neighbours.as_ref().map(|neighbours| neighbours.moments(l)))
        })
    }

    /// Computes a cheaper estimate of [`Self::total`], which omits expensive parts that are unlikely to matter. It
    /// serves the search for a good order.
    pub(crate) fn estimate(&self, l: f64) -> f64 {
        let estimated = self.moments.estimated();
        let moments = estimated.as_ref().unwrap_or(&self.moments);
        self.sum(moments, l, |row| row.leaders.as_ref().map(|leaders| leaders.moments(l))).alpha
    }

    /// Computes privacy loss distributions of all rows, from the votes and back, each with the number of its rows. They
    /// dominate the distribution of every neighbour. Returns `None` for noise without a pure epsilon, for the paper's
    /// formulas, if known noise is averaged exactly, because moments then give a better bound than the distributions of
    /// the chord, and if a check comes before each query.
    pub(crate) fn losses(&self) -> Option<[Vec<(PrivacyLossDistribution, u32)>; 2]> {
        if self.check.is_some() {
            return None;
        }
        if let Some(share) = self.share {
            return self.losses_of_exact_rows(share);
        }
        let MomentBound::Pure { family: Family::Exact, known_noise, .. } = self.moments else { return None };
        // Above this epsilon the numbers of a profile are too large.
        if self.known_noise.is_some() || self.epsilon.is_nan() || self.epsilon > MAX_EPSILON {
            return None;
        }
        let step = self.epsilon / self.steps as f64;
        let places: Vec<f64> = PrivacyProfile::places(step, self.steps).collect();
        let of_row = |row: &CostRow| {
            let exact = row.neighbours.as_ref().map(|neighbours| neighbours.profiles(&places));
            [(0, row.bound.log_q), (1, row.bound.log_q_back)].map(|(back, log_q)| {
                let excess = |at: f64| {
                    let of = if known_noise { known_noise_excess } else { outcome_excess };
                    of(self.within, log_q, at) * (1.0 + PROFILE_ROUNDING)
                };
                let profile = match &exact {
                    Some(exact) if self.rows.len() <= FEW_ROWS => PrivacyProfile::of_values(step, exact[back].clone())
                        .min(&PrivacyProfile::new(step, self.steps, excess)),
                    Some(exact) => PrivacyProfile::of_values(step, exact[back].clone()),
                    None => PrivacyProfile::new(step, self.steps, excess),
                };
                (profile.connect(), row.bound.times as u32)
            })
        };
        let (there, back) = self.rows.par_iter().map(of_row).map(<(_, _)>::from).unzip();
        Some([there, back])
    }

    /// Computes the same for noise without a pure epsilon. Losses beyond the grid, which are rarer than a part of one
    /// query's share of delta, count as infinite.
    fn losses_of_exact_rows(&self, share: f64) -> Option<[Vec<(PrivacyLossDistribution, u32)>; 2]> {
        let exact = || self.rows.iter().filter_map(|row| row.neighbours.as_ref().map(|exact| (exact, row.bound.times)));
        let largest = exact().map(|(exact, _)| exact.largest_loss(BEYOND_GRID * share)).fold(0.0, larger);
        if !(largest > 0.0 && largest <= MAX_EPSILON) {
            return None;
        }
        let step = largest / self.steps as f64;
        let places: Vec<f64> = PrivacyProfile::places(step, self.steps).collect();
        let rows: Vec<(&NeighbourLosses, f64)> = exact().collect();
        let of_row = |&(exact, times): &(&NeighbourLosses, f64)| {
            exact.profiles(&places).map(|values| (PrivacyProfile::of_values(step, values).connect(), times as u32))
        };
        let (there, back) = rows.par_iter().map(of_row).map(<(_, _)>::from).unzip();
        Some([there, back])
    }

    fn sum(
        &self,
        moments: &MomentBound,
        l: f64,
        exact: impl Fn(&CostRow) -> Option<(f64, f64)> + Sync + Send,
    ) -> Total {
        // The data-independent moment takes long for some noise, and an exact one is never larger but for its margins.
        let without = if self.share.is_some() { f64::INFINITY } else { moments.without_votes(l) };
        let with_votes = moments.at(l);
        let check_without_votes = self.check.as_ref().and_then(|check| check.without_votes(l)).unwrap_or(0.0);
        let both_ways = self.relation == NeighbouringRelation::BothWays;
        let (mut there, mut back, mut dependent) = (0.0, 0.0, 0);
        // For wide noise the bound takes longer than the exact value.
        let few = self.rows.len() <= FEW_ROWS && self.moments.estimated().is_none();
        let exact: Vec<Option<(f64, f64)>> = self.rows.par_iter().with_min_len(ROWS_OF_A_THREAD).map(exact).collect();
        for (row, exact) in self.rows.iter().zip(exact) {
            // A sum that overflows is not a bound.
            let least = |log_q: f64, exact: Option<f64>| match exact.filter(|exact| exact.is_finite()) {
                // The exact value is hardly ever above the bound, and then only by its margins: the comparison is not
                // worth it for many rows.
                Some(exact) if few => exact.min(with_votes(log_q)).min(without),
                Some(exact) => exact.min(without),
                None => with_votes(log_q).min(without),
            };
            let moment = least(row.bound.log_q, exact.map(|exact| exact.0));
            let moment_back = if both_ways { least(row.bound.log_q_back, exact.map(|exact| exact.1)) } else { moment };
            let (with_check, with_check_back) = match (&row.check, check_without_votes) {
                (Some(check), _) => check.with_answer(l, (moment, moment_back)),
                (None, check) => (check + moment, check + moment_back),
            };
            there += row.bound.times * with_check;
            back += row.bound.times * if both_ways { with_check_back } else { with_check };
            if moment.max(moment_back) < without {
                dependent += row.bound.times as usize;
            }
        }
        Total { alpha: larger(there, back), dependent }
    }
}

/// Returns the number of steps of the grid of losses.
fn steps(request: &CostsRequest, classes: usize) -> usize {
    match classes {
        _ if request.case.event.is_one_difference(classes) => STEPS_OF_TWO_CLASSES,
        _ if request.epsilon > LARGE || request.unlikely.left_out() > 0.0 => STEPS_OF_LARGE,
        // Losses beyond `within` are rare.
        _ => (STEPS as f64 * (request.epsilon / request.within).clamp(1.0, 4.0)).ceil() as usize,
    }
}
