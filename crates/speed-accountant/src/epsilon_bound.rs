//! An epsilon with its origin.

use serde::{Deserialize, Serialize};

use crate::orders::Best;

/// Margin for rounding of the tight bounds, relative to epsilon.
pub(crate) const ROUNDING: f64 = 1e-9;

/// How an epsilon is composed from its queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompositionMethod {
    /// Sums of moments of the privacy loss, converted at the best order.
    Moments,
    /// Convolution of privacy loss distributions.
    LossDistributions,
    /// A closed form: the optimal composition of one pure epsilon, or Gaussian differential privacy.
    Optimal,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct EpsilonBound {
    pub(crate) best: Best,
    pub(crate) method: CompositionMethod,
    /// Number of queries that the votes made cheaper.
    pub(crate) data_dependent_queries: usize,
}

impl EpsilonBound {
    /// Returns a bound by moments that does not depend on votes.
    pub(crate) fn of_moments(best: Best) -> Self {
        Self { best, method: CompositionMethod::Moments, data_dependent_queries: 0 }
    }

    /// Returns a bound in closed form that does not depend on votes; adds the margin for rounding.
    pub(crate) fn optimal(epsilon: f64) -> Self {
        let best = Best { order: 0.0, epsilon: epsilon * (1.0 + ROUNDING), at_edge: false };
        Self { best, method: CompositionMethod::Optimal, data_dependent_queries: 0 }
    }

    /// Returns the bound by convolution if it is smaller, else this bound.
    pub(crate) fn or_convolved(self, epsilon: Option<f64>) -> Self {
        match epsilon {
            Some(epsilon) if epsilon < self.best.epsilon => Self {
                best: Best { epsilon, at_edge: false, ..self.best },
                method: CompositionMethod::LossDistributions,
                ..self
            },
            _ => self,
        }
    }
}
