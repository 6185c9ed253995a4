//! The least epsilon of queries at a delta: the minimum over moment orders, closed forms and privacy loss
//! distributions.

use std::cell::Cell;

use speed_mechanism::Mechanism;

use crate::assumption::{Bound, NeighbouringRelation};
use crate::composition::{
    Composition, best_tilt, gaussian_epsilon, improved_epsilon, optimal_epsilon, skellam_epsilon, tail_bound_epsilon,
    wide_skellam_epsilon,
};
use crate::data_dependent::{DataDependentCosts, Total};
use crate::epsilon_bound::{CompositionMethod, EpsilonBound, ROUNDING};
use crate::error::AccountError;
use crate::event::PrivacyEvent;
use crate::lattice_noise::LatticeNoise;
use crate::moments::paper_without_votes;
use crate::orders::{Best, MAX_REAL_ORDER, best_real, best_whole};
use crate::per_query::tight_per_query_epsilon;
use crate::query_group::QueryGroup;
use crate::renyi::{SkellamCurve, gaussian_rdp};
use crate::sound::larger;
use crate::three_answers::{LargestMoment, WIDEST_FOR_A_PARTY};

/// The largest moment order of the paper: "it captures the best moments accountant in every case" (Algorithm 1).
pub(crate) const MAX_PAPER_ORDER: u32 = 25;

/// If an estimate is too small by this factor, it has overlooked a neighbour.
const OVERLOOKED: f64 = 1.01;
/// The negligible part of a query's share of delta that pays for answers which a bound leaves out.
pub(crate) const LEFT_OUT: f64 = 1e-9;
/// Larger parts, which serve noise of few coins.
const MORE_LEFT_OUT: [f64; 3] = [1e-3, 0.03, 0.2];
/// The largest deviation of Skellam noise for which the largest moment is computed: beyond it, two counts are compared.
const WIDEST_SKELLAM: f64 = 100.0;
/// The least epsilon of orders an octave apart is at most this much larger than that of all orders.
const OCTAVES: f64 = 1.25;
/// The number of deltas that group privacy tries.
const CHAINS: usize = 12;
/// For at most this many privacy loss distributions, the best tilt is searched.
const FEW_PARTS: usize = 8;

/// A search for the least epsilon with the formulas of a claim.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeastEpsilon {
    pub(crate) bound: Bound,
    pub(crate) relation: NeighbouringRelation,
    pub(crate) max_order: Option<f64>,
    pub(crate) delta: f64,
}

impl LeastEpsilon {
    /// Finds the least epsilon of these costs; `order` is the best order of similar costs, used if a search would take
    /// long.
    pub(crate) fn at_votes(
        &self,
        costs: &DataDependentCosts,
        order: Option<f64>,
    ) -> Result<EpsilonBound, AccountError> {
        let total = Cell::new(Total::default());
        let alpha = |l: f64| {
            total.set(costs.total(l));
            total.get().alpha
        };
        let best = match order.filter(|_| costs.is_exact_mixture()) {
            Some(order) => {
                let epsilon = improved_epsilon(alpha(order), order, self.delta) * (1.0 + ROUNDING);
                Best { order, epsilon, at_edge: false }
            }
            None => self.of_moments(|l| costs.estimate(l), alpha)?,
        };
        let dependent =
            if self.bound == Bound::Paper { costs.total(best.order).dependent } else { total.get().dependent };
        let moments = EpsilonBound { best, method: CompositionMethod::Moments, data_dependent_queries: dependent };
        if self.bound != Bound::Tight {
            return Ok(moments);
        }
        Ok(moments.or_convolved(self.convolved(costs, best.order)))
    }

    /// Convolves the complete distributions of the loss, which contain more information than their moments; the best
    /// order is the best tilt.
    fn convolved(&self, costs: &DataDependentCosts, order: f64) -> Option<f64> {
        let [there, back] = costs.losses()?;
        let epsilon = |losses: &[_]| {
            // If there are few parts, their best tilt may be far from the best order of the moments.
            let tilt = if losses.len() <= FEW_PARTS { best_tilt(losses, self.delta) } else { order };
            Some(Composition::new(losses, tilt)?.epsilon(self.delta))
        };
        let there = epsilon(&there)?;
        let back = if self.relation == NeighbouringRelation::BothWays { epsilon(&back)? } else { there };
        Some(there.max(back) * (1.0 + ROUNDING))
    }

