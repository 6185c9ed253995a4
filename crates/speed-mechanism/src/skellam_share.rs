//! The sampler of one teacher's share of Skellam noise.

use std::fmt;

use rand::CryptoRng;

use crate::exact::{Variance, fast_poisson, poisson};
use crate::{MechanismError, NoiseDeviation, NoiseShare};

/// One teacher's share of Skellam noise: the difference of two Poisson variables of rate `sigma^2 / (2 n)`.
///
/// Poisson variables are infinitely divisible, so the sum over `m` of `n` teachers is Skellam noise of variance
/// `m/n sigma^2` exactly, [`Skellam`](crate::Skellam) with `tau = m/n`. `sigma^2` is rounded up to a multiple of 2^-20
/// (2^-10 from 1000 votes on). [`Self::deviation`] returns the rounded deviation; the accountant must use that. The
/// sampler is exact and uses integers only, so it adds nothing to delta. Its time depends on the value drawn, and grows
/// with `sigma / sqrt(n)`.
#[derive(Clone, Copy)]
pub struct SkellamShare {
    variance: Variance,
    teachers: usize,
}

impl SkellamShare {
    /// Creates one teacher's share of noise that is divided between `teachers` teachers and whose sum has deviation
    /// `sigma`, in votes.
    ///
    /// # Errors
    /// [`MechanismError::Teachers`] for no teacher or more than [`NoiseShare::MAX_TEACHERS`].
    pub fn new(sigma: NoiseDeviation, teachers: usize) -> Result<Self, MechanismError> {
        if teachers == 0 || teachers > NoiseShare::MAX_TEACHERS {
            return Err(MechanismError::Teachers { found: teachers, max: NoiseShare::MAX_TEACHERS });
        }
        Ok(Self { variance: Variance::from_deviation(sigma), teachers })
    }

    /// Returns the deviation of the sum of all teachers' shares, in votes: at least the one asked for.
    pub fn deviation(&self) -> f64 {
        self.variance.get().sqrt()
    }

    /// Draws one share.
    pub fn sample(&self, rng: &mut impl CryptoRng) -> i64 {
        let (rate, per) = (self.variance.numerator, 2 * self.variance.denominator * self.teachers as u128);
        poisson(rate, per, rng) as i64 - poisson(rate, per, rng) as i64
    }

    /// Draws the sum of `sharers` shares at once. It has the same distribution as the sum of `sharers` calls of
    /// [`Self::sample`], but the values differ.
    pub fn sample_sum(&self, sharers: usize, rng: &mut impl CryptoRng) -> i64 {
        let (rate, per) =
            (self.variance.numerator * sharers as u128, 2 * self.variance.denominator * self.teachers as u128);
        fast_poisson(rate, per, rng) as i64 - fast_poisson(rate, per, rng) as i64
    }
}

impl fmt::Debug for SkellamShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SkellamShare").field("deviation", &self.deviation()).field("teachers", &self.teachers).finish()
    }
}
