//! The exact comparison of two encrypted counts.
//!
//! A bootstrap sees 4096 buckets with noise of about 5, so one sign bootstrap cannot both distinguish 0 from 1 and
//! cover thousands of votes. Several can: the difference is read at several scales. Every scale but the finest answers
//! 0 (undecided) in a zone around zero and, because the table is negacyclic, around the half-circle. With weights 1,
//! 2, 4, .. the coarsest scale with a nonzero answer decides the sign of the sum. [`crate::Encoding`] gives the
//! margins.

use super::engine::{Engine, Precision};
use super::lwe::{Glwe, Lwe, add, add_constant, scaled, table};
use crate::scales::DEAD_ZONE;

/// The unit of sums of signs: 64 buckets, a 64th of the torus. Eight units are an eighth of the torus, so the signs of
/// three scales (7 steps at most) leave room for a second table entry, and the signs of four scales (15 steps) for one
/// entry only.
pub(crate) const SUM_STEP: u64 = 1 << 58;

impl Engine<'_> {
    /// Key-switches each count at all scales of the round to the small key, finest scale first: one output per input
    /// and scale.
    pub(super) fn at_scales(&mut self, counts: &[Lwe]) -> Vec<Lwe> {
        let scales = self.layout.scales();
        let scaled: Vec<Lwe> =
            counts.iter().flat_map(|count| scales.clone().map(|scale| scaled(count, scale))).collect();
        self.key_switch(&scaled)
    }

    /// Computes from each difference `later - earlier` of two counts at all scales (small key) the sum of weighted
    /// signs (big key): an odd multiple of [`SUM_STEP`], positive if the later count is strictly larger.
    pub(super) fn compare(&mut self, mut differences: Vec<Lwe>) -> Vec<Lwe> {
        let scales = self.layout.scales();
        for scaled in differences.chunks_exact_mut(scales.len()) {
            for (input, scale) in scaled.iter_mut().zip(scales.clone()) {
                // Subtracts half a vote: a difference of 0 counts as negative, so ties go to the earlier class.
                add_constant(input, (self.layout.unit() / 2).wrapping_mul(scale).wrapping_neg());
            }
        }
        let tables: Vec<Glwe> = self.sign_tables().into_iter().cycle().take(differences.len()).collect();
        let signs = self.bootstrap(&differences, &tables, Precision::Coarse);
        let sum = |signs: &[Lwe]| {
            let mut sum = self.constant(0);
            signs.iter().for_each(|sign| add(&mut sum, sign));
            sum
        };
        signs.chunks_exact(scales.len()).map(sum).collect()
    }

    fn sign_tables(&self) -> Vec<Glwe> {
        let knows = DEAD_ZONE..self.p.polynomial_size - DEAD_ZONE;
        let sign =
            |scale: usize| table(self.p, |i| if scale == 0 || knows.contains(&i) { SUM_STEP << scale } else { 0 });
        (0..self.layout.scales().len()).map(sign).collect()
    }
}
