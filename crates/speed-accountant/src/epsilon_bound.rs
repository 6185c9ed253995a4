//! An epsilon with its origin.

use serde::{Deserialize, Serialize};

use crate::orders::Best;

/// Margin for rounding of the tight bounds, relative to epsilon.
pub(crate) const ROUNDING: f64 = 1e-9;

/// Composition of an epsilon from its queries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompositionMethod {
    /// Sums of moments of the privacy loss, converted at the best order.
    #[default]
    Moments,
    /// Convolution of privacy loss distributions.
    LossDistributions,
    /// In closed form: the optimal composition of one pure epsilon, or Gaussian differential privacy.
    Optimal,
}

/// An upper bound of epsilon, and how it came about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct EpsilonBound {
    pub(crate) best: Best,
    pub(crate) method: CompositionMethod,
    /// Number of queries that the votes made cheaper.
    pub(crate) data_dependent_queries: usize,
}

impl EpsilonBound {
    /// Returns a bound by moments that looks at no votes.
    pub(crate) fn of_moments(best: Best) -> Self {
        Self { best, method: CompositionMethod::Moments, data_dependent_queries: 0 }
    }

    /// Returns a bound in closed form that looks at no votes; the margin for rounding is added.
    pub(crate) fn optimal(epsilon: f64) -> Self {
        let best = Best { order: 0.0, epsilon: epsilon * (1.0 + ROUNDING), at_edge: false };
        Self { best, method: CompositionMethod::Optimal, data_dependent_queries: 0 }
    }

    /// Returns the same queries by convolution, where that is less.
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
