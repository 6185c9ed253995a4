//! Privacy noise of a round: its bound, and the draws of teachers and server.
//!
//! # Centred binomial shares
//! A party that tosses `m` coins sends its heads less `floor(m/2)`. So its share lies in `[-floor(m/2), ceil(m/2)]`
//! with certainty, and its mean is 0, or 1/2 for odd `m`. The accountant counts the noise of `k` parties from half of
//! their coins together: heads less `floor(k m / 2)`. The sum of the centred shares is heads less `k floor(m/2)`. For
//! even `m` the two are equal, however many parties are present. For odd `m` they differ by `floor(k/2)`. All classes
//! have the same difference, so the argmax does not see it, but a threshold would. So an odd `m` is refused with a
//! threshold ([`PrivacyNoise::check_threshold`]).

use speed_core::{EntropyError, Randomness, VoteShape};
use speed_mechanism::{
    BinomialShare, HonestRatio, Mechanism, MechanismError, MechanismKind, NoiseCoins, NoiseDeviation, NoiseGenerator,
    NoiseShare, SkellamShare, skellam_support_bound, sum_support_bound,
};
use zeroize::Zeroizing;

use crate::getters::messages_of;

/// The probability that the privacy noise of any class of any query of a round leaves the range in which the round's
/// encoding is exact.
pub const PRIVACY_NOISE_RANGE_FAILURE: f64 = 1.0 / (1u128 << 64) as f64;

/// A mechanism whose noise can be drawn in shares and encrypted: discrete Laplace, Skellam or binomial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrivacyNoise {
    mechanism: Mechanism,
}

/// The reason why a mechanism cannot provide the privacy noise of a round: it is unknown or not drawn in shares, or a
/// parameter is out of range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PrivacyNoiseError(String);

impl PrivacyNoiseError {
    fn unsupported(found: &str, expected: &[&str]) -> Self {
        Self(format!("mechanism {found:?}: expected one of {}", expected.join(", ")))
    }
}

messages_of!(PrivacyNoiseError, PrivacyNoiseError: MechanismError);

impl PrivacyNoise {
    /// The names of the mechanisms that can be drawn.
    pub const DRAWN: [&str; 3] =
        [MechanismKind::DiscreteLaplace.name(), MechanismKind::Skellam.name(), MechanismKind::Binomial.name()];
    /// The names of the mechanisms of rounds between programs: those that a ledger can charge.
    pub(crate) const NAMES: [&str; 2] = [MechanismKind::DiscreteLaplace.name(), MechanismKind::Binomial.name()];

    /// Checks that the noise of a mechanism can be drawn in shares.
    ///
    /// # Errors
    /// If teachers cannot draw shares of it.
    pub fn new(mechanism: Mechanism) -> Result<Self, PrivacyNoiseError> {
        match mechanism {
            Mechanism::DiscreteLaplace { .. } | Mechanism::Skellam { .. } | Mechanism::Binomial { .. } => {
                Ok(Self { mechanism })
            }
            other => Err(PrivacyNoiseError::unsupported(other.kind().name(), &Self::DRAWN)),
        }
    }

    /// Creates the binomial noise of `teachers` teachers, each of which tosses `coins` coins for each class and query.
    ///
    /// # Errors
    /// If one of the numbers is 0 or too large.
    pub fn of_coins(coins: u64, teachers: usize) -> Result<Self, PrivacyNoiseError> {
        let all = NoiseCoins::new(coins.saturating_mul(teachers as u64))?;
        BinomialShare::new(all, teachers)?;
        Self::new(Mechanism::binomial(all))
    }

    /// Creates the binomial noise of `teachers` teachers with the fewest coins whose deviation is at least `sigma`. With
    /// a threshold, every teacher has an even number of coins.
    ///
    /// # Errors
    /// If that needs too many coins, or the number of teachers is 0 or too large.
    pub fn of_deviation(
        sigma: NoiseDeviation,
        teachers: usize,
        has_threshold: bool,
    ) -> Result<Self, PrivacyNoiseError> {
        let all = NoiseCoins::of_deviation(sigma, teachers, NoiseCoins::step(has_threshold))?;
        BinomialShare::new(all, teachers)?;
        Self::new(Mechanism::binomial(all))
    }

