//! Variances, by formula, of every operation of the circuits, and the failure bounds that follow.
//!
//! Variances are in squared torus units (the torus is `2^64` units) unless they say buckets. Each formula is for binary
//! keys, one mask polynomial, and TUniform(b) noise, whose variance is `(2^(2b+1) + 1) / 6`. They are those of tfhe-rs
//! (core_crypto::commons::noise_formulas), written out for this crate's keys; a test compares the two.

use crate::circuit::Circuit;
use crate::parameters::{Decomposition, Parameters};

const TORUS: f64 = 18_446_744_073_709_551_616.0;

/// Upper bounds on failure, as base-2 logarithms of probabilities, from the noise model: phase errors are Gaussian with
/// the variances of the formulas (as in tfhe's own parameter sets).
///
/// With `s_j` the standard deviation at the input of scale `j` in buckets, `x_j = D u_j` the noiseless phase of a
/// difference `D` at its unit `u_j`, dead zone `t`, half-circle `N`, and `Q` the Gaussian tail, a comparison errs only
/// if the coarsest scale has the wrong sign, or does not know while the middle one has the wrong sign, or neither knows
/// and the finest is wrong. Without assuming independence,
///
/// ```text
/// P(D)    <= W_2 + min(Z_2, W_1 + min(Z_1, W_0)) + C
/// W_j     =  Q((x_j + t_j) / s_j) + Q((N + t_j - x_j) / s_j)     wrong sign     (t_0 = 0; finest: Q(x/s) + Q((N-x)/s))
/// Z_j     =  Q((x_j - t_j) / s_j) + Q((N - t_j - x_j) / s_j)     not the right sign
/// C       =  2 Q(128 / s_c)                                      the sum of the three signs is misread
/// ```
/// and `comparison` is the maximum over all `D` from 1/2 to `range + 1/2`; in a tournament, in the last round, where
/// noise is largest. The winner takes part in `log2 K` matches, but every match can be lost for it only once, and a query
/// has `K - 1` matches: `query` is the union bound over `K - 1` comparisons and the read-out. In all pairs, the result is
/// right if the winner's `K - 1` comparisons and the `K` thresholds are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FailureBound {
    /// log2 of the failure probability of one comparison, for the worst difference in the worst round.
    pub comparison_log2: f64,
    /// log2 of the failure probability of the read-out: of the winner's index (tournament), or of the thresholds on the
    /// numbers of wins (all pairs).
    pub read_out_log2: f64,
    /// log2 of the failure probability of one query: union bound over comparisons and read-out.
    pub query_log2: f64,
}

/// Variances of one parameter set.
pub(crate) struct NoiseModel<'a> {
    p: &'a Parameters,
}

impl<'a> NoiseModel<'a> {
    pub(crate) fn new(p: &'a Parameters) -> Self {
        Self { p }
    }

    fn ring(&self) -> f64 {
        self.p.polynomial_size as f64
    }

    /// One bucket in torus units.
    pub(crate) fn bucket(&self) -> f64 {
        TORUS / (2.0 * self.ring())
    }

    /// A sum of `teachers` public-key encryptions `(A r + e_1, B r + e_2 + m)` with `B = A s + e`: the phase error is
    /// `e r + e_2 - e_1 s`. The binary `r` has mean 1/2, which makes `e r` biased by a number that depends on the key
    /// (through `e`) and adds up over teachers; over keys its variance is `N/4` that of `e`.
    pub(crate) fn fresh_sum(&self, teachers: usize) -> f64 {
        let n = teachers as f64;
        let noise = t_uniform(self.p.glwe_noise_log);
        let ring = self.ring();
        n * n * ring / 4.0 * noise + n * noise * (ring / 4.0 + ring / 2.0 + 1.0)
    }

    /// A key switch: `l N` products of a digit and a noisy key bit, and the part of the mask that digits do not reach,
    /// against half of the key bits.
    pub(crate) fn key_switch(&self) -> f64 {
        let d = self.p.key_switch;
        self.ring() * (d.levels as f64 * digit(d) * t_uniform(self.p.lwe_noise_log) + unreached(d) / 2.0)
    }

    /// The centred modulus switch to `2N` buckets: every mask element is rounded, against key bits of +-1/2 after
    /// centring. In torus units.
    pub(crate) fn modulus_switch(&self) -> f64 {
        self.p.lwe_dimension as f64 / 48.0 * self.bucket().powi(2)
    }

    /// The output of a bootstrap: `n` external products, each with `2 l N` digit times noise products, unreached parts
    /// of body and mask (half of the key bits, and half of the `n` rotations happen), and the rounding of the 53-bit
    /// Fourier transform (tfhe's fit).
    pub(crate) fn bootstrap(&self, d: Decomposition) -> f64 {
        let (n, ring, levels) = (self.p.lwe_dimension as f64, self.ring(), d.levels as f64);
        let fourier = 0.00705
            * 2_f64.powi(2 * (64 - 53 + d.base_log as i32))
            * levels.powf(1.01827)
            * ring.powf(2.22003)
            * 2_f64.powf(1.01827);
        let key = 2.0 * levels * ring * digit(d) * t_uniform(self.p.glwe_noise_log);
        n * (fourier + key + unreached(d) / 2.0 * (1.0 + ring / 2.0))
    }

