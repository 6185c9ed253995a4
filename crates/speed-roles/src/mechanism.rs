//! The noise of a round, as its file names it.

use speed_core::Randomness;
use speed_mechanism::{HonestRatio, InverseScale, MechanismError, NoiseGenerator, NoiseShare, sum_support_bound};
use zeroize::Zeroizing;

/// Probability that the noise of any class of any query leaves its bound.
const BOUND_FAILURE: f64 = 1.0 / (1u128 << 64) as f64;

/// Which noise a round has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mechanism {
    /// Discrete Laplace noise of inverse scale `gamma` in every class of every query.
    DiscreteLaplace {
        /// Inverse scale, per vote.
        gamma: InverseScale,
    },
}

impl Mechanism {
    /// Names of all mechanisms.
    pub const NAMES: [&str; 1] = ["discrete-laplace"];

    /// The mechanism with this name and inverse scale.
    ///
    /// # Errors
    /// If there is no such mechanism, or `gamma` is out of the range that can be sampled.
    pub fn new(name: &str, gamma: f64) -> Result<Self, crate::RolesError> {
        if name != Self::NAMES[0] {
            let known = Self::NAMES.join(", ");
            return Err(crate::RolesError::Options(format!("mechanism {name:?}: expected one of {known}")));
        }
        let gamma = InverseScale::new(gamma)?;
        // Work grows as 1/gamma: a file of a stranger must not be able to ask for hours.
        if gamma.get() < NoiseShare::MIN_SCALE {
            let min = NoiseShare::MIN_SCALE;
            return Err(MechanismError::NoiseTooWide { found: gamma.get(), min }.into());
        }
        Ok(Self::DiscreteLaplace { gamma })
    }

    /// The name in commands and files.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES[0]
    }

    /// Inverse scale, per vote.
    #[must_use]
    pub fn gamma(self) -> f64 {
        let Self::DiscreteLaplace { gamma } = self;
        gamma.get()
    }

    /// Statistical distance from exact noise of so many values of a teacher's shares together.
    ///
    /// # Errors
    /// If the noise cannot be sampled.
    pub fn sampling_distance(self, sharers: usize, draws: usize) -> Result<f64, MechanismError> {
        let Self::DiscreteLaplace { gamma } = self;
        Ok(NoiseShare::new(gamma, sharers)?.total_variation_of_draws(draws as u64))
    }

    /// Name and parameters, as they enter the round's id: equal only for equal mechanisms.
    #[must_use]
    pub fn description(self) -> String {
        format!("{} gamma={}", self.name(), self.gamma())
    }

    /// A bound that the noise of all `sums` (queries times classes) respects, except with a probability of 2^-64.
    ///
    /// # Errors
    /// If the noise cannot be bounded.
    pub fn bound(self, sums: usize) -> Result<u64, MechanismError> {
        let Self::DiscreteLaplace { gamma } = self;
        sum_support_bound(gamma, HonestRatio::ALL, sums as u64, BOUND_FAILURE)
    }

    /// Draws `count` independent values of the noise that `sharers` add together: a teacher's shares, or with one sharer
    /// the whole noise.
    ///
    /// # Errors
    /// If the noise cannot be sampled, or the operating system gives no randomness.
    pub fn draw(self, sharers: usize, count: usize, source: Randomness) -> Result<Zeroizing<Vec<i64>>, MechanismError> {
        let Self::DiscreteLaplace { gamma } = self;
        let mut noise = Zeroizing::new(vec![0; count]);
        NoiseShare::new(gamma, sharers)?.fill(&mut NoiseGenerator::new(&source)?, &mut noise);
        Ok(noise)
    }
}