    /// Finds the mechanism of a round between programs by its name and parameter; the parameter of binomial noise is
    /// the number of coins of all teachers.
    ///
    /// # Errors
    /// If there is no such mechanism, and the errors of [`Self::new`].
    pub fn named(name: &str, scale: f64) -> Result<Self, PrivacyNoiseError> {
        let kind = name.parse::<MechanismKind>().ok().filter(|kind| Self::NAMES.contains(&kind.name()));
        let kind = kind.ok_or_else(|| PrivacyNoiseError::unsupported(name, &Self::NAMES))?;
        Self::new(kind.with_scale(scale)?)
    }

    /// Returns the mechanism.
    pub fn mechanism(self) -> Mechanism {
        self.mechanism
    }

    /// Returns the number of coins of each of `teachers` teachers, for each class and query; `None` if the noise is not
    /// binomial. If the teachers cannot share the coins evenly, rounds up.
    pub fn coins_of_teacher(self, teachers: usize) -> Option<u64> {
        match self.mechanism {
            Mechanism::Binomial { coins } => Some(coins.of_teacher(teachers)),
            _ => None,
        }
    }

    /// Checks that this noise of `teachers` teachers allows a threshold: with an even number of coins of each teacher,
    /// the sum of any number of centred shares is the noise that the accountant compares with the threshold.
    ///
    /// # Errors
    /// [`MechanismError::OddCoins`] for binomial noise with an odd number of coins of a teacher.
    pub fn check_threshold(self, teachers: usize) -> Result<(), MechanismError> {
        let odd = self.coins_of_teacher(teachers).filter(|coins| !coins.is_multiple_of(NoiseCoins::step(true)));
        odd.map_or(Ok(()), |found| Err(MechanismError::OddCoins { found }))
    }

    /// Returns the range of one share if `sharers` parties add the noise, with certainty; `None` if a share has no such
    /// range.
    pub(crate) fn share_range(self, sharers: usize) -> Option<(i64, i64)> {
        let coins = self.coins_of_teacher(sharers)?;
        let half = i64::try_from(coins / 2).unwrap_or(i64::MAX);
        Some((-half, half.saturating_add((coins % 2) as i64)))
    }

    /// Returns a bound that the noise of all classes of all queries respects, except with probability
    /// [`PRIVACY_NOISE_RANGE_FAILURE`]. For binomial noise the sum of any number of centred shares is within the bound,
    /// and the bound holds with certainty if it is that of all heads or all tails.
    ///
    /// # Errors
    /// If the noise cannot be bounded.
    pub fn bound(self, shape: VoteShape) -> Result<u64, MechanismError> {
        let (draws, failure) = (shape.counts() as u64, PRIVACY_NOISE_RANGE_FAILURE);
        match self.mechanism {
            Mechanism::Skellam { sigma } => skellam_support_bound(&SkellamShare::new(sigma, 1)?, draws, failure),
            Mechanism::DiscreteLaplace { gamma } => sum_support_bound(gamma, HonestRatio::ALL, draws, failure),
            Mechanism::Binomial { coins } => Ok(binomial_bound(coins, shape)),
            other => unreachable!("{other} was refused"),
        }
    }

    /// Prepares the draws of one of `sharers` parties that add the noise together; a single party draws all of it.
    ///
    /// # Errors
    /// If `sharers` is 0 or too large, or the parties cannot share the coins of binomial noise evenly.
    pub fn share_of(self, sharers: usize) -> Result<PrivacyNoiseShare, MechanismError> {
        Ok(PrivacyNoiseShare(match self.mechanism {
            Mechanism::DiscreteLaplace { gamma } => Sampler::DiscreteLaplace(NoiseShare::new(gamma, sharers)?),
            Mechanism::Skellam { sigma } => Sampler::Skellam(SkellamShare::new(sigma, sharers)?),
            Mechanism::Binomial { coins } => Sampler::Binomial(BinomialShare::new(coins, sharers)?),
            other => unreachable!("{other} was refused"),
        }))
    }
}

