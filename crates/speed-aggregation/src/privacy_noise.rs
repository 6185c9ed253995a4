//! Privacy noise of a round: its bound, and the draws of teachers and server.

use speed_core::{EntropyError, Randomness, VoteShape};
use speed_mechanism::{
    HonestRatio, InverseScale, Mechanism, MechanismError, MechanismKind, NoiseGenerator, NoiseShare, SkellamShare,
    skellam_support_bound, sum_support_bound,
};
use zeroize::Zeroizing;

/// The probability that the privacy noise of any class of any query of a round leaves the range in which the round's
/// encoding is exact.
pub const PRIVACY_NOISE_RANGE_FAILURE: f64 = 1.0 / (1u128 << 64) as f64;

/// A mechanism whose noise can be drawn in shares and encrypted: discrete Laplace or Skellam.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrivacyNoise {
    mechanism: Mechanism,
}

/// The reason why a mechanism cannot provide the privacy noise of a round.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PrivacyNoiseError {
    /// A mechanism that is unknown or not drawn in shares.
    #[error("mechanism {found:?}: expected one of {}", expected.join(", "))]
    Unsupported {
        /// The name found.
        found: String,
        /// The supported names.
        expected: &'static [&'static str],
    },
    /// A parameter out of range.
    #[error(transparent)]
    Mechanism(#[from] MechanismError),
}

impl PrivacyNoise {
    /// The names of the mechanisms that can be drawn.
    pub const DRAWN: [&str; 2] = [MechanismKind::DiscreteLaplace.name(), MechanismKind::Skellam.name()];
    /// The names of the mechanisms of rounds between programs: those that a ledger can charge.
    pub const NAMES: [&str; 1] = [MechanismKind::DiscreteLaplace.name()];
    /// Checks that the noise of a mechanism can be drawn in shares: every scale that can be asked for is.
    ///
    /// # Errors
    /// If teachers cannot draw shares of it, or it is wider than that and was read from a record.
    pub fn new(mechanism: Mechanism) -> Result<Self, PrivacyNoiseError> {
        let (found, min) = (mechanism.scale(), InverseScale::MIN);
        match mechanism {
            Mechanism::DiscreteLaplace { .. } if found < min => Err(MechanismError::NoiseTooWide { found, min }.into()),
            Mechanism::DiscreteLaplace { .. } | Mechanism::Skellam { .. } => Ok(Self { mechanism }),
            other => Err(PrivacyNoiseError::Unsupported { found: other.kind().to_string(), expected: &Self::DRAWN }),
        }
    }

    /// Finds the mechanism of a round between programs by its name and parameter.
    ///
    /// # Errors
    /// If there is no such mechanism, and the errors of [`Self::new`].
    pub fn named(name: &str, scale: f64) -> Result<Self, PrivacyNoiseError> {
        let kind = name.parse::<MechanismKind>().ok().filter(|kind| Self::NAMES.contains(&kind.name()));
        let unsupported = || PrivacyNoiseError::Unsupported { found: name.to_owned(), expected: &Self::NAMES };
        let kind = kind.ok_or_else(unsupported)?;
        Self::new(kind.with_scale(scale)?)
    }

    /// Returns the mechanism.
    #[must_use]
    pub fn mechanism(self) -> Mechanism {
        self.mechanism
    }

    /// Returns a bound that the noise of all classes of all queries respects, except with probability
    /// [`PRIVACY_NOISE_RANGE_FAILURE`].
    ///
    /// # Errors
    /// If the noise cannot be bounded.
    pub fn bound(self, shape: VoteShape) -> Result<u64, MechanismError> {
        let (draws, failure) = (shape.counts() as u64, PRIVACY_NOISE_RANGE_FAILURE);
        match self.mechanism {
            Mechanism::Skellam { sigma } => skellam_support_bound(&SkellamShare::new(sigma, 1)?, draws, failure),
            Mechanism::DiscreteLaplace { gamma } => sum_support_bound(gamma, HonestRatio::ALL, draws, failure),
            other => unreachable!("{other} was refused"),
        }
    }

    /// Prepares the draws of one of `sharers` parties that add the noise together; a single party draws all of it.
    ///
    /// # Errors
    /// If `sharers` is 0 or too large.
    pub fn share_of(self, sharers: usize) -> Result<PrivacyNoiseShare, MechanismError> {
        Ok(PrivacyNoiseShare(match self.mechanism {
            Mechanism::DiscreteLaplace { gamma } => Sampler::DiscreteLaplace(NoiseShare::new(gamma, sharers)?),
            Mechanism::Skellam { sigma } => Sampler::Skellam(SkellamShare::new(sigma, sharers)?),
            other => unreachable!("{other} was refused"),
        }))
    }
}