    /// Finds the best order of some moments; `estimate` may be cheaper than `total` and only guides the search.
    pub(crate) fn of_moments(
        &self,
        estimate: impl Fn(f64) -> f64,
        total: impl Fn(f64) -> f64,
    ) -> Result<Best, AccountError> {
        let delta = self.delta;
        if self.bound == Bound::Paper {
            let max = self.max_order.unwrap_or(f64::from(MAX_PAPER_ORDER));
            return best_whole(max.max(0.0) as u32, |l| tail_bound_epsilon(total(l), l, delta))
                .ok_or_else(AccountError::no_orders);
        }
        let max = self.max_order.unwrap_or(MAX_REAL_ORDER);
        let best = best_real(max, |l| improved_epsilon(estimate(l), l, delta)).ok_or_else(AccountError::no_orders)?;
        let of_total = |l: f64| improved_epsilon(total(l), l, delta);
        let mut found = Best { epsilon: of_total(best.order), ..best };
        // Close to a cliff the estimate may have led too far: step back until both values agree.
        let mut order = best.order;
        while found.epsilon > best.epsilon * OVERLOOKED && order > 0.01 * best.order {
            order *= 0.8;
            let epsilon = of_total(order);
            if epsilon < found.epsilon {
                found = Best { order, epsilon, at_edge: false };
            }
        }
        Ok(Best { epsilon: found.epsilon * (1.0 + ROUNDING), ..found })
    }

    /// Finds the data-independent least epsilon of `queries` queries between `classes` classes; `epsilon` is the pure
    /// epsilon of one query.
    pub(crate) fn whatever_the_votes(
        &self,
        event: &PrivacyEvent,
        epsilon: f64,
        classes: usize,
        queries: usize,
    ) -> Result<EpsilonBound, AccountError> {
        if event.is_of_party() {
            return self.of_party(event, classes, queries);
        }
        match event.mechanism() {
            Mechanism::Binomial { .. } => self.of_largest_moment(event, classes, queries),
            Mechanism::Gaussian { .. } | Mechanism::Skellam { .. } => {
                let two_counts = self.of_renyi(event, queries)?;
                let too_wide = !event.is_check()
                    && matches!(event.mechanism(), Mechanism::Skellam { sigma } if sigma.get() > WIDEST_SKELLAM);
                if self.bound != Bound::Tight || too_wide {
                    return Ok(two_counts);
                }
                let three_answers = self.of_largest_moment(event, classes, queries)?;
                Ok(if three_answers.best.epsilon < two_counts.best.epsilon { three_answers } else { two_counts })
            }
            Mechanism::Laplace { .. } | Mechanism::DiscreteLaplace { .. } => self.of_pure(event, epsilon, queries),
        }
    }

    /// Says whether a data-independent epsilon of binomial noise is clearly larger than `epsilon`. It only saves time: a
    /// wrong answer makes no claim unsound.
    pub(crate) fn is_below_any_votes(
        &self,
        event: &PrivacyEvent,
        epsilon: f64,
        classes: usize,
        queries: usize,
    ) -> bool {
        let k = queries as f64;
        let delta = self.delta / k;
        // Other noise has a second bound.
        if event.is_one_difference(classes) || !matches!(event.mechanism(), Mechanism::Binomial { .. }) {
            return false;
        }
        let octaves = (-4..=12).map(|octave| 2f64.powi(octave));
        LargestMoment::of_event(event, left_out(LEFT_OUT, delta)).is_some_and(|query| {
            let least = octaves.map(|l| improved_epsilon(k * query.at_least(l).ln_1p(), l, self.delta));
            // Between two octaves it is hardly smaller than at the better one.
            !query.ends_early() && least.fold(f64::INFINITY, f64::min) > OCTAVES * epsilon
        })
    }