/// Bounds the sum of centred binomial shares: the smaller of its largest absolute value and Hoeffding's bound,
/// `P[|X - N/2| >= t] <= 2 exp(-2 t^2 / N)` for the heads `X` of `N` coins, in a union over all counts. Fewer coins have
/// smaller tails, so the bound also holds if not all teachers answer.
fn binomial_bound(coins: NoiseCoins, shape: VoteShape) -> u64 {
    let (all, teachers) = (coins.get(), shape.teachers() as u64);
    let certain = teachers * all.div_ceil(teachers).div_ceil(2);
    // The sum's centre: half a vote for each odd share. (Noise that only a server can draw has one share.)
    let centre = if all.is_multiple_of(2 * teachers) { 0 } else { teachers.div_ceil(2) };
    let logarithm = (2.0 * shape.counts() as f64 / PRIVACY_NOISE_RANGE_FAILURE).ln();
    // One more vote than the real number rounded up covers rounding errors.
    let tail = (all as f64 / 2.0 * logarithm).sqrt().ceil() as u64 + 1;
    certain.min(tail + centre)
}

/// The privacy noise that one of several parties adds.
#[derive(Clone, Debug)]
pub struct PrivacyNoiseShare(Sampler);

#[derive(Clone, Debug)]
enum Sampler {
    DiscreteLaplace(NoiseShare),
    Skellam(SkellamShare),
    Binomial(BinomialShare),
}

impl PrivacyNoiseShare {
    /// Draws `count` independent values. Binomial values are centred: heads less half of the coins, rounded down.
    ///
    /// # Errors
    /// If the operating system provides no randomness.
    pub fn draw(&self, count: usize, randomness: &Randomness) -> Result<Zeroizing<Vec<i64>>, EntropyError> {
        self.draw_of(1, count, randomness)
    }

    /// Draws `count` sums of the shares of `teachers` teachers: the noise of a party. The sums of one teacher are those of
    /// [`Self::draw`].
    pub(crate) fn draw_of(
        &self,
        teachers: usize,
        count: usize,
        randomness: &Randomness,
    ) -> Result<Zeroizing<Vec<i64>>, EntropyError> {
        let mut sums = Zeroizing::new(vec![0; count]);
        let mut generator = NoiseGenerator::new(randomness)?;
        for _ in 0..teachers {
            sums.iter_mut().for_each(|sum| *sum += self.sample(&mut generator));
        }
        Ok(sums)
    }

    /// Draws one teacher's share of one value.
    fn sample(&self, generator: &mut NoiseGenerator) -> i64 {
        match &self.0 {
            Sampler::DiscreteLaplace(share) => share.sample(generator),
            Sampler::Skellam(share) => share.sample(generator),
            Sampler::Binomial(share) => share.sample(generator) - i64::from(share.coins() / 2),
        }
    }
}

#[cfg(test)]
mod tests {
    use speed_mechanism::InverseScale;

    use super::*;

