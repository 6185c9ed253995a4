//! The exact comparison of two encrypted counts.
//!
//! A bootstrap sees 4096 buckets with noise of about 5, so one sign bootstrap cannot both tell 0 from 1 and cover
//! thousands of votes. Three can: the difference is read at three scales, the two coarser with a zone around zero (and,
//! the table being negacyclic, around the half-circle) where they answer 0, "don't know". With weights 1, 2 and 4 the
//! coarsest that knows decides the sign of the sum. [`Parameters::TOURNAMENT_128`] gives the margins.

use super::engine::{Engine, Glwe, Lwe, Precision, add, add_constant, scaled, table};
use crate::parameters::Parameters;

/// The weight of the finest sign: `1/32` of the torus, so that sums lie in `+-7/32`.
const WEIGHT: u64 = 1 << 59;

pub(super) fn sign_tables(p: &Parameters) -> [Glwe; 3] {
    let knows = p.dead_zone..p.polynomial_size - p.dead_zone;
    let dead_zone = |weight| table(p, |i| if knows.contains(&i) { weight } else { 0 });
    [table(p, |_| WEIGHT), dead_zone(2 * WEIGHT), dead_zone(4 * WEIGHT)]
}

impl Engine<'_> {
    /// A wide value at one of the three scales (0 finest), under the small key. The index of a contestant vanishes.
    pub(crate) fn at_scale(&self, value: &Lwe, scale: usize) -> Lwe {
        self.key_switch(&scaled(value, self.p.scales[scale]))
    }

    /// From the difference `later - earlier` of two counts at the three scales (small key), the sum of three weighted
    /// signs (big key): an odd multiple of `1/32` from `-7/32` to `7/32`, positive if the later count is strictly larger.
    pub(super) fn compare(&mut self, difference: [Lwe; 3]) -> Lwe {
        let mut sum = self.zero();
        for (scale, mut input) in difference.into_iter().enumerate() {
            add_constant(&mut input, self.tie_break(scale));
            let sign = self.bootstrap(&input, self.signs[scale].clone(), Precision::Coarse);
            add(&mut sum, &sign);
        }
        sum
    }

    /// Minus half a vote: a difference of 0 counts as negative, so that ties go to the earlier class.
    pub(crate) fn tie_break(&self, scale: usize) -> u64 {
        (self.encoding.unit() / 2).wrapping_mul(self.p.scales[scale]).wrapping_neg()
    }
}