    fn of_pure(&self, event: &PrivacyEvent, epsilon: f64, queries: usize) -> Result<EpsilonBound, AccountError> {
        Ok(match self.bound {
            Bound::Paper => {
                let total = |l| queries as f64 * paper_without_votes(epsilon, l);
                EpsilonBound::of_moments(self.of_moments(total, total)?)
            }
            Bound::Outcome => EpsilonBound::optimal(optimal_epsilon(epsilon, queries, self.delta)),
            Bound::Tight => {
                let (epsilon, method, order) = QueryGroup { event: *event, epsilon, one_difference: false, queries }
                    .least_epsilon_of_pure(self.delta);
                let best = Best { order, epsilon: epsilon * (1.0 + ROUNDING), at_edge: false };
                EpsilonBound { best, method, data_dependent_queries: 0 }
            }
        })
    }

    /// Finds the data-independent least epsilon for neighbours that differ in several teachers: the least of moments, which
    /// are largest for a move of all votes from one class to another, of the optimal composition of a pure epsilon, and of the
    /// composition of two counts with Gaussian or Skellam noise.
    fn of_party(&self, event: &PrivacyEvent, classes: usize, queries: usize) -> Result<EpsilonBound, AccountError> {
        let group = QueryGroup::new(*event, classes, queries);
        let (k, votes) = (queries as f64, f64::from(event.party_teachers()));
        let closed = match event.mechanism() {
            Mechanism::Laplace { .. } | Mechanism::DiscreteLaplace { .. } => {
                optimal_epsilon(group.epsilon, queries, self.delta) * (1.0 + ROUNDING)
            }
            Mechanism::Gaussian { sigma } => {
                let mu = votes * (2.0 * k * event.part_of_two_counts()).sqrt() / event.tau().get().sqrt() / sigma.get();
                gaussian_epsilon(mu, self.delta)
            }
            Mechanism::Skellam { .. } | Mechanism::Binomial { .. } => f64::INFINITY,
        };
        let mut least = EpsilonBound::optimal(closed);
        for part in std::iter::once(LEFT_OUT).chain(MORE_LEFT_OUT) {
            let removed = left_out(part, self.delta / k);
            let at_delta = Self { delta: (self.delta - 2.0 * k * removed * (1.0 + 1e-12)).next_down(), ..*self };
            let (estimates, moments) = (group.estimates(removed), group.moments(removed));
            let best = at_delta.of_moments(|l| k * estimates(l), |l| k * moments(l))?;
            if larger(best.epsilon, 0.0) < least.best.epsilon {
                least = EpsilonBound::of_moments(best);
            }
            if !group.ends_early(removed) {
                break;
            }
        }
        if let Mechanism::Skellam { sigma } = event.mechanism() {
            // Two checks, of one count each, cost as much as one query.
            let queries = if event.is_check() { queries.div_ceil(2) } else { queries };
            let (votes, order) = (event.party_teachers(), least.best.order);
            let convolved = skellam_epsilon(sigma, event.tau(), votes, queries, self.delta, order);
            least = least.or_convolved(convolved.map(|epsilon| epsilon * (1.0 + ROUNDING)));
        }
        let group = self.of_group_privacy(event, classes, queries, least.best.epsilon)?;
        Ok(if group < least.best.epsilon { EpsilonBound::optimal(group) } else { least })
    }

    /// Returns an epsilon by group privacy: a party's move is a chain of moves of one vote, so if one teacher has
    /// (epsilon, `at`), a party of M has (M epsilon, `at` times the sum of `e^(i epsilon)` for i below M). Returns infinity if
    /// none below `least` is found, or if each account for one teacher takes long.
    fn of_group_privacy(
        &self,
        event: &PrivacyEvent,
        classes: usize,
        queries: usize,
        least: f64,
    ) -> Result<f64, AccountError> {
        let one = event.of_one_teacher();
        let is_wide = |noise: LatticeNoise| noise.deviation() > WIDEST_FOR_A_PARTY;
        if event.mechanism().gamma().is_none() && LatticeNoise::new(&one).is_some_and(is_wide) {
            return Ok(f64::INFINITY);
        }
        let (pure, teachers) = (tight_per_query_epsilon(&one, classes), f64::from(event.party_teachers()));
        let mut at = self.delta / teachers;
        for _ in 0..CHAINS {
            let single = Self { delta: at, ..*self }.whatever_the_votes(&one, pure, classes, queries)?.best.epsilon;
            if larger(teachers * single, 0.0) >= least {
                break;
            }
            // The sum of the geometric series, rounded up.
            let chain = ((teachers * single).exp_m1() / single.exp_m1()).max(teachers) * (1.0 + 1e-9);
            if at * chain <= self.delta {
                return Ok(teachers * single);
            }
            at = self.delta / chain * 0.999;
        }
        Ok(f64::INFINITY)
    }

