//! The parameters of the noise: its width, and the fraction of the teachers whose noise is present.

use serde::{Deserialize, Serialize};

use crate::MechanismError;

/// The largest number of teachers that share noise.
pub(crate) const MAX_TEACHERS: usize = 1_000_000;

/// Checks a number of teachers that share noise.
pub(crate) fn check_teachers(found: usize) -> Result<(), MechanismError> {
    match found {
        1..=MAX_TEACHERS => Ok(()),
        _ => Err(MechanismError::Teachers { found, max: MAX_TEACHERS }),
    }
}

/// Rounds a product down. A product within rounding error of an integer counts as that integer: 0.7 of 250 is 175, even if the
/// floating-point product is slightly less.
fn floor(product: f64) -> f64 {
    let nearest = product.round();
    if (product - nearest).abs() <= 1e-12 * nearest { nearest } else { product.floor() }
}

/// Checks the shape of summed Laplace noise, at most 2: that of the difference of two classes' noise of all teachers.
pub(crate) fn checked_shape(found: f64) -> Result<f64, MechanismError> {
    const MAX: f64 = 2.0;
    if found > 0.0 && found <= MAX { Ok(found) } else { Err(MechanismError::Shape { found, max: MAX }) }
}

/// Converts a checked number from and into its value, for serde.
macro_rules! as_number {
    ($type:ty, $number:ty) => {
        impl TryFrom<$number> for $type {
            type Error = MechanismError;

            fn try_from(number: $number) -> Result<Self, Self::Error> {
                Self::new(number)
            }
        }

        impl From<$type> for $number {
            fn from(checked: $type) -> Self {
                checked.0
            }
        }
    };
}

/// Inverse scale `gamma` of the noise, per vote: the summed noise of all teachers has scale `1/gamma` votes.
///
/// This is the paper's gamma (section 3.2, 0.1 in its tables). With the noise of all teachers one query costs
/// `2 gamma`.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct InverseScale(f64);

impl InverseScale {
    /// The smallest value supported: noise of a thousand votes, whose table of shares still fits into a cache.
    /// Accounts, calibration, samplers, rounds and runs all have this range.
    pub const MIN: f64 = 1e-3;
    /// The largest value supported: there is practically no noise left, and no exponent overflows.
    pub const MAX: f64 = 1e6;

    /// Checks and wraps `gamma`.
    ///
    /// # Errors
    /// [`MechanismError::InverseScale`] if `gamma` is not a number from [`Self::MIN`] to [`Self::MAX`].
    pub fn new(gamma: f64) -> Result<Self, MechanismError> {
        // A NaN is not in any range, so it is refused.
        if (Self::MIN..=Self::MAX).contains(&gamma) {
            Ok(Self(gamma))
        } else {
            Err(MechanismError::InverseScale { found: gamma, min: Self::MIN, max: Self::MAX })
        }
    }

    /// Returns the value, per vote.
    pub fn get(self) -> f64 {
        self.0
    }
}

as_number!(InverseScale, f64);

/// Standard deviation `sigma` of Gaussian or Skellam noise, in votes, if all teachers add their shares.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct NoiseDeviation(f64);

impl NoiseDeviation {
    /// The smallest value supported.
    pub const MIN: f64 = 1e-2;
    /// The largest value supported: the time of a draw of Skellam noise grows with it. Accounts, calibration, samplers
    /// and runs all have this range.
    pub const MAX: f64 = 1e6;

    /// Checks and wraps `sigma`.
    ///
    /// # Errors
    /// [`MechanismError::Deviation`] if `sigma` is not a number from [`Self::MIN`] to [`Self::MAX`].
    pub fn new(sigma: f64) -> Result<Self, MechanismError> {
        if (Self::MIN..=Self::MAX).contains(&sigma) {
            Ok(Self(sigma))
        } else {
            Err(MechanismError::Deviation { found: sigma, min: Self::MIN, max: Self::MAX })
        }
    }

    /// Returns the value, in votes.
    pub fn get(self) -> f64 {
        self.0
    }
}

as_number!(NoiseDeviation, f64);

/// Number of fair coins of binomial noise: of all teachers together, for each class and query.
///
/// Their heads have a standard deviation of `sqrt(coins) / 2` votes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct NoiseCoins(u64);

impl NoiseCoins {
    /// The largest number supported, with a deviation of 512 votes.
    pub const MAX: u64 = 1 << 20;

