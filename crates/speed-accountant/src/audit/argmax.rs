//! The audited mechanism: teachers' votes, each teacher's own share of noise, the noisy argmax.

use rand::CryptoRng;
use speed_mechanism::{
    BinomialShare, DiscreteGaussian, GeneralisedLaplace, HonestRatio, InverseScale, MechanismError, NoiseShare,
    SkellamShare,
};

/// The source of each teacher's noise in an audit.
#[derive(Clone, Debug)]
pub enum ShareNoise {
    /// The project's certified sampler.
    Exact(Box<NoiseShare>),
    /// The paper's published code (erratum 14): continuous noise, truncated to an integer before it is scaled. It is
    /// not private as claimed; for audits only.
    Truncated(TruncatedShare),
    /// Exact shares of Skellam noise. The sum of all noisy teachers' shares is drawn at once: it has the same
    /// distribution.
    Skellam(SkellamShare),
    /// The coins of binomial noise, of all noisy teachers at once. Half of them, rounded down, is taken off the heads, as
    /// a threshold requires.
    Binomial(BinomialShare),
    /// Discrete Gaussian noise that one party draws for all noisy teachers together, since it cannot be divided into
    /// shares. Its deviation is that of the sum of the shares.
    Gaussian(DiscreteGaussian),
}

/// A share of continuous Laplace noise, truncated towards zero: the distribution after `(int)` is applied to it. The
/// erased votes of the published code are not included.
#[derive(Clone, Debug)]
pub struct TruncatedShare {
    /// `P[|share| <= m]` for `m = 0, 1, ...`.
    cumulative: Vec<f64>,
}

impl TruncatedShare {
    /// Creates one teacher's share of the noise of `teachers` teachers, with inverse scale `gamma`.
    ///
    /// # Errors
    /// [`MechanismError::Teachers`] for no teacher.
    pub fn new(gamma: InverseScale, teachers: usize) -> Result<Self, MechanismError> {
        if teachers == 0 {
            return Err(MechanismError::Teachers { found: 0, max: NoiseShare::MAX_TEACHERS });
        }
        let noise = GeneralisedLaplace::new(gamma, 1.0 / teachers as f64)?;
        let last = (40.0 / gamma.get()).ceil() as u32 + 1;
        Ok(Self { cumulative: (1..=last).map(|m| 1.0 - 2.0 * noise.survival(f64::from(m))).collect() })
    }

    /// Returns the probability of `value`.
    pub fn pmf(&self, value: i64) -> f64 {
        let m = value.unsigned_abs() as usize;
        let below = |m: usize| self.cumulative.get(m).copied().unwrap_or(1.0);
        if m == 0 { below(0) } else { (below(m) - below(m - 1)) / 2.0 }
    }

    fn sample(&self, rng: &mut impl CryptoRng) -> i64 {
        let uniform = (rng.next_u64() >> 11) as f64 * 2f64.powi(-53);
        let magnitude = self.cumulative.partition_point(|&below| below <= uniform) as i64;
        if rng.next_u64() & 1 == 1 { -magnitude } else { magnitude }
    }
}

/// The noisy argmax of one row of votes: every noisy teacher draws its share of every class's noise.
#[derive(Clone, Debug)]
pub struct NoisyArgmax {
    noise: ShareNoise,
    noisy_teachers: usize,
    threshold: Option<i64>,
}

impl NoisyArgmax {
    /// Creates the argmax of `teachers` teachers, a ratio `tau` of whom add noise. With a threshold there is one more
    /// answer after the last class: "no answer".
    ///
    /// # Errors
    /// [`MechanismError::NoNoisyTeacher`] if no teacher would add noise.
    pub fn new(
        noise: ShareNoise,
        teachers: usize,
        tau: HonestRatio,
        threshold: Option<i64>,
    ) -> Result<Self, MechanismError> {
        Ok(Self { noise, noisy_teachers: tau.noisy_teachers(teachers)?, threshold })
    }

    /// Returns the number of values drawn for each class in one answer.
    pub fn draws_of_a_class(&self) -> usize {
        match self.noise {
            ShareNoise::Exact(_) | ShareNoise::Truncated(_) => self.noisy_teachers,
            ShareNoise::Skellam(_) | ShareNoise::Gaussian(_) | ShareNoise::Binomial(_) => 1,
        }
    }

    /// Draws all shares and answers: the lowest class with the largest noisy count, or `counts.len()` for no answer.
    pub fn answer(&self, counts: &[i64], rng: &mut impl CryptoRng) -> usize {
        let mut best = (i64::MIN, counts.len());
        for (class, count) in counts.iter().enumerate() {
            let noise: i64 = match &self.noise {
                ShareNoise::Exact(share) => (0..self.noisy_teachers).map(|_| share.sample_openly(rng)).sum(),
                ShareNoise::Truncated(share) => (0..self.noisy_teachers).map(|_| share.sample(rng)).sum(),
                ShareNoise::Skellam(share) => share.sample_sum(self.noisy_teachers, rng),
                ShareNoise::Gaussian(noise) => noise.sample(rng),
                ShareNoise::Binomial(share) => {
                    let coins = i64::from(share.coins()) * self.noisy_teachers as i64;
                    share.sample_sum(self.noisy_teachers, rng) - coins / 2
                }
            };
            if count + noise > best.0 {
                best = (count + noise, class);
            }
        }
        if self.threshold.is_some_and(|threshold| best.0 < threshold) { counts.len() } else { best.1 }
    }
}