/// The privacy noise that one of several parties adds.
#[derive(Clone, Debug)]
pub struct PrivacyNoiseShare(Sampler);

#[derive(Clone, Debug)]
enum Sampler {
    DiscreteLaplace(NoiseShare),
    Skellam(SkellamShare),
}

impl PrivacyNoiseShare {
    /// Draws `count` independent values.
    ///
    /// # Errors
    /// If the operating system provides no randomness.
    pub fn draw(&self, count: usize, randomness: &Randomness) -> Result<Zeroizing<Vec<i64>>, EntropyError> {
        let mut noise = Zeroizing::new(vec![0; count]);
        let mut generator = NoiseGenerator::new(randomness)?;
        match &self.0 {
            Sampler::DiscreteLaplace(share) => share.fill(&mut generator, &mut noise),
            Sampler::Skellam(share) => share.fill(&mut generator, &mut noise),
        }
        Ok(noise)
    }
}

#[cfg(test)]
mod tests {
    use speed_mechanism::NoiseDeviation;

    use super::*;

    #[test]
    fn noise_that_cannot_be_drawn_in_shares_is_refused() {
        assert!(PrivacyNoise::named("discrete-laplace", 0.1).is_ok());
        for (name, scale, words) in [
            ("gaussian", 40.0, "mechanism \"gaussian\": expected one of discrete-laplace"),
            ("skellam", 40.0, "mechanism \"skellam\": expected one of discrete-laplace"),
            ("Laplace", 0.1, "mechanism \"Laplace\": expected one of discrete-laplace"),
            ("discrete-laplace", 9e-4, "from 0.001 to 1000000"),
            ("discrete-laplace", f64::NAN, "gamma is NaN"),
        ] {
            let error = PrivacyNoise::named(name, scale).expect_err(name).to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn noise_of_every_scale_is_drawn() {
        for (kind, scales) in [
            (MechanismKind::DiscreteLaplace, [InverseScale::MIN, InverseScale::MAX]),
            (MechanismKind::Skellam, [NoiseDeviation::MIN, NoiseDeviation::MAX]),
        ] {
            for scale in scales {
                let noise = PrivacyNoise::new(kind.with_scale(scale).expect("in range")).expect("drawn");
                let shape = VoteShape::new(250, 2, 2).expect("a shape");
                let (bound, share) = (noise.bound(shape).expect("bounded"), noise.share_of(250).expect("a share"));
                let drawn = share.draw(shape.counts(), &Randomness::simulation([5; 32])).expect("no entropy");
                assert!(drawn.iter().all(|value| value.unsigned_abs() <= bound), "{kind} {scale}");
            }
        }
        let gaussian = PrivacyNoise::new(MechanismKind::Gaussian.with_scale(40.0).expect("a deviation"));
        let error = gaussian.expect_err("continuous").to_string();
        assert_eq!(error, "mechanism \"gaussian\": expected one of discrete-laplace, skellam");
    }

    #[test]
    fn skellam_shares_have_their_variance_and_stay_within_the_bound() {
        let noise = PrivacyNoise::new(MechanismKind::Skellam.with_scale(20.0).expect("a deviation")).expect("drawn");
        let (teachers, shape) = (50, VoteShape::new(50, 400, 10).expect("a shape"));
        let share = noise.share_of(teachers).expect("a share");
        let mut sum = vec![0i64; shape.counts()];
        for teacher in 0..teachers {
            let drawn = share.draw(shape.counts(), &Randomness::simulation([teacher as u8; 32])).expect("no entropy");
            sum.iter_mut().zip(drawn.iter()).for_each(|(sum, drawn)| *sum += drawn);
        }
        let bound = noise.bound(shape).expect("bounded");
        assert!(sum.iter().all(|value| value.unsigned_abs() <= bound));
        // The mean of 4000 squares has a relative deviation of about sqrt(2 / 4000) = 2.2 %; six deviations fail once
        // in 10^9.
        let variance = sum.iter().map(|&value| (value * value) as f64).sum::<f64>() / sum.len() as f64;
        assert!((variance / 400.0 - 1.0).abs() < 0.135, "{variance}");
        assert_eq!(noise.mechanism().total_variation_of_shares(teachers, 1 << 40), Ok(Some(0.0)));
    }
}
