//! Noise distributions, with and without their parameters.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{BinomialShare, InverseScale, MechanismError, NoiseCoins, NoiseDeviation, NoiseShare, SkellamShare};

/// A noise distribution with its parameters: the distribution of the sum over all teachers, per class and query.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "noise", rename_all = "snake_case")]
pub enum Mechanism {
    /// The paper's continuous Laplace noise: for analysis only, because it cannot be encrypted.
    Laplace {
        /// Inverse scale, per vote.
        gamma: InverseScale,
    },
    /// Integer (discrete Laplace) noise, in shares that are differences of negative binomial variables.
    DiscreteLaplace {
        /// Inverse scale, per vote.
        gamma: InverseScale,
    },
    /// Gaussian noise, as in PATE 2018: for analysis only.
    Gaussian {
        /// Standard deviation, in votes.
        sigma: NoiseDeviation,
    },
    /// Skellam noise, in shares that are differences of Poisson variables: the integer counterpart of the Gaussian.
    Skellam {
        /// Standard deviation, in votes.
        sigma: NoiseDeviation,
    },
    /// Binomial noise: the heads of fair coins, the same number for each teacher.
    Binomial {
        /// Coins of all teachers, for each class and query.
        coins: NoiseCoins,
    },
}

/// A noise distribution without its parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MechanismKind {
    /// [`Mechanism::Laplace`].
    Laplace,
    /// [`Mechanism::DiscreteLaplace`].
    #[default]
    DiscreteLaplace,
    /// [`Mechanism::Gaussian`].
    Gaussian,
    /// [`Mechanism::Skellam`].
    Skellam,
    /// [`Mechanism::Binomial`].
    Binomial,
}

speed_core::named!(MechanismKind:
    Laplace = "laplace",
    DiscreteLaplace = "discrete-laplace",
    Gaussian = "gaussian",
    Skellam = "skellam",
    Binomial = "binomial",
);

impl MechanismKind {
    /// Adds the parameter: gamma, per vote, for Laplace noise of both kinds; sigma, in votes, for Gaussian and Skellam
    /// noise; the number of coins of all teachers for binomial noise.
    ///
    /// # Errors
    /// If the parameter is out of range.
    pub fn with_scale(self, scale: f64) -> Result<Mechanism, MechanismError> {
        Ok(match self {
            Self::Laplace => Mechanism::Laplace { gamma: InverseScale::new(scale)? },
            Self::DiscreteLaplace => Mechanism::DiscreteLaplace { gamma: InverseScale::new(scale)? },
            Self::Gaussian => Mechanism::Gaussian { sigma: NoiseDeviation::new(scale)? },
            Self::Skellam => Mechanism::Skellam { sigma: NoiseDeviation::new(scale)? },
            Self::Binomial => Mechanism::Binomial { coins: coins(scale)? },
        })
    }

    /// Returns the name of the parameter.
    pub fn parameter(self) -> &'static str {
        match self {
            Self::Laplace | Self::DiscreteLaplace => "gamma",
            Self::Gaussian | Self::Skellam => "sigma",
            Self::Binomial => "coins",
        }
    }

    /// Returns whether the parameter is an inverse scale, so that a larger value means less noise.
    pub fn is_inverse(self) -> bool {
        matches!(self, Self::Laplace | Self::DiscreteLaplace)
    }
}

impl Mechanism {
    /// Creates continuous Laplace noise.
    pub const fn laplace(gamma: InverseScale) -> Self {
        Self::Laplace { gamma }
    }

    /// Creates integer (discrete Laplace) noise.
    pub const fn discrete_laplace(gamma: InverseScale) -> Self {
        Self::DiscreteLaplace { gamma }
    }

    /// Creates Gaussian noise.
    pub const fn gaussian(sigma: NoiseDeviation) -> Self {
        Self::Gaussian { sigma }
    }

    /// Creates Skellam noise.
    pub const fn skellam(sigma: NoiseDeviation) -> Self {
        Self::Skellam { sigma }
    }

    /// Creates binomial noise from the coins of all teachers.
    pub const fn binomial(coins: NoiseCoins) -> Self {
        Self::Binomial { coins }
    }

    /// Returns the name without the parameter.
    pub fn kind(self) -> MechanismKind {
        match self {
            Self::Laplace { .. } => MechanismKind::Laplace,
            Self::DiscreteLaplace { .. } => MechanismKind::DiscreteLaplace,
            Self::Gaussian { .. } => MechanismKind::Gaussian,
            Self::Skellam { .. } => MechanismKind::Skellam,
            Self::Binomial { .. } => MechanismKind::Binomial,
        }
    }

