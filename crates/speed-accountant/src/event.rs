//! What is accounted: the noise of one query, and the delta of the final claim.

use std::fmt;

use serde::{Deserialize, Serialize};
use speed_mechanism::{HonestRatio, InverseScale};

use crate::AccountError;

/// Which noise the teachers add.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Noise {
    /// The paper's continuous Laplace noise, and the paper's formulas for it (Theorem 2, Proposition 4).
    Laplace,
    /// The integer noise that this project encrypts, and formulas for that.
    DiscreteLaplace,
}

impl fmt::Display for Noise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Laplace => "continuous Laplace noise",
            Self::DiscreteLaplace => "integer (discrete Laplace) noise",
        })
    }
}

/// One query of the noisy argmax, repeated for every row of votes.
///
/// Neighbours are two ensembles that differ in one teacher's vote.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrivacyEvent {
    noise: Noise,
    gamma: InverseScale,
    tau: HonestRatio,
    sampling_distance: f64,
}

impl PrivacyEvent {
    /// A query with `noise` of inverse scale `gamma`, present and secret for a ratio `tau` of the teachers: the ratio
    /// that the run really has, [`HonestRatio::effective`].
    #[must_use]
    pub fn new(noise: Noise, gamma: InverseScale, tau: HonestRatio) -> Self {
        Self { noise, gamma, tau, sampling_distance: 0.0 }
    }

    /// Charges the imperfection of the sampler to delta: `distance` bounds the statistical distance of **all** draws of
    /// the run together ([`NoiseShare::distance_of_draws`](speed_mechanism::NoiseShare::distance_of_draws)).
    ///
    /// # Errors
    /// [`AccountError::SamplingDistance`] if `distance` is not in [0, 1).
    pub fn with_sampling_distance(self, distance: f64) -> Result<Self, AccountError> {
        if (0.0..1.0).contains(&distance) {
            Ok(Self { sampling_distance: distance, ..self })
        } else {
            Err(AccountError::SamplingDistance { found: distance })
        }
    }

    /// Which noise it is.
    #[must_use]
    pub fn noise(&self) -> Noise {
        self.noise
    }

    /// Inverse scale of the noise, per vote.
    #[must_use]
    pub fn gamma(&self) -> InverseScale {
        self.gamma
    }

    /// Ratio of the teachers whose noise is present and secret.
    #[must_use]
    pub fn tau(&self) -> HonestRatio {
        self.tau
    }

    /// Statistical distance of all draws of the run from the exact noise.
    #[must_use]
    pub fn sampling_distance(&self) -> f64 {
        self.sampling_distance
    }
}

/// The delta of an (epsilon, delta) claim, in (0, 1).
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Delta(f64);

impl Delta {
    /// Checks and wraps `delta`.
    ///
    /// # Errors
    /// [`AccountError::Delta`] if `delta` is not a number in (0, 1).
    pub fn new(delta: f64) -> Result<Self, AccountError> {
        if delta > 0.0 && delta < 1.0 { Ok(Self(delta)) } else { Err(AccountError::Delta { found: delta }) }
    }

    /// The value.
    #[must_use]
    pub fn get(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Delta {
    type Error = AccountError;

    fn try_from(delta: f64) -> Result<Self, Self::Error> {
        Self::new(delta)
    }
}

impl From<Delta> for f64 {
    fn from(delta: Delta) -> Self {
        delta.0
    }
}