    #[test]
    fn noise_that_cannot_be_drawn_in_shares_is_refused() {
        assert!(PrivacyNoise::named("discrete-laplace", 0.1).is_ok());
        for (name, scale, words) in [
            ("gaussian", 40.0, "mechanism \"gaussian\": expected one of discrete-laplace, binomial"),
            ("skellam", 40.0, "mechanism \"skellam\": expected one of discrete-laplace, binomial"),
            ("Laplace", 0.1, "mechanism \"Laplace\": expected one of discrete-laplace, binomial"),
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
        assert_eq!(error, "mechanism \"gaussian\": expected one of discrete-laplace, skellam, binomial");
    }

    fn binomial(coins: u64, teachers: usize) -> PrivacyNoise {
        PrivacyNoise::of_coins(coins, teachers).expect("valid")
    }

    #[test]
    fn coins_are_shared_evenly() {
        let noise = PrivacyNoise::named("binomial", 1_000.0).expect("valid");
        assert_eq!(noise, binomial(4, 250));
        assert_eq!((noise.coins_of_teacher(250), noise.coins_of_teacher(1)), (Some(4), Some(1_000)));
        assert_eq!(PrivacyNoise::named("discrete-laplace", 0.1).expect("valid").coins_of_teacher(250), None);
        let sigma = NoiseDeviation::new(14.0).expect("in range");
        assert_eq!(PrivacyNoise::of_deviation(sigma, 250, false), Ok(noise));
        // sqrt(750) / 2 = 13.7 is enough without a threshold; with one, the coins of a teacher are even.
        let sigma = NoiseDeviation::new(13.5).expect("in range");
        assert_eq!(PrivacyNoise::of_deviation(sigma, 250, false), Ok(binomial(3, 250)));
        assert_eq!(PrivacyNoise::of_deviation(sigma, 250, true), Ok(noise));
        assert_eq!(noise.check_threshold(250), Ok(()));
        assert_eq!(binomial(3, 250).check_threshold(250), Err(MechanismError::OddCoins { found: 3 }));
        let laplace = PrivacyNoise::named("discrete-laplace", 0.1).expect("valid");
        assert_eq!(laplace.check_threshold(3), Ok(()));
        assert!(matches!(noise.share_of(251), Err(MechanismError::SharedCoins { coins: 1_000, teachers: 251 })));
        for (coins, teachers) in [(0, 250), (4, 0), (1 << 17, 2), (u64::MAX, 250)] {
            assert!(PrivacyNoise::of_coins(coins, teachers).is_err(), "{coins} coins, {teachers} teachers");
        }
    }

    #[test]
    fn centred_shares_of_even_coins_add_up_to_the_accountants_noise() {
        let shape = VoteShape::new(1, 2_000, 2).expect("a shape");
        for (coins, teachers, present) in [(4, 6, 6), (5, 6, 6), (5, 7, 7), (1, 7, 4), (3, 5, 1)] {
            let noise = binomial(coins, teachers);
            let share = noise.share_of(teachers).expect("a share");
            let (least, most) = noise.share_range(teachers).expect("bounded");
            assert_eq!((least, most), (-((coins / 2) as i64), coins.div_ceil(2) as i64));
            let mut sum = vec![0; shape.counts()];
            for teacher in 0..present {
                let drawn = share.draw(sum.len(), &Randomness::simulation([teacher as u8; 32])).expect("no entropy");
                assert!([least, most].iter().all(|end| drawn.contains(end)), "{coins} coins reach both ends");
                assert!(drawn.iter().all(|value| (least..=most).contains(value)));
                sum.iter_mut().zip(drawn.iter()).for_each(|(sum, drawn)| *sum += drawn);
            }
            // Heads less k floor(m/2), against heads less floor(k m / 2).
            let (k, m) = (present as i64, coins as i64);
            let difference = k * m / 2 - k * (m / 2);
            assert!(difference == 0 || noise.check_threshold(teachers).is_err(), "{coins} {present}");
            // The mean of 4000 sums of k m coins, less 0 or 1/2: six deviations fail once in 10^9.
            let mean = sum.iter().map(|&value| (value - difference) as f64).sum::<f64>() / 4e3;
            let expected = 0.5 * ((k * m) % 2) as f64;
            assert!((mean - expected).abs() < 6.0 * ((k * m) as f64).sqrt() / 2.0 / 4e3_f64.sqrt(), "{mean}");
        }
        // A server that draws all noise has one share, which is counted from half of its coins.
        assert_eq!(binomial(5, 7).share_range(1), Some((-17, 18)));
    }

    #[test]
    fn the_bound_of_binomial_noise_is_certain_or_hoeffdings() {
        let bound = |coins, teachers| {
            let shape = VoteShape::new(teachers, 100, 10).expect("a shape");
            binomial(coins, teachers).bound(shape).expect("bounded")
        };
        // All heads: teachers times half of the coins, rounded up.
        assert_eq!([bound(1, 2), bound(4, 20), bound(5, 20)], [2, 40, 60]);
        // sqrt(1000 / 2 * ln(2 * 1000 * 2^64)) = 161.2.
        assert_eq!(bound(4, 250), 163);
        // sqrt(1250 / 2 * ln(2 * 1000 * 2^64)) = 180.2, and 125 for the centre of 250 odd shares.
        assert_eq!(bound(5, 250), 182 + 125);
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