    /// Adds up the largest moments of the three answers. The answers that they leave out are charged to delta.
    fn of_largest_moment(
        &self,
        event: &PrivacyEvent,
        classes: usize,
        queries: usize,
    ) -> Result<EpsilonBound, AccountError> {
        let (k, two_classes) = (queries as f64, event.is_one_difference(classes));
        let mut least = EpsilonBound::of_moments(Best { order: 0.0, epsilon: f64::INFINITY, at_edge: false });
        for part in std::iter::once(LEFT_OUT).chain(MORE_LEFT_OUT) {
            let Some(query) = LargestMoment::of_event(event, left_out(part, self.delta / k)) else { continue };
            let delta = (self.delta - k * query.charge() * (1.0 + 1e-12)).next_down();
            let excess = |l: f64| query.excess_of(two_classes, l);
            let estimate = |l: f64| query.estimate_of(two_classes, l);
            let at_delta = Self { delta, ..*self };
            let best = at_delta.of_moments(|l| k * estimate(l).ln_1p(), |l| k * excess(l).ln_1p())?;
            if larger(best.epsilon, 0.0) < least.best.epsilon {
                least = EpsilonBound::of_moments(best);
            }
            if !query.ends_early() {
                break;
            }
        }
        Ok(least)
    }

    /// Compares two noisy counts for each query, or one for each check; two checks cost as much as one query.
    fn of_renyi(&self, event: &PrivacyEvent, queries: usize) -> Result<EpsilonBound, AccountError> {
        let (k, tau) = (queries as f64 * event.part_of_two_counts(), event.tau());
        let queries = if event.is_check() { queries.div_ceil(2) } else { queries };
        match event.mechanism() {
            Mechanism::Gaussian { sigma } if self.bound != Bound::Paper => {
                // Each square root is taken separately, so that the quotient is finite for every ratio.
                let mu = (2.0 * k).sqrt() / tau.get().sqrt() / sigma.get();
                Ok(EpsilonBound::optimal(gaussian_epsilon(mu, self.delta)))
            }
            Mechanism::Gaussian { sigma } => {
                let total = |l: f64| k * l * gaussian_rdp(sigma, tau, l + 1.0);
                Ok(EpsilonBound::of_moments(self.of_moments(total, total)?))
            }
            Mechanism::Skellam { sigma } => {
                let curve = SkellamCurve::new(sigma, tau);
                let total = |l: f64| k * l * curve.rdp(l + 1.0);
                let best = self.of_moments(total, total)?;
                if self.bound != Bound::Tight {
                    return Ok(EpsilonBound::of_moments(best));
                }
                if let Some((epsilon, order)) = wide_skellam_epsilon(sigma, tau, queries, self.delta) {
                    let mut bound = EpsilonBound::of_moments(best).or_convolved(Some(epsilon * (1.0 + ROUNDING)));
                    if bound.method == CompositionMethod::LossDistributions {
                        bound.best.order = order;
                    }
                    return Ok(bound);
                }
                let convolved = skellam_epsilon(sigma, tau, 1, queries, self.delta, best.order);
                Ok(EpsilonBound::of_moments(best).or_convolved(convolved.map(|epsilon| epsilon * (1.0 + ROUNDING))))
            }
            Mechanism::Laplace { .. } | Mechanism::DiscreteLaplace { .. } | Mechanism::Binomial { .. } => {
                Err(AccountError::no_orders())
            }
        }
    }
}

/// Returns a part of a query's share of delta. A small part is rounded down to a power of a million, so that tables serve
/// many accounts.
pub(crate) fn left_out(part: f64, share: f64) -> f64 {
    let most = part * share;
    if part < 1e-6 { 10f64.powf(6.0 * (most.log10() / 6.0).floor()) * (1.0 - 1e-12) } else { most }
}
