//! The exact comparison of two encrypted counts.
//!
//! A bootstrap sees 4096 buckets with noise of about 5, so one sign bootstrap cannot both tell 0 from 1 and cover
//! thousands of votes. Three can: the difference is read at three scales, the two coarser with a zone around zero (and,
//! the table being negacyclic, around the half-circle) where they answer 0, "don't know". With weights 1, 2 and 4 the
//! coarsest that knows decides the sign of the sum. [`crate::Parameters::TOURNAMENT_128`] gives the margins.

use super::engine::{Engine, Glwe, Lwe, Precision, add, add_constant, scaled, table};
use crate::parameters::Parameters;

/// The weight of the finest sign: `1/32` of the torus, so that sums lie in `+-7/32`.
const WEIGHT: u64 = 1 << 59;

fn sign_tables(p: &Parameters) -> [Glwe; 3] {
    let knows = p.dead_zone..p.polynomial_size - p.dead_zone;
    let dead_zone = |weight| table(p, |i| if knows.contains(&i) { weight } else { 0 });
    [table(p, |_| WEIGHT), dead_zone(2 * WEIGHT), dead_zone(4 * WEIGHT)]
}

impl Engine<'_> {
    /// Wide values at the three scales, finest first, under the small key: three outputs an input. The index of a
    /// contestant vanishes.
    pub(super) fn at_scales(&self, values: &[Lwe]) -> Vec<Lwe> {
        let scales = self.p.scales;
        let scaled: Vec<Lwe> = values.iter().flat_map(|v| scales.map(|scale| scaled(v, scale))).collect();
        self.key_switch(&scaled)
    }

    /// From each difference `later - earlier` of two counts at the three scales (small key; three inputs a difference),
    /// the sum of three weighted signs (big key): an odd multiple of `1/32` from `-7/32` to `7/32`, positive if the
    /// later count is strictly larger.
    pub(super) fn compare(&mut self, mut differences: Vec<Lwe>) -> Vec<Lwe> {
        for scales in differences.chunks_exact_mut(3) {
            for (input, scale) in scales.iter_mut().zip(self.p.scales) {
                // Minus half a vote: a difference of 0 counts as negative, so that ties go to the earlier class.
                add_constant(input, (self.encoding.unit() / 2).wrapping_mul(scale).wrapping_neg());
            }
        }
        let tables: Vec<Glwe> = sign_tables(self.p).into_iter().cycle().take(differences.len()).collect();
        let signs = self.bootstrap(&differences, &tables, Precision::Coarse);
        signs
            .chunks_exact(3)
            .map(|signs| {
                let mut sum = self.zero();
                signs.iter().for_each(|sign| add(&mut sum, sign));
                sum
            })
            .collect()
    }
}