    /// The packing of a ciphertext into a look-up table of `N/2` equal entries: noise of the ring elements adds up over
    /// the window, the unreached part (in the constant coefficient) does not.
    pub(crate) fn packing(&self) -> f64 {
        let d = self.p.packing;
        let ring = self.ring();
        ring * (ring / 2.0 * d.levels as f64 * digit(d) * t_uniform(self.p.glwe_noise_log) + unreached(d) / 2.0)
    }

    /// What one match adds to the noise of the winner that it passes on.
    pub(crate) fn selection(&self) -> f64 {
        self.bootstrap(self.p.select) + self.packing()
    }

    /// A contestant after `rounds` matches.
    pub(crate) fn contestant(&self, rounds: usize, teachers: usize) -> f64 {
        self.fresh_sum(teachers) + rounds as f64 * self.selection()
    }

    /// Variance at the input of the bootstrap of one scale in a tournament, in buckets squared, between two contestants
    /// that have won `rounds` matches each.
    pub(crate) fn match_input(&self, scale: u64, rounds: usize, teachers: usize) -> f64 {
        // The two sums share their bias only in part; twice the variance is the safe side.
        let difference = 2.0 * self.contestant(rounds, teachers);
        let scaled = difference * (scale as f64).powi(2);
        (scaled + self.key_switch() + self.modulus_switch()) / self.bucket().powi(2)
    }

    /// The same in all pairs, where both counts have been key-switched before they are subtracted.
    pub(crate) fn pair_input(&self, scale: u64, teachers: usize) -> f64 {
        self.match_input(scale, 0, teachers) + self.key_switch() / self.bucket().powi(2)
    }

    /// Variance at the input of the combining bootstrap, in buckets squared: three signs.
    pub(crate) fn combination_input(&self) -> f64 {
        (3.0 * self.bootstrap(self.p.bootstrap) + self.key_switch() + self.modulus_switch()) / self.bucket().powi(2)
    }

    /// Variance at the input of the read-out bootstrap of a tournament, in buckets squared.
    pub(crate) fn read_out_input(&self, rounds: usize, teachers: usize) -> f64 {
        (self.contestant(rounds, teachers) + self.key_switch() + self.modulus_switch()) / self.bucket().powi(2)
    }

    /// Variance at the input of a threshold of all pairs, in buckets squared: `K - 1` outcomes.
    pub(crate) fn threshold_input(&self, classes: usize) -> f64 {
        let outcomes = (classes - 1) as f64 * self.bootstrap(self.p.bootstrap);
        (outcomes + self.key_switch() + self.modulus_switch()) / self.bucket().powi(2)
    }

    pub(crate) fn failure(&self, circuit: Circuit, classes: usize, teachers: usize) -> FailureBound {
        let p = self.p;
        let classes = classes.max(2);
        let rounds = classes.next_power_of_two().trailing_zeros() as usize;
        let (comparison, read_out) = match circuit {
            Circuit::Tournament => {
                // The winner's index sits in a slot of 2N / 16 buckets, off its centre by at most range votes.
                let slot = 2.0 * self.ring() / p.max_classes() as f64;
                let reach = p.range as f64 * 2_f64.powi(p.unit_log.cast_signed()) / self.bucket();
                let deviation = self.read_out_input(rounds, teachers).sqrt();
                let variances = p.scales.map(|scale| self.match_input(scale, rounds - 1, teachers));
                (self.comparison(variances), 2.0 * tail((slot / 2.0 - reach) / deviation))
            }
            Circuit::AllPairs => {
                let step = self.ring() / 2.0 / (classes - 1) as f64;
                let deviation = self.threshold_input(classes).sqrt();
                let variances = p.scales.map(|scale| self.pair_input(scale, teachers));
                (self.comparison(variances), classes as f64 * tail(step / deviation))
            }
        };
        FailureBound {
            comparison_log2: comparison.log2(),
            read_out_log2: read_out.log2(),
            query_log2: (comparison * (classes - 1) as f64 + read_out).log2(),
        }
    }

