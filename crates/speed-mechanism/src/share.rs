//! The sampler of one teacher's share of integer noise.

use std::fmt;

use rand::CryptoRng;

use crate::fixed::Fixed;
use crate::parameters::check_teachers;
use crate::share_pmf::SharePmf;
use crate::{InverseScale, MechanismError};

/// The largest accepted distance of the table from the exact distribution, per draw.
const MAX_DISTANCE: f64 = 1.0 / (1u128 << 100) as f64;
/// The table leaves out a probability of at most 2^-116.
const BITS_LEFT_OUT: f64 = 116.0;

/// One teacher's share of the noise of one class: the integer `A - B`, with `A` and `B` independent negative binomial
/// variables of shape `1/n` and `p = e^-gamma`.
///
/// The sum over all `n` teachers is the discrete Laplace distribution, `P[X = k] = (1 - p)/(1 + p) p^|k|`. The sum over
/// `m` of them has shape `m/n`, [`DiscreteLaplace`](crate::DiscreteLaplace).
///
/// **Method.** A table of 128-bit cumulative probabilities of the magnitude is inverted with 128 random bits, and the
/// sign is random: every draw takes 192 random bits. The table comes from outward-rounded 192-bit arithmetic, so its
/// distance from the exact distribution is certified, [`Self::total_variation`]. Sampling a Gamma or negative binomial
/// variable of shape 1/250 in floating point has no such bound (`U^(1/shape)` underflows; Mironov 2012 describes the
/// other defects).
///
/// **Time.** A draw reads every entry of the table in order and counts with comparisons. It takes the same steps and
/// touches the same memory for every value drawn, and the source has no branch on a secret. That is not a proof about
/// the machine code.
#[derive(Clone)]
pub struct NoiseShare {
    /// `thresholds[m] = P[|share| <= m]` in units of 2^-128, split into two halves so that the scan vectorises.
    upper: Vec<u64>,
    lower: Vec<u64>,
    distance: f64,
}

impl NoiseShare {
    /// The largest number of teachers.
    pub const MAX_TEACHERS: usize = crate::parameters::MAX_TEACHERS;

    /// Creates one teacher's share of the noise of `teachers` teachers, with inverse scale `gamma` (per vote).
    ///
    /// # Errors
    /// [`MechanismError::Teachers`] for no teacher or more than [`Self::MAX_TEACHERS`],
    /// [`MechanismError::TotalVariation`] if the table is not certified to 2^-100.
    pub fn new(gamma: InverseScale, teachers: usize) -> Result<Self, MechanismError> {
        check_teachers(teachers)?;
        let scale = gamma.get();
        // P_k <= P_0 p^k, so the magnitudes beyond K have a probability of at most 2 p^(K+1) / (1 - p).
        let largest = (BITS_LEFT_OUT * std::f64::consts::LN_2 - (-(-scale).exp_m1()).ln()) / scale;
        let pmf = SharePmf::new(scale, teachers as u32, (largest.ceil() as u32).max(1));

        let mut cumulated = Fixed::ZERO;
        let mut before = 0u128;
        let mut distance = pmf.beyond;
        let mut thresholds = Vec::with_capacity(pmf.probabilities.len());
        let last = pmf.probabilities.len() - 1;
        for (magnitude, probability) in pmf.probabilities.iter().enumerate() {
            let signs = |p: Fixed| if magnitude == 0 { p } else { p.add(p) };
            cumulated = cumulated.add(signs(probability.low));
            // The last magnitude takes the remaining probability, so that the table sums to one.
            let in_table = if magnitude == last {
                Fixed::ONE.saturating_sub(Fixed::from_fraction(before))
            } else {
                let threshold = cumulated.to_fraction();
                thresholds.push(threshold);
                Fixed::from_fraction(threshold - before)
            };
            before = cumulated.to_fraction();
            // The total variation distance is the sum of the amounts by which entries of the table are too small,
            // because both distributions sum to one.
            distance = distance.add(signs(probability.high).saturating_sub(in_table));
        }
        let distance = distance.to_f64_up();
        if distance > MAX_DISTANCE {
            return Err(MechanismError::TotalVariation { found: distance, max: MAX_DISTANCE });
        }
        let (upper, lower) = thresholds.iter().map(|&threshold| ((threshold >> 64) as u64, threshold as u64)).unzip();
        Ok(Self { upper, lower, distance })
    }

    /// Returns the largest possible magnitude of a draw.
    pub fn max_magnitude(&self) -> u64 {
        self.upper.len() as u64
    }