    /// Returns the parameter: gamma, per vote, sigma, in votes, or the number of coins, depending on the kind.
    pub fn scale(self) -> f64 {
        match self {
            Self::Laplace { gamma } | Self::DiscreteLaplace { gamma } => gamma.get(),
            Self::Gaussian { sigma } | Self::Skellam { sigma } => sigma.get(),
            Self::Binomial { coins } => coins.get() as f64,
        }
    }

    /// Returns the inverse scale of Laplace noise, and `None` for other noise.
    pub fn gamma(self) -> Option<InverseScale> {
        match self {
            Self::Laplace { gamma } | Self::DiscreteLaplace { gamma } => Some(gamma),
            Self::Gaussian { .. } | Self::Skellam { .. } | Self::Binomial { .. } => None,
        }
    }

    /// Returns whether the noise is an integer number of votes, so that it can be encrypted.
    pub fn is_integer(self) -> bool {
        matches!(self, Self::DiscreteLaplace { .. } | Self::Skellam { .. } | Self::Binomial { .. })
    }

    /// Returns whether the noise has an exact sampler, which adds nothing to delta.
    pub fn has_exact_sampler(self) -> bool {
        matches!(self, Self::Skellam { .. } | Self::Binomial { .. })
    }

    /// Bounds the total variation distance of `draws` independent shares, taken together, from the exact noise. The
    /// noise is divided between `sharers` parties, and each share is that of one party. Continuous noise has no
    /// sampler, hence no distance.
    ///
    /// # Errors
    /// [`MechanismError`] if no sampler draws such shares.
    pub fn total_variation_of_shares(self, sharers: usize, draws: u64) -> Result<Option<f64>, MechanismError> {
        match self {
            Self::DiscreteLaplace { gamma } => {
                Ok(Some(NoiseShare::new(gamma, sharers)?.total_variation_of_draws(draws)))
            }
            Self::Skellam { sigma } => SkellamShare::new(sigma, sharers).map(|_| Some(0.0)),
            Self::Binomial { coins } => BinomialShare::new(coins, sharers).map(|_| Some(0.0)),
            Self::Laplace { .. } | Self::Gaussian { .. } => Ok(None),
        }
    }

    /// Returns the name and the parameter in the form that a round's id contains: equal only for equal mechanisms.
    pub fn identifier(self) -> String {
        format!("{} {}={}", self.kind(), self.kind().parameter(), self.scale())
    }
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Laplace { gamma } => {
                write!(f, "continuous Laplace noise of inverse scale gamma = {} per vote", gamma.get())
            }
            Self::DiscreteLaplace { gamma } => {
                write!(f, "integer (discrete Laplace) noise of inverse scale gamma = {} per vote", gamma.get())
            }
            Self::Gaussian { sigma } => write!(f, "Gaussian noise of standard deviation sigma = {} votes", sigma.get()),
            Self::Skellam { sigma } => {
                write!(f, "integer (Skellam) noise of standard deviation sigma = {} votes", sigma.get())
            }
            Self::Binomial { coins } => {
                let (coins, deviation) = (coins.get(), coins.deviation());
                write!(f, "binomial noise of {coins} coins of all teachers (standard deviation {deviation:.1} votes)")
            }
        }
    }
}

/// Reads a number of coins.
fn coins(scale: f64) -> Result<NoiseCoins, MechanismError> {
    if scale.fract() == 0.0 && (1.0..=NoiseCoins::MAX as f64).contains(&scale) {
        NoiseCoins::new(scale as u64)
    } else {
        Err(MechanismError::Coins { found: scale, max: NoiseCoins::MAX })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mechanism_has_the_same_name_everywhere() {
        for name in MechanismKind::NAMES {
            let kind: MechanismKind = name.parse().expect("a known name");
            assert_eq!(serde_json::to_value(kind).expect("a text"), *name);
            let scale = if kind == MechanismKind::Binomial { 1_000.0 } else { 0.1 };
            let mechanism = kind.with_scale(scale).expect("in range");
            assert_eq!((mechanism.kind(), mechanism.scale()), (kind, scale));
            // Ledgers and reports store this form.
            let json = serde_json::to_value(mechanism).expect("a record");
            assert_eq!(json["noise"], name.replace('-', "_"));
            assert_eq!(serde_json::from_value::<Mechanism>(json).expect("the same"), mechanism);
        }
        let mechanism = MechanismKind::DiscreteLaplace.with_scale(0.1).expect("in range");
        assert_eq!(mechanism.identifier(), "discrete-laplace gamma=0.1");
        let mechanism = MechanismKind::Binomial.with_scale(1_000.0).expect("in range");
        assert_eq!(mechanism.identifier(), "binomial coins=1000");
        assert!(MechanismKind::Skellam.with_scale(f64::NAN).is_err());
        for refused in [0.0, -4.0, 3.5, f64::NAN, f64::INFINITY, 2f64.powi(21)] {
            assert!(MechanismKind::Binomial.with_scale(refused).is_err(), "{refused}");
        }
    }
}