    /// The failure bound of one comparison with these variances at its three inputs (buckets squared).
    fn comparison(&self, variances: [f64; 3]) -> f64 {
        let p = self.p;
        let half_circle = self.ring();
        let units = p.scales.map(|scale| scale as f64 * 2_f64.powi(p.unit_log.cast_signed()) / self.bucket());
        let deviations = variances.map(f64::sqrt);
        let zones = [0.0, p.dead_zone as f64, p.dead_zone as f64];
        let wrong = |j: usize, d: f64| {
            let x = units[j] * d;
            tail((x + zones[j]) / deviations[j]) + tail((half_circle + zones[j] - x) / deviations[j])
        };
        let unknown = |j: usize, d: f64| {
            let x = units[j] * d;
            tail((x - zones[j]) / deviations[j]) + tail((half_circle - zones[j] - x) / deviations[j])
        };
        // Sums of signs are 1/16 of the torus apart, and 1/32 from the threshold.
        let combination = 2.0 * tail(half_circle / 16.0 / self.combination_input().sqrt());
        (0..=p.range)
            .map(|d| d as f64 + 0.5)
            .map(|d| wrong(2, d) + unknown(2, d).min(wrong(1, d) + unknown(1, d).min(wrong(0, d))) + combination)
            .fold(0.0, f64::max)
    }
}

/// Variance of TUniform(b).
fn t_uniform(bound_log: u32) -> f64 {
    (2_f64.powi(2 * bound_log as i32 + 1) + 1.0) / 6.0
}

/// Mean square of a balanced digit.
fn digit(d: Decomposition) -> f64 {
    (2_f64.powi(2 * d.base_log as i32) + 2.0) / 12.0
}

/// Mean square of what a decomposition leaves out.
fn unreached(d: Decomposition) -> f64 {
    2_f64.powi(2 * (64 - (d.base_log * d.levels) as i32)) / 12.0
}

/// Upper bound on the Gaussian tail: `Q(z) < exp(-z^2/2) / (z sqrt(2 pi))` for positive `z`, and never above 1.
fn tail(z: f64) -> f64 {
    if z <= 0.0 {
        return 1.0;
    }
    ((-z * z / 2.0).exp() / (z * (2.0 * std::f64::consts::PI).sqrt())).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tfhe::core_crypto::commons::noise_formulas as reference;
    use tfhe::core_crypto::prelude::GlweDimension;

    const P: Parameters = Parameters::TOURNAMENT_128;

    fn assert_close(what: &str, ours: f64, theirs: f64, tolerance: f64) {
        assert!((ours / theirs - 1.0).abs() < tolerance, "{what}: ours 2^{}, tfhe's 2^{}", ours.log2(), theirs.log2());
    }

    #[test]
    fn bootstrap_variances_agree_with_tfhe() {
        for d in [P.bootstrap, P.select] {
            let theirs = reference::lwe_programmable_bootstrap::pbs_variance_132_bits_security_tuniform_fft_mul(
                P.small_dimension(),
                GlweDimension(1),
                P.ring(),
                d.base(),
                d.level_count(),
                53.0,
                TORUS,
            );
            assert_close("bootstrap", NoiseModel::new(&P).bootstrap(d), theirs.0 * TORUS * TORUS, 0.02);
        }
    }

    #[test]
    fn key_switch_and_modulus_switch_variances_agree_with_tfhe() {
        let model = NoiseModel::new(&P);
        let key_switch = reference::lwe_keyswitch::keyswitch_additive_variance_132_bits_security_tuniform(
            P.big_dimension(),
            P.small_dimension(),
            P.key_switch.base(),
            P.key_switch.level_count(),
            TORUS,
            TORUS,
        );
        assert_close("key switch", model.key_switch(), key_switch.0 * TORUS * TORUS, 0.02);
        let switch =
            reference::centered_mean_shifted_modulus_switch::centered_binary_shifted_modulus_switch_additive_variance(
                P.small_dimension(),
                TORUS,
                4096.0,
            );
        assert_close("modulus switch", model.modulus_switch(), switch.0 * TORUS * TORUS, 0.001);
    }

    #[test]
    fn the_documented_failure_bounds_hold() {
        for (classes, teachers) in [(2, 2), (10, 250), (16, 2544)] {
            for (circuit, bound) in [(Circuit::Tournament, -136.0), (Circuit::AllPairs, -130.0)] {
                let failure = P.failure(circuit, classes, teachers);
                assert!(failure.query_log2 < bound, "{circuit:?}, {classes} classes: {failure:?}");
                assert!(failure.query_log2 >= failure.comparison_log2);
            }
        }
    }

    #[test]
    fn a_wider_range_or_other_scales_would_fail() {
        // The bound is no constant: it sees both ends of the range and the gaps between scales.
        let comparison = |p: Parameters| p.failure(Circuit::Tournament, 10, 250).comparison_log2;
        assert!(comparison(Parameters { range: 2600, ..P }) > -100.0);
        assert!(comparison(Parameters { scales: [400 << 4, P.scales[1], P.scales[2]], ..P }) > -100.0);
        assert!(comparison(Parameters { scales: [P.scales[0], 30 << 4, P.scales[2]], ..P }) > -100.0);
        assert!(comparison(Parameters { dead_zone: 40, ..P }) > -100.0);
    }
}
