//! The sampler of one teacher's share of Skellam noise.

use rand::CryptoRng;

use crate::exact::{MAX_IN_HALVES, MAX_SMALL, Variance, poisson};
use crate::parameters::check_teachers;
use crate::{MechanismError, NoiseDeviation};

/// One teacher's share of Skellam noise: the difference of two Poisson variables of rate `sigma^2 / (2 n)`.
///
/// Poisson variables are infinitely divisible, so the sum over `m` of `n` teachers is Skellam noise of variance
/// `m/n sigma^2` exactly, [`Skellam`](crate::Skellam) with `tau = m/n`. `sigma^2` is rounded up to a multiple of 2^-20
/// (2^-10 from 1000 votes on). [`Self::deviation`] returns the rounded deviation; the accountant must use that. The
/// sampler is exact and uses integers only, so it adds nothing to delta. Its time depends on the value drawn, and grows
/// with `sigma / sqrt(n)`.
#[derive(Clone, Copy, Debug)]
pub struct SkellamShare {
    variance: Variance,
    teachers: usize,
}

impl SkellamShare {
    /// Creates one teacher's share of noise that is divided between `teachers` teachers and whose sum has deviation
    /// `sigma`, in votes.
    ///
    /// # Errors
    /// [`MechanismError::Teachers`] for no teacher or more than [`NoiseShare::MAX_TEACHERS`](crate::NoiseShare::MAX_TEACHERS).
    pub fn new(sigma: NoiseDeviation, teachers: usize) -> Result<Self, MechanismError> {
        check_teachers(teachers)?;
        Ok(Self { variance: Variance::from_deviation(sigma), teachers })
    }

    /// Returns the deviation of the sum of all teachers' shares, in votes: at least the one asked for.
    pub fn deviation(&self) -> f64 {
        self.variance.get().sqrt()
    }

    /// Draws one share.
    pub fn sample(&self, rng: &mut impl CryptoRng) -> i64 {
        self.difference(MAX_IN_HALVES, 1, rng)
    }

    /// Draws the sum of `sharers` shares at once. It has the same distribution as the sum of `sharers` calls of
    /// [`Self::sample`], but the values differ.
    pub fn sample_sum(&self, sharers: usize, rng: &mut impl CryptoRng) -> i64 {
        self.difference(MAX_SMALL, sharers, rng)
    }

    fn difference(&self, in_halves: u128, sharers: usize, rng: &mut impl CryptoRng) -> i64 {
        let Variance { numerator, denominator } = self.variance;
        let (rate, per) = (numerator * sharers as u128, 2 * denominator * self.teachers as u128);
        let mut draw = || poisson(in_halves, rate, per, rng) as i64;
        draw() - draw()
    }
}
