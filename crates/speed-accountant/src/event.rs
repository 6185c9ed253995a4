//! The noise of one query: the object of the account.

use std::fmt;

use serde::{Deserialize, Serialize};
use speed_mechanism::{HonestRatio, InverseScale, NoiseDeviation};

use crate::error::AccountError;

/// Which noise the teachers add, and how wide the sum over all of them is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "noise", rename_all = "snake_case")]
pub enum Noise {
    /// The paper's continuous Laplace noise.
    Laplace {
        /// Inverse scale, per vote.
        gamma: InverseScale,
    },
    /// The integer noise that this project encrypts: a difference of negative binomial variables.
    DiscreteLaplace {
        /// Inverse scale, per vote.
        gamma: InverseScale,
    },
    /// Gaussian noise, as in PATE 2018.
    Gaussian {
        /// Standard deviation, in votes.
        sigma: NoiseDeviation,
    },
    /// Skellam noise, the integer twin of the Gaussian.
    Skellam {
        /// Standard deviation, in votes.
        sigma: NoiseDeviation,
    },
}

impl Noise {
    /// Continuous Laplace noise.
    #[must_use]
    pub fn laplace(gamma: InverseScale) -> Self {
        Self::Laplace { gamma }
    }

    /// Integer (discrete Laplace) noise.
    #[must_use]
    pub fn discrete_laplace(gamma: InverseScale) -> Self {
        Self::DiscreteLaplace { gamma }
    }

    /// Gaussian noise.
    #[must_use]
    pub fn gaussian(sigma: NoiseDeviation) -> Self {
        Self::Gaussian { sigma }
    }

    /// Skellam noise.
    #[must_use]
    pub fn skellam(sigma: NoiseDeviation) -> Self {
        Self::Skellam { sigma }
    }

    /// Whether the noise is an integer number of votes.
    #[must_use]
    pub fn is_integer(&self) -> bool {
        matches!(self, Self::DiscreteLaplace { .. } | Self::Skellam { .. })
    }

    /// Inverse scale of Laplace noise.
    #[must_use]
    pub fn gamma(&self) -> Option<InverseScale> {
        match *self {
            Self::Laplace { gamma } | Self::DiscreteLaplace { gamma } => Some(gamma),
            Self::Gaussian { .. } | Self::Skellam { .. } => None,
        }
    }
}

impl fmt::Display for Noise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Laplace { gamma } => write!(f, "continuous Laplace noise of inverse scale gamma = {}", gamma.get()),
            Self::DiscreteLaplace { gamma } => {
                write!(f, "integer (discrete Laplace) noise of inverse scale gamma = {}", gamma.get())
            }
            Self::Gaussian { sigma } => write!(f, "Gaussian noise of standard deviation sigma = {}", sigma.get()),
            Self::Skellam { sigma } => {
                write!(f, "integer (Skellam) noise of standard deviation sigma = {}", sigma.get())
            }
        }
    }
}

/// One query of the noisy argmax, repeated for every row of votes.
///
/// Neighbours are two ensembles that differ in one teacher's vote.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrivacyEvent {
    noise: Noise,
    tau: HonestRatio,
    threshold: Option<f64>,
    sampling_total_variation: f64,
}

impl PrivacyEvent {
    /// Creates a query with `noise`, present and secret for a ratio `tau` of the teachers: the ratio that the run really has,
    /// [`HonestRatio::effective`].
    #[must_use]
    pub fn new(noise: Noise, tau: HonestRatio) -> Self {
        Self { noise, tau, threshold: None, sampling_total_variation: 0.0 }
    }

    /// Answers only if the largest noisy count is at least `threshold` votes, and says "no answer" otherwise. The noise
    /// of the check is that of the argmax, not drawn anew: the query is then an argmax over one candidate more, a
    /// constant without noise (docs/privacy.md, "Threshold").
    ///
    /// # Errors
    /// [`AccountError::Threshold`] if `threshold` is beyond 10^15 votes, or no whole number with integer noise.
    pub fn with_threshold(self, threshold: f64) -> Result<Self, AccountError> {
        let whole = threshold.fract() == 0.0;
        if threshold.abs() <= 1e15 && (whole || !self.noise.is_integer()) {
            Ok(Self { threshold: Some(threshold), ..self })
        } else {
            Err(AccountError::Threshold { found: threshold })
        }
    }

    /// Charges the imperfection of the sampler to delta: `distance` bounds the total variation distance of **all** draws of
    /// the run together from the exact noise
    /// ([`NoiseShare::distance_of_draws`](speed_mechanism::NoiseShare::distance_of_draws)).
    ///
    /// # Errors
    /// [`AccountError::TotalVariation`] if `distance` is not in [0, 1).
    pub fn with_sampling_total_variation(self, distance: f64) -> Result<Self, AccountError> {
        if (0.0..1.0).contains(&distance) {
            Ok(Self { sampling_total_variation: distance, ..self })
        } else {
            Err(AccountError::TotalVariation { found: distance })
        }
    }

    /// Returns the noise.
    #[must_use]
    pub fn noise(&self) -> Noise {
        self.noise
    }

    /// Returns the ratio of the teachers whose noise is present and secret.
    #[must_use]
    pub fn tau(&self) -> HonestRatio {
        self.tau
    }

    /// Returns the noisy votes that an answer needs.
    #[must_use]
    pub fn threshold(&self) -> Option<f64> {
        self.threshold
    }

    /// Returns the total variation distance of all draws of the run from the exact noise.
    #[must_use]
    pub fn sampling_total_variation(&self) -> f64 {
        self.sampling_total_variation
    }

    /// Returns the same query with the noise of a further ratio of the teachers, at most of all.
    pub(crate) fn with_more_noise(self, known: HonestRatio) -> Self {
        let all = (self.tau.get() + known.get()).min(1.0);
        Self { tau: HonestRatio::new(all).unwrap_or(HonestRatio::ALL), ..self }
    }

    /// Returns the same query with the noise of another ratio of the teachers.
    pub(crate) fn with_tau(self, tau: HonestRatio) -> Self {
        Self { tau, ..self }
    }
}
