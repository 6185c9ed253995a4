//! The least epsilon of some queries at a delta: over moment orders, and against closed forms and whole distributions.

use std::cell::Cell;

use super::Accountant;
use crate::account::Method;
use crate::composition::{
    Composition, best_tilt, gaussian_epsilon, improved_epsilon, optimal_epsilon, skellam_epsilon, tail_bound_epsilon,
};
use crate::costs::{Costs, Total};
use crate::moments::paper_without_votes;
use crate::orders::{Best, LARGEST_REAL, best_real, best_whole};
use crate::renyi::{SkellamCurve, gaussian_rdp};
use crate::without_votes::least_epsilon_without_votes;
use crate::{AccountError, Bound, Directions, Noise};

/// The largest moment order of the paper: "it captures the best moments accountant in every case" (Algorithm 1).
pub const LARGEST_ORDER: u32 = 25;

/// What rounding may have cost an epsilon of the tight bounds, relative to it.
pub(super) const ROUNDING: f64 = 1e-9;

/// An estimate that much too small has overlooked a neighbour.
const OVERLOOKED: f64 = 1.01;
/// So few distributions of losses have their own best tilt looked for.
const FEW_PARTS: usize = 8;

/// An epsilon and how it came about.
pub(super) struct Outcome {
    pub(super) best: Best,
    pub(super) by: Method,
    pub(super) dependent: usize,
}

impl Accountant {
    /// The least epsilon of these costs; `order` is that of costs alike, where it takes long to look for the best.
    pub(super) fn with_votes(&self, costs: &Costs, order: Option<f64>, delta: f64) -> Result<Outcome, AccountError> {
        let total = Cell::new(Total { alpha: 0.0, dependent: 0 });
        let alpha = |l: f64| {
            total.set(costs.total(l));
            total.get().alpha
        };
        let best = match order.filter(|_| costs.is_exact_mixture()) {
            Some(order) => {
                let epsilon = improved_epsilon(alpha(order), order, delta) * (1.0 + ROUNDING);
                Best { order, epsilon, at_edge: false }
            }
            None => self.of_moments(delta, |l| costs.estimate(l), alpha)?,
        };
        let dependent =
            if self.bound == Bound::Paper { costs.total(best.order).dependent } else { total.get().dependent };
        let moments = Outcome { best, by: Method::Moments, dependent };
        if self.bound != Bound::Tight {
            return Ok(moments);
        }
        // Whole distributions of the loss say more than their moments; the best order is the best tilt.
        let composed = costs.losses().and_then(|[there, back]| {
            let epsilon = |losses: &[_]| {
                // Few parts may be far from what the moments' order suits.
                let tilt = if losses.len() <= FEW_PARTS { best_tilt(losses, delta) } else { best.order };
                Some(Composition::new(losses, tilt)?.epsilon(delta))
            };
            let there = epsilon(&there)?;
            let back = if self.directions == Directions::Both { epsilon(&back)? } else { there };
            Some(there.max(back) * (1.0 + ROUNDING))
        });
        Ok(match composed {
            Some(epsilon) if epsilon < best.epsilon => {
                Outcome { best: Best { epsilon, at_edge: false, ..best }, by: Method::LossDistributions, dependent }
            }
            _ => moments,
        })
    }

    /// The best order of some moments; `estimate` may be cheaper than `total` and is only followed.
    fn of_moments(
        &self,
        delta: f64,
        estimate: impl Fn(f64) -> f64,
        total: impl Fn(f64) -> f64,
    ) -> Result<Best, AccountError> {
        if self.bound == Bound::Paper {
            let largest = self.largest_order.unwrap_or(f64::from(LARGEST_ORDER));
            return best_whole(largest.max(0.0) as u32, |l| tail_bound_epsilon(total(l), l, delta))
                .ok_or(AccountError::NoOrders);
        }
        let largest = self.largest_order.unwrap_or(LARGEST_REAL);
        let best = best_real(largest, |l| improved_epsilon(estimate(l), l, delta)).ok_or(AccountError::NoOrders)?;
        let of_total = |l: f64| improved_epsilon(total(l), l, delta);
        let mut found = Best { epsilon: of_total(best.order), ..best };
        // Close to a cliff the estimate may have been followed too far: back from it, until both say the same.
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

    pub(super) fn without_votes(&self, queries: usize, epsilon: f64, delta: f64) -> Result<Outcome, AccountError> {
        let k = queries as f64;
        if self.event.noise().gamma().is_none() {
            return self.renyi_without_votes(queries, delta);
        }
        if self.bound == Bound::Paper {
            let total = |l| k * paper_without_votes(epsilon, l);
            let best = self.of_moments(delta, total, total)?;
            return Ok(Outcome { best, by: Method::Moments, dependent: 0 });
        }
        if self.bound == Bound::Outcome {
            let epsilon = optimal_epsilon(epsilon, queries, delta) * (1.0 + ROUNDING);
            let best = Best { order: 0.0, epsilon, at_edge: false };
            return Ok(Outcome { best, by: Method::Optimal, dependent: 0 });
        }
        let (epsilon, by, order) = least_epsilon_without_votes(&self.event, epsilon, queries, delta);
        let epsilon = epsilon * (1.0 + ROUNDING);
        Ok(Outcome { best: Best { order, epsilon, at_edge: false }, by, dependent: 0 })
    }

    pub(super) fn renyi_without_votes(&self, queries: usize, delta: f64) -> Result<Outcome, AccountError> {
        let (k, tau) = (queries as f64, self.event.tau());
        match self.event.noise() {
            Noise::Gaussian { sigma } if self.bound != Bound::Paper => {
                // One root each: their quotient is finite for every ratio.
                let mu = (2.0 * k).sqrt() / tau.get().sqrt() / sigma.get();
                let epsilon = gaussian_epsilon(mu, delta) * (1.0 + ROUNDING);
                Ok(Outcome { best: Best { order: 0.0, epsilon, at_edge: false }, by: Method::Optimal, dependent: 0 })
            }
            Noise::Gaussian { sigma } => {
                let total = |l: f64| k * l * gaussian_rdp(sigma, tau, l + 1.0);
                Ok(Outcome { best: self.of_moments(delta, total, total)?, by: Method::Moments, dependent: 0 })
            }
            Noise::Skellam { sigma } => {
                let curve = SkellamCurve::new(sigma, tau);
                let total = |l: f64| k * l * curve.rdp(l + 1.0);
                let best = self.of_moments(delta, total, total)?;
                let composed = (self.bound == Bound::Tight)
                    .then(|| skellam_epsilon(sigma, tau, queries, delta, best.order))
                    .flatten()
                    .map(|epsilon| epsilon * (1.0 + ROUNDING));
                Ok(match composed {
                    Some(epsilon) if epsilon < best.epsilon => Outcome {
                        best: Best { epsilon, at_edge: false, ..best },
                        by: Method::LossDistributions,
                        dependent: 0,
                    },
                    _ => Outcome { best, by: Method::Moments, dependent: 0 },
                })
            }
            Noise::Laplace { .. } | Noise::DiscreteLaplace { .. } => Err(AccountError::NoOrders),
        }
    }
}