    /// Returns a certified upper bound of the total variation distance between one draw and the exact distribution; at
    /// most 2^-100.
    pub fn total_variation(&self) -> f64 {
        self.distance
    }

    /// Returns an upper bound of the total variation distance of `draws` independent draws together, which the
    /// accountant charges to delta. The number of draws of a run is the product of queries, classes and noisy teachers.
    pub fn total_variation_of_draws(&self, draws: u64) -> f64 {
        self.distance * draws as f64 * (1.0 + 4.0 * f64::EPSILON)
    }

    /// Returns the probability that [`Self::sample`] returns `value`, from the table, to double precision.
    pub fn pmf(&self, value: i64) -> f64 {
        let threshold = |magnitude: u64| match usize::try_from(magnitude) {
            Ok(m) if m < self.upper.len() => u128::from(self.upper[m]) << 64 | u128::from(self.lower[m]),
            _ => u128::MAX,
        };
        let magnitude = value.unsigned_abs();
        if magnitude > self.max_magnitude() {
            return 0.0;
        }
        let below = magnitude.checked_sub(1).map_or(0, threshold);
        let probability = (threshold(magnitude) - below) as f64 * 2f64.powi(-128);
        if magnitude == 0 { probability } else { probability / 2.0 }
    }

    /// Draws one share.
    pub fn sample(&self, rng: &mut impl CryptoRng) -> i64 {
        let (upper, lower, sign) = (rng.next_u64(), rng.next_u64(), rng.next_u64() & 1);
        // The magnitude is the number of thresholds that are not above the random fraction.
        let magnitude: u64 = self
            .upper
            .iter()
            .zip(&self.lower)
            .map(|(&u, &l)| u64::from(upper > u) | (u64::from(upper == u) & u64::from(lower >= l)))
            .sum();
        // Two's complement: (m xor -1) + 1 = -m, without a branch.
        let mask = (sign as i64).wrapping_neg();
        (magnitude as i64 ^ mask).wrapping_sub(mask)
    }

    /// Draws the same share as [`Self::sample`], by binary search of the table. This takes far less time, but the time
    /// reveals something about the share: only for noise that protects no one, as in an audit.
    pub fn sample_openly(&self, rng: &mut impl CryptoRng) -> i64 {
        let (upper, lower, sign) = (rng.next_u64(), rng.next_u64(), rng.next_u64() & 1);
        let first = self.upper.partition_point(|&u| u < upper);
        let equal = self.upper[first..].partition_point(|&u| u == upper);
        let magnitude = (first + self.lower[first..first + equal].partition_point(|&l| l <= lower)) as i64;
        if sign == 1 { -magnitude } else { magnitude }
    }
}

impl fmt::Debug for NoiseShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NoiseShare")
            .field("max_magnitude", &self.max_magnitude())
            .field("total_variation", &self.distance)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_the_reference_digits() {
        // P[|share| <= m] in units of 2^-128, computed with mpmath at 70 digits from the hypergeometric form of the
        // probabilities.
        #[rustfmt::skip]
        let reference: [(f64, usize, usize, u128); 10] = [
            (0.1, 250, 0, 333_944_989_722_238_099_828_687_392_614_967_588_714),
            (0.1, 250, 1, 336_368_329_380_055_940_908_448_587_843_934_214_602),
            (0.1, 250, 10, 339_733_312_657_098_107_893_813_860_277_240_463_982),
            (0.1, 250, 200, 340_282_366_920_681_533_323_396_499_602_391_925_183),
            (1.0, 3, 0, 254_649_691_663_224_956_746_649_754_283_452_123_516),
            (1.0, 3, 1, 318_109_324_802_544_238_518_103_805_703_945_242_036),
            (1.0, 3, 10, 340_281_362_410_342_057_508_026_761_048_819_385_867),
            (1.0, 3, 40, 340_282_366_920_938_463_423_045_378_730_397_258_327),
            (0.05, 1000, 0, 338_233_275_306_655_674_999_361_426_467_705_991_206),
            (0.05, 1000, 3, 339_378_540_071_341_286_979_176_440_211_084_273_013),
        ];
        for (gamma, teachers, magnitude, threshold) in reference {
            let share = NoiseShare::new(InverseScale::new(gamma).expect("valid"), teachers).expect("valid");
            let found = u128::from(share.upper[magnitude]) << 64 | u128::from(share.lower[magnitude]);
            let off = found.abs_diff(threshold) as f64 * 2f64.powi(-128);
            assert!(found <= threshold, "thresholds come from lower bounds");
            assert!(off <= share.total_variation(), "gamma {gamma}, n {teachers}, m {magnitude}: off by {off:e}");
        }
    }
}
