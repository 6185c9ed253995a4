//! Privacy noise of a round: its bound, and the draws of teachers and server.

use speed_core::{EntropyError, Randomness, VoteShape};
use speed_mechanism::{
    HonestRatio, InverseScale, Mechanism, MechanismError, MechanismKind, NoiseGenerator, NoiseShare, sum_support_bound,
};
use zeroize::Zeroizing;

/// The probability that the privacy noise of any class of any query of a round leaves the range that the round's encoding is
/// exact for.
pub const PRIVACY_NOISE_RANGE_FAILURE: f64 = 1.0 / (1u128 << 64) as f64;

/// A mechanism whose noise can be drawn in shares and encrypted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrivacyNoise {
    gamma: InverseScale,
}

/// The reason why a mechanism has no privacy noise for a round.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PrivacyNoiseError {
    /// A mechanism that is not known, or not drawn in shares.
    #[error("mechanism {found:?}: expected one of {}", PrivacyNoise::NAMES.join(", "))]
    Unsupported {
        /// Its name.
        found: String,
    },
    /// A parameter out of range.
    #[error(transparent)]
    Mechanism(#[from] MechanismError),
}

impl PrivacyNoise {
    /// The names of the mechanisms that teachers and servers draw.
    pub const NAMES: [&str; 1] = [MechanismKind::DiscreteLaplace.name()];

    /// Checks that the noise of a mechanism can be drawn. Work grows as 1/gamma: a file of a stranger must not be able to
    /// ask for hours.
    ///
    /// # Errors
    /// If teachers cannot draw shares of it, or it is wider than what can be sampled.
    pub fn new(mechanism: Mechanism) -> Result<Self, PrivacyNoiseError> {
        let Mechanism::DiscreteLaplace { gamma } = mechanism else {
            return Err(PrivacyNoiseError::Unsupported { found: mechanism.kind().to_string() });
        };
        if gamma.get() < NoiseShare::MIN_SCALE {
            let min = NoiseShare::MIN_SCALE;
            return Err(MechanismError::NoiseTooWide { found: gamma.get(), min }.into());
        }
        Ok(Self { gamma })
    }

    /// Finds a mechanism by its name and parameter.
    ///
    /// # Errors
    /// If there is no such mechanism, or those of [`Self::new`].
    pub fn named(name: &str, scale: f64) -> Result<Self, PrivacyNoiseError> {
        let kind = name.parse::<MechanismKind>().ok().filter(|kind| Self::NAMES.contains(&kind.name()));
        let kind = kind.ok_or_else(|| PrivacyNoiseError::Unsupported { found: name.to_owned() })?;
        Self::new(kind.with_scale(scale)?)
    }

    /// Returns the mechanism.
    #[must_use]
    pub fn mechanism(self) -> Mechanism {
        Mechanism::DiscreteLaplace { gamma: self.gamma }
    }

    /// Returns the inverse scale, per vote.
    #[must_use]
    pub fn gamma(self) -> InverseScale {
        self.gamma
    }

    /// Returns a bound that the noise of all classes of all queries respects, but for a probability of
    /// [`PRIVACY_NOISE_RANGE_FAILURE`].
    ///
    /// # Errors
    /// If the noise cannot be bounded.
    pub fn bound(self, shape: VoteShape) -> Result<u64, MechanismError> {
        sum_support_bound(self.gamma, HonestRatio::ALL, shape.counts() as u64, PRIVACY_NOISE_RANGE_FAILURE)
    }

    /// Prepares the draws of one of `sharers` parties that add the noise together; of the whole noise if it is one.
    ///
    /// # Errors
    /// If there are too many of them, or none.
    pub fn share_of(self, sharers: usize) -> Result<PrivacyNoiseShare, MechanismError> {
        NoiseShare::new(self.gamma, sharers).map(PrivacyNoiseShare)
    }
}

/// The privacy noise that one of several parties adds.
#[derive(Clone, Debug)]
pub struct PrivacyNoiseShare(NoiseShare);

impl PrivacyNoiseShare {
    /// Draws `count` independent values.
    ///
    /// # Errors
    /// If the operating system gives no randomness.
    pub fn draw(&self, count: usize, randomness: &Randomness) -> Result<Zeroizing<Vec<i64>>, EntropyError> {
        let mut noise = Zeroizing::new(vec![0; count]);
        self.0.fill(&mut NoiseGenerator::new(randomness)?, &mut noise);
        Ok(noise)
    }

    /// Bounds the total variation distance of so many draws together from the exact noise.
    #[must_use]
    pub fn total_variation_distance(&self, draws: usize) -> f64 {
        self.0.total_variation_of_draws(draws as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_that_cannot_be_drawn_in_shares_is_refused() {
        assert!(PrivacyNoise::named("discrete-laplace", 0.1).is_ok());
        for (name, scale, words) in [
            ("gaussian", 40.0, "mechanism \"gaussian\": expected one of discrete-laplace"),
            ("skellam", 40.0, "mechanism \"skellam\": expected one of discrete-laplace"),
            ("Laplace", 0.1, "mechanism \"Laplace\": expected one of discrete-laplace"),
            ("discrete-laplace", 1e-4, "at least 0.001"),
            ("discrete-laplace", f64::NAN, "gamma is NaN"),
        ] {
            let error = PrivacyNoise::named(name, scale).expect_err(name).to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
