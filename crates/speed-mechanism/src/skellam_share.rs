//! The sampler of one teacher's share of Skellam noise.

use std::fmt;

use rand::CryptoRng;

use crate::exact::{Variance, fast_poisson, poisson};
use crate::{MechanismError, NoiseDeviation, NoiseShare};

/// One teacher's share of Skellam noise: the difference of two Poisson variables of rate `sigma^2 / (2 n)`.
///
/// Poisson variables are infinitely divisible, so the sum over `m` of `n` teachers is Skellam noise of variance `m/n
/// sigma^2` exactly, [`Skellam`](crate::Skellam) with `tau = m/n`. `sigma^2` is rounded up to a multiple of 2^-20 (2^-10 from
/// 1000 votes on), and [`Self::deviation`] says to what; the accountant must use that. The sampler is exact, with whole
/// numbers only, so it costs nothing of delta; its time depends on what it draws, and grows with `sigma / sqrt(n)`.
#[derive(Clone, Copy)]
pub struct SkellamShare {
    variance: Variance,
    teachers: usize,
}

impl SkellamShare {
    /// Creates the share of one of `teachers` teachers of noise whose sum has deviation `sigma`.
    ///
    /// # Errors
    /// [`MechanismError::Teachers`] for no teacher or more than [`NoiseShare::MAX_TEACHERS`].
    pub fn new(sigma: NoiseDeviation, teachers: usize) -> Result<Self, MechanismError> {
        if teachers == 0 || teachers > NoiseShare::MAX_TEACHERS {
            return Err(MechanismError::Teachers { found: teachers, max: NoiseShare::MAX_TEACHERS });
        }
        Ok(Self { variance: Variance::of(sigma), teachers })
    }

    /// Returns the deviation of the sum of all teachers' shares; at least that asked for.
    #[must_use]
    pub fn deviation(&self) -> f64 {
        self.variance.get().sqrt()
    }

    /// Draws one share.
    pub fn sample(&self, rng: &mut impl CryptoRng) -> i64 {
        let (rate, per) = (self.variance.numerator, 2 * self.variance.denominator * self.teachers as u128);
        poisson(rate, per, rng) as i64 - poisson(rate, per, rng) as i64
    }

    /// Draws the sum of `sharers` shares at once: it has the law of as many calls of [`Self::sample`], not their values.
    pub fn sample_sum(&self, sharers: usize, rng: &mut impl CryptoRng) -> i64 {
        let (rate, per) =
            (self.variance.numerator * sharers as u128, 2 * self.variance.denominator * self.teachers as u128);
        fast_poisson(rate, per, rng) as i64 - fast_poisson(rate, per, rng) as i64
    }

    /// Fills `shares` with independent draws.
    pub fn fill(&self, rng: &mut impl CryptoRng, shares: &mut [i64]) {
        for share in shares {
            *share = self.sample(rng);
        }
    }
}

impl fmt::Debug for SkellamShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SkellamShare").field("deviation", &self.deviation()).field("teachers", &self.teachers).finish()
    }
}