    /// Checks and wraps a number of coins.
    ///
    /// # Errors
    /// [`MechanismError::Coins`] if it is not from 1 to [`Self::MAX`].
    pub fn new(coins: u64) -> Result<Self, MechanismError> {
        if (1..=Self::MAX).contains(&coins) {
            Ok(Self(coins))
        } else {
            Err(MechanismError::Coins { found: coins as f64, max: Self::MAX })
        }
    }

    /// Returns the number of which every teacher's coins are a multiple: 2 with a threshold, because an odd number of
    /// coins has no integer mean to which a share could be centred, and otherwise 1.
    pub fn step(has_threshold: bool) -> u64 {
        if has_threshold { 2 } else { 1 }
    }

    /// Returns the least number of coins, the same multiple of `step` for each of `teachers` teachers, whose deviation is
    /// at least `sigma`.
    ///
    /// # Errors
    /// [`MechanismError::Coins`] if that is more than [`Self::MAX`], [`MechanismError::Teachers`] for no teacher.
    pub fn of_deviation(sigma: NoiseDeviation, teachers: usize, step: u64) -> Result<Self, MechanismError> {
        if teachers == 0 {
            return Err(MechanismError::Teachers { found: 0, max: MAX_TEACHERS });
        }
        // A product within rounding error of an integer counts as that integer.
        let sharers = teachers as f64 * step as f64;
        let steps = (4.0 * sigma.get() * sigma.get() / sharers * (1.0 - 1e-12)).ceil().max(1.0);
        let all = steps * sharers;
        if all <= Self::MAX as f64 {
            Self::new(all as u64)
        } else {
            Err(MechanismError::Coins { found: all, max: Self::MAX })
        }
    }

    /// Returns the number.
    pub fn get(self) -> u64 {
        self.0
    }

    /// Returns the number of coins of each of `teachers` teachers, rounded up if they cannot share the coins evenly.
    pub fn of_teacher(self, teachers: usize) -> u64 {
        self.0.div_ceil(teachers.max(1) as u64)
    }

    /// Returns the standard deviation of the number of heads, in votes.
    pub fn deviation(self) -> f64 {
        (self.0 as f64).sqrt() / 2.0
    }

    /// Returns the number of coins of a ratio `tau` of the teachers, rounded down. A product within rounding error of an
    /// integer counts as that integer.
    pub fn of_ratio(self, tau: HonestRatio) -> u64 {
        floor(tau.get() * self.0 as f64) as u64
    }
}

as_number!(NoiseCoins, u64);

/// Fraction `tau` of the teachers whose noise is present and secret, in (0, 1].
///
/// This is the paper's tau (Theorem 2). The accountant must use the actual ratio of a run, [`Self::effective`]: with
/// 250 teachers `tau = 0.999` means 249 noisy teachers, and so a ratio of 0.996.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct HonestRatio(f64);

impl HonestRatio {
    /// All teachers add noise.
    pub const ALL: Self = Self(1.0);

    /// Checks and wraps `tau`.
    ///
    /// # Errors
    /// [`MechanismError::HonestRatio`] if `tau` is not a number in (0, 1].
    pub fn new(tau: f64) -> Result<Self, MechanismError> {
        if tau > 0.0 && tau <= 1.0 { Ok(Self(tau)) } else { Err(MechanismError::HonestRatio { found: tau }) }
    }

    /// Returns the value.
    pub fn get(self) -> f64 {
        self.0
    }

    /// Returns the number of `teachers` teachers that add noise: `floor(tau * teachers)`. A product within rounding
    /// error of an integer counts as that integer.
    ///
    /// # Errors
    /// [`MechanismError::NoNoisyTeacher`] if that number is 0.
    pub fn noisy_teachers(self, teachers: usize) -> Result<usize, MechanismError> {
        let noisy = floor(self.0 * teachers as f64) as usize;
        if noisy == 0 { Err(MechanismError::NoNoisyTeacher { tau: self.0, teachers }) } else { Ok(noisy) }
    }

    /// Returns the actual ratio among `teachers` teachers: [`Self::noisy_teachers`] divided by `teachers`.
    ///
    /// # Errors
    /// [`MechanismError::NoNoisyTeacher`] if no teacher adds noise.
    pub fn effective(self, teachers: usize) -> Result<Self, MechanismError> {
        Ok(Self(self.noisy_teachers(teachers)? as f64 / teachers as f64))
    }
}

as_number!(HonestRatio, f64);
