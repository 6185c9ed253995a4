//! Integer noise of any kind as tables.

use speed_mechanism::{Binomial, DiscreteLaplace, Lattice, Mechanism, Skellam};

use crate::event::PrivacyEvent;

/// The noise of one class, and of the difference of two classes, for the ratio of teachers of an event.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LatticeNoise {
    Laplace { class: DiscreteLaplace, difference: DiscreteLaplace, scale: f64, log_concave: bool },
    Skellam { class: Skellam, difference: Skellam },
    Binomial { class: Binomial, difference: Binomial },
}

impl LatticeNoise {
    /// Creates the noise of an event; `None` for continuous noise.
    pub(crate) fn new(event: &PrivacyEvent) -> Option<Self> {
        let tau = event.tau();
        match event.mechanism() {
            Mechanism::Laplace { .. } | Mechanism::Gaussian { .. } => None,
            Mechanism::DiscreteLaplace { gamma } => Some(Self::Laplace {
                class: DiscreteLaplace::of_class(gamma, tau),
                difference: DiscreteLaplace::of_difference(gamma, tau),
                scale: 1.0 / gamma.get(),
                // Negative binomial variables of a shape below 1 are log-convex.
                log_concave: tau.get() == 1.0,
            }),
            Mechanism::Skellam { sigma } => Some(Self::Skellam {
                class: Skellam::of_class(sigma, tau),
                difference: Skellam::of_difference(sigma, tau),
            }),
            Mechanism::Binomial { coins } => Some(Self::Binomial {
                class: Binomial::of_class(coins, tau),
                difference: Binomial::of_difference(coins, tau),
            }),
        }
    }

    /// Computes the table of one class's noise up to `reach` votes.
    pub(crate) fn of_class(&self, reach: usize) -> Lattice {
        match self {
            Self::Laplace { class, .. } => class.lattice(reach),
            Self::Skellam { class, .. } => class.lattice(reach),
            Self::Binomial { class, .. } => class.lattice(reach),
        }
    }

    /// Computes the table of the difference of two classes' noise up to `reach` votes.
    pub(crate) fn of_difference(&self, reach: usize) -> Lattice {
        match self {
            Self::Laplace { difference, .. } => difference.lattice(reach),
            Self::Skellam { difference, .. } => difference.lattice(reach),
            Self::Binomial { difference, .. } => difference.lattice(reach),
        }
    }

    /// Returns the standard deviation of one class's noise, or for Laplace noise a number of its size, in votes.
    pub(crate) fn deviation(&self) -> f64 {
        match self {
            Self::Laplace { scale, .. } => *scale,
            Self::Skellam { class, .. } => class.variance().sqrt(),
            Self::Binomial { class, .. } => class.variance().sqrt(),
        }
    }

    /// Returns whether probabilities of the noise are known to be log-concave.
    pub(crate) fn is_log_concave(&self) -> bool {
        match self {
            Self::Laplace { log_concave, .. } => *log_concave,
            // Both are limits of sums of independent coins.
            Self::Skellam { .. } | Self::Binomial { .. } => true,
        }
    }

    /// Returns the largest distance from the centre that the noise can have, in votes; `None` if there is none.
    pub(crate) fn support(&self) -> Option<i64> {
        match self {
            Self::Laplace { .. } | Self::Skellam { .. } => None,
            Self::Binomial { class, .. } => Some(class.coins().div_ceil(2) as i64),
        }
    }
}
