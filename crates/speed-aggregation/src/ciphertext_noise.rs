//! Ciphertext noise: formulas for the variance of every operation of the circuits, and the resulting failure bounds.
//!
//! Variances are in squared torus units (the torus has `2^64` units) unless stated in buckets. Each formula is for
//! binary keys, one mask polynomial, and TUniform(b) noise, whose variance is `(2^(2b+1) + 1) / 6`. The formulas are
//! those of tfhe-rs (core_crypto::commons::noise_formulas), specialised to this crate's keys; a test compares the two.

use crate::circuit::{FAN_IN, READ_OUTS, SUM_STEP};
use crate::exact_circuit::ExactCircuit;
use crate::keys::Rounded;
use crate::layout::Layout;
use crate::parameters::{Decomposition, Parameters};
use crate::range::VoteRange;
use crate::scales::DEAD_ZONE;

/// The guarantee of a query, as base-2 logarithms of probabilities. The model is that phase errors are Gaussian with
/// the variances of the formulas, as in tfhe's own parameter sets.
///
/// # Failure
///
/// Let `s_j` be the standard deviation at the input of scale `j` in buckets, `x_j = D u_j` the noiseless phase of a
/// difference `D` at its unit `u_j`, `t_j` the dead zone (0 for the finest scale, `j = 0`), `N` the half-circle, and
/// `Q` the Gaussian tail. A comparison errs only if the coarsest scale has the wrong sign, or if it answers "don't
/// know" and the next finer one errs in the same sense, and so on. Without assuming independence,
///
/// ```text
/// E_0     =  W_0
/// E_j     =  W_j + min(Z_j, E_(j-1))
/// P(D)   <=  E_last + C
/// W_j     =  Q((x_j + t_j) / s_j) + Q((N + t_j - x_j) / s_j)     wrong sign
/// Z_j     =  Q((x_j - t_j) / s_j) + Q((N - t_j - x_j) / s_j)     not the right sign
/// C       =  2 Q(64 / s_c)                                       the sum of the signs is misread
/// ```
/// and `comparison` is the maximum over all `D` from 1/2 to the largest difference of the round plus 1/2. In a
/// tournament it is taken in the last round, where the noise is largest. Each match can go wrong for the winner only
/// once, and a query has `K - 1` matches, so `query` is the union bound over `K - 1` comparisons and the read-outs. In
/// all pairs, the result is right if the winner's `K - 1` comparisons and all `K` thresholds are right.
///
/// # Distance
/// A bound on the information in an answer beyond its winner: see [`crate::EncryptedAnswer`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Guarantee {
    /// log2 of the failure probability of one comparison, for the worst difference in the worst round.
    pub comparison_log2: f64,
    /// log2 of the failure probability of the steps after the comparisons: thresholds on numbers of wins (all pairs),
    /// the splitting of a number of two digits, the read-outs, and the opening of the answer.
    pub read_out_log2: f64,
    /// log2 of the failure probability of one query: union bound over comparisons and read-out.
    pub query_log2: f64,
    /// log2 of a bound on the total variation distance between the answers to two queries with the same winner.
    pub distance_log2: f64,
}

/// The guarantee of a query whose answer a student and an opener open together, as base-2 logarithms, in the model of
/// [`Guarantee`]. The student and the server may collude: they know the server's flooding, so only the opener's flooding hides
/// the error of the last bootstrap and of the last re-randomisation.
///
/// Let `s` be the standard deviation of this error `E`, and `L` the length of the interval of the opener's flooding. A
/// simulator that knows only the label replaces the opener's word by a uniform one around the word without error. A shift by
/// `E` changes a uniform distribution by `|E| / L` in total variation, so
///
/// ```text
/// distance = E|E| / L = sqrt(2 / pi) s / L         for each digit
/// ```
///
/// The excess is for attacks that either succeed or fail. Suppose that `|E| <= B = 14 s`, which fails with probability
/// `2^-144`. A simulator whose interval is `B` longer at both ends gives each word with at least `L / (L + 2B)` of its real
/// probability. So a success probability is at most `1 + 2B / L` times as large as with simulated words, for each digit.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct JointGuarantee {
    /// log2 of the failure probability of one query, the joint opening included.
    pub query_log2: f64,
    /// The distance of a phase, with all flooding, to the next digit, in standard deviations of the error.
    pub margin: f64,
    /// log2 of a bound on the total variation distance between an opener's words for an answer and words simulated from its label.
    pub distance_log2: f64,
    /// log2 of the excess: an opener's words for an answer multiply the success probability of an attack by at most 1 plus
    /// this number.
    pub excess_log2: f64,
}

/// The ciphertext noise of one layout under one parameter set.
pub(crate) struct CiphertextNoise<'a> {
    p: &'a Parameters,
    layout: Layout,
    range: VoteRange,
}

impl<'a> CiphertextNoise<'a> {
    pub(crate) fn new(p: &'a Parameters, layout: Layout, range: VoteRange) -> Self {
        Self { p, layout, range }
    }

    fn ring(&self) -> f64 {
        self.p.polynomial_size as f64
    }

    fn bucket(&self) -> f64 {
        self.p.bucket() as f64
    }

    /// Returns the variance of a sum of public-key encryptions `(A r + e_1, B r + e_2 + m)` with `B = A s + e`, one
    /// from each teacher: the phase error is `e r + e_2 - e_1 s`. The binary `r` has mean 1/2, so `e r` has a bias that
    /// depends on the key (through `e`) and adds up over teachers. Over keys, the variance of the bias is `N/4` times
    /// that of `e`.
    pub(crate) fn fresh_sum(&self) -> f64 {
        let (n, ring) = (self.range.teachers() as f64, self.ring());
        self.bias() + n * t_uniform(self.p.glwe_noise_log) * (ring / 4.0 + ring / 2.0 + 1.0)
    }

    /// Returns the variance, over keys, of the bias of a sum.
    fn bias(&self) -> f64 {
        let n = self.range.teachers() as f64;
        n * n * self.ring() / 4.0 * t_uniform(self.p.glwe_noise_log)
    }

    /// Returns the variance of a key switch: `l N` products of a digit and a noisy key bit, and the part of the mask
    /// that digits do not reach, multiplied by half of the key bits.
    pub(crate) fn key_switch(&self) -> f64 {
        let d = self.p.key_switch;
        self.ring() * (d.levels as f64 * digit(d) * t_uniform(self.p.lwe_noise_log) + unreached(d) / 2.0)
    }

    /// Returns the variance of the centred modulus switch to `2N` buckets: every mask element is rounded and multiplied
    /// by a key bit of +-1/2 after centring.
    pub(crate) fn modulus_switch(&self) -> f64 {
        self.p.lwe_dimension as f64 / 48.0 * self.bucket().powi(2)
    }

    /// Returns the variance of the output of a bootstrap: `n / 2` external products, one for each pair of key bits. A pair has three
    /// keys, each multiplied by `X^a - 1`, which doubles the variance of its noise. Unless both bits are 0, the part of the input that
    /// digits do not reach is multiplied by `X^a - 1` too.
    pub(crate) fn bootstrap(&self, d: Decomposition) -> f64 {
        self.p.lwe_dimension as f64 / 2.0 * (6.0 * self.product(d) + 1.5 * self.remainder(d))
    }

    /// Returns the variance that the noise of a bootstrapping key adds to an external product, `2 l N` products of digit and noise, with
    /// the rounding of the Fourier transform. The bodies of the key are [rounded](Rounded), which is noise too.
    fn product(&self, d: Decomposition) -> f64 {
        let noise = t_uniform(self.p.glwe_noise_log) + rounding();
        self.fourier(d) + 2.0 * d.levels as f64 * self.ring() * digit(d) * noise
    }

    /// Returns the variance of the phase of the part of a ring ciphertext that digits do not reach: body and mask (half of the key
    /// bits).
    fn remainder(&self, d: Decomposition) -> f64 {
        unreached(d) * (1.0 + self.ring() / 2.0)
    }

    /// Returns the variance of the rounding of the 53-bit Fourier transforms of one external product: 1.4 times tfhe's fit for its own
    /// transform. Test: `rounding_of_the_transform_follows_the_formula`.
    pub(crate) fn fourier(&self, d: Decomposition) -> f64 {
        1.4 * self.fourier_of_tfhe(d)
    }

    fn fourier_of_tfhe(&self, d: Decomposition) -> f64 {
        let base = 2_f64.powi(2 * (64 - 53 + d.base_log as i32));
        0.00705 * base * (d.levels as f64).powf(1.01827) * self.ring().powf(2.22003) * 2_f64.powf(1.01827)
    }

    /// Returns the variance of an entry of a packed table of `N/4` (four scales: `N/2`) equal entries. Each later step
    /// of the trace doubles the ciphertext noise of step `k`, which ends on the `2^k` multiples of `N / 2^k`; an entry
    /// sums those in its window.
    pub(crate) fn packing(&self) -> f64 {
        let d = self.p.trace;
        let ring = self.ring();
        let step = ring * d.levels as f64 * digit(d) * t_uniform(self.p.glwe_noise_log)
            + unreached(d) * (1.0 + ring / 2.0)
            + self.fourier(d);
        let steps = self.p.polynomial_size.trailing_zeros() as i32;
        let window = if self.layout.scales().len() < 4 { 0.25 } else { 0.5 };
        (1..=steps).map(|k| step * 4_f64.powi(steps - k) * (window * 2_f64.powi(k)).max(1.0)).sum()
    }

    /// Returns the variance that one match adds to the ciphertext noise of its winner.
    pub(crate) fn selection(&self) -> f64 {
        self.bootstrap(self.p.select) + self.packing()
    }

    /// Returns the number of rounds of a tournament.
    fn rounds(&self) -> usize {
        self.layout.candidates().next_power_of_two().trailing_zeros() as usize
    }

    /// Returns the variance of a contestant's count after `rounds` matches.
    pub(crate) fn contestant(&self, rounds: usize) -> f64 {
        self.fresh_sum() + rounds as f64 * self.selection()
    }

    /// Returns the variance at the input of the bootstrap of one scale in a tournament, in squared buckets, between two
    /// contestants that have won `rounds` matches each.
    pub(crate) fn match_input(&self, scale: u64, rounds: usize) -> f64 {
        // Two sums under one key share `e`, so their biases may be correlated in any way. Neighbours under one mask
        // have almost equal biases; the last value of a mask and the first of the next have almost opposite ones.
        // Opposite biases are the worst case.
        let difference = 2.0 * self.contestant(rounds) + 2.0 * self.bias();
        let scaled = difference * (scale as f64).powi(2);
        (scaled + self.key_switch() + self.modulus_switch()) / self.bucket().powi(2)
    }

    /// Returns the same variance in all pairs, where both counts are key-switched before they are subtracted.
    pub(crate) fn pair_input(&self, scale: u64) -> f64 {
        self.match_input(scale, 0) + self.key_switch() / self.bucket().powi(2)
    }

    /// Returns the variance at the input of a bootstrap of a sum of `summands` outputs of coarse bootstraps, in squared
    /// buckets.
    pub(crate) fn sum_input(&self, summands: usize) -> f64 {
        let sum = summands as f64 * self.bootstrap(self.p.bootstrap);
        (sum + self.key_switch() + self.modulus_switch()) / self.bucket().powi(2)
    }

    /// Returns the variance of the number of the winner.
    pub(crate) fn winner(&self, circuit: ExactCircuit) -> f64 {
        match circuit {
            ExactCircuit::Tournament => self.rounds() as f64 * self.selection(),
            ExactCircuit::AllPairs => self.layout.candidates() as f64 * self.bootstrap(self.p.select),
        }
    }

    /// Returns the variances of the digits of the winner before they are read out, least significant first. Of two digits
    /// the low one is the sum of two bootstraps, and the high one is the number and two bootstraps.
    pub(crate) fn digits(&self, circuit: ExactCircuit) -> Vec<f64> {
        let (number, bootstraps) = (self.winner(circuit), 2.0 * self.bootstrap(self.p.select));
        if self.layout.digit_count() == 1 { vec![number] } else { vec![bootstraps, number + bootstraps] }
    }

    /// Returns the failure bound of the two steps that read the low digit of a number of two digits: half a sixteenth of the
    /// torus is between a value and its neighbours.
    fn split(&self, circuit: ExactCircuit) -> f64 {
        if self.layout.digit_count() == 1 {
            return 0.0;
        }
        let number = self.winner(circuit);
        let step = |number: f64| 2.0 * tail(self.ring() / 16.0 / self.read_out_input(256.0 * number).sqrt());
        step(number) + step(number + self.bootstrap(self.p.select))
    }

    /// Returns the variance at the input of a read-out of a digit of variance `digit`, in squared buckets, without the
    /// flooding.
    pub(crate) fn read_out_input(&self, digit: f64) -> f64 {
        (digit + self.key_switch() + self.modulus_switch()) / self.bucket().powi(2)
    }

    pub(crate) fn guarantee(&self, circuit: ExactCircuit) -> Guarantee {
        let matches = (self.layout.candidates() - 1) as f64;
        let scales = self.layout.scales();
        let (variances, thresholds): (Vec<f64>, f64) = match circuit {
            ExactCircuit::Tournament => (scales.map(|scale| self.match_input(scale, self.rounds() - 1)).collect(), 0.0),
            ExactCircuit::AllPairs => {
                // Each class has a threshold on up to FAN_IN outcomes, and on flags of such thresholds.
                let flags = matches / (FAN_IN - 1) as f64 + 1.0;
                let margin = SUM_STEP as f64 / self.bucket();
                let threshold = 2.0 * tail(margin / self.sum_input(FAN_IN).sqrt());
                (scales.map(|scale| self.pair_input(scale)).collect(), (matches + 1.0) * flags * threshold)
            }
        };
        let comparison = self.comparison(&variances);
        let read_outs = self.digits(circuit).into_iter().map(|digit| self.read_outs(digit)).sum::<f64>();
        let read_outs = thresholds + self.split(circuit) + read_outs;
        Guarantee {
            comparison_log2: comparison.log2(),
            read_out_log2: read_outs.log2(),
            query_log2: (comparison * matches + read_outs).log2(),
            distance_log2: self.distance_log2(circuit),
        }
    }

    /// Returns the failure bound of the read-outs and the opening of a digit of this variance. A digit is half a sixteenth of
    /// the torus, less the flooding, away from its neighbours.
    fn read_outs(&self, digit: f64) -> f64 {
        let half_slot = self.ring() / 16.0;
        let flooding = |log: u32| 2_f64.powi(log as i32) / self.bucket();
        let margin = half_slot - flooding(self.p.read_out_flooding_log);
        let bootstrap = self.bootstrap(self.p.select);
        let first = 2.0 * tail(margin / self.read_out_input(digit).sqrt());
        let next = 2.0 * tail(margin / self.read_out_input(bootstrap).sqrt());
        let opening = 2.0 * tail((half_slot - flooding(self.p.flooding_log)) * self.bucket() / bootstrap.sqrt());
        first + (READ_OUTS - 1) as f64 * next + opening
    }

    /// Returns the variance of the ciphertext noise of one public-key encryption without flooding, whose bias over keys is
    /// included.
    fn re_randomisation(&self) -> f64 {
        t_uniform(self.p.glwe_noise_log) * (self.ring() + 1.0)
    }

    pub(crate) fn joint_guarantee(&self, circuit: ExactCircuit) -> JointGuarantee {
        let deviation = (self.bootstrap(self.p.select) + self.re_randomisation()).sqrt();
        let power = |log: u32| 2_f64.powi(log as i32);
        let half_slot = self.ring() / 16.0 * self.bucket();
        let margin = (half_slot - power(self.p.flooding_log) - power(self.p.part_flooding_log)) / deviation;
        let (digits, length) = (self.layout.digit_count() as f64, power(self.p.part_flooding_log + 1));
        let distance = (2.0 / std::f64::consts::PI).sqrt() * deviation / length;
        JointGuarantee {
            query_log2: (self.guarantee(circuit).query_log2.exp2() + digits * 2.0 * tail(margin)).log2(),
            margin,
            distance_log2: (digits * distance).log2(),
            excess_log2: ((2.0 * REACH * deviation / length).ln_1p() * digits).exp_m1().log2(),
        }
    }

    /// Returns the failure bound of one comparison with these variances at its inputs (squared buckets), finest scale
    /// first.
    fn comparison(&self, variances: &[f64]) -> f64 {
        let half_circle = self.ring();
        let scales: Vec<(f64, f64, f64)> = (self.layout.scales().zip(variances).enumerate())
            .map(|(j, (scale, variance))| {
                let zone = if j == 0 { 0.0 } else { DEAD_ZONE as f64 };
                (self.layout.unit() as f64 * scale as f64 / self.bucket(), zone, variance.sqrt())
            })
            .collect();
        let error = |d: f64| {
            scales.iter().enumerate().fold(1.0_f64, |finer, (j, &(unit, zone, deviation))| {
                let x = unit * d;
                let wrong = tail((x + zone) / deviation) + tail((half_circle + zone - x) / deviation);
                let unknown = tail((x - zone) / deviation) + tail((half_circle - zone - x) / deviation);
                if j == 0 { wrong } else { wrong + unknown.min(finer) }
            })
        };
        let sum = 2.0 * tail(SUM_STEP as f64 / self.bucket() / self.sum_input(scales.len()).sqrt());
        (0..=self.range.difference()).map(|d| error(d as f64 + 0.5)).fold(0.0, f64::max) + sum
    }

    /// Bounds the total variation distance. Flooding that is uniform on an interval of length `L` hides errors `e, e'`
    /// up to a distance of `E|e - e'| / L`; a difference that one stage does not hide reaches the next stage.
    fn distance_log2(&self, circuit: ExactCircuit) -> f64 {
        // E|e - e'| of two independent Gaussian errors is 2 / sqrt(pi) standard deviations.
        let stage = |variance: f64, log: u32| {
            (2.0 / std::f64::consts::PI.sqrt() * variance.sqrt() / 2_f64.powi(log as i32 + 1)).log2()
        };
        let bootstrap = self.bootstrap(self.p.select);
        let first: f64 =
            self.digits(circuit).into_iter().map(|digit| stage(digit, self.p.read_out_flooding_log).exp2()).sum();
        let next = stage(bootstrap, self.p.read_out_flooding_log);
        let last = stage(bootstrap, self.p.flooding_log);
        first.log2() + (READ_OUTS - 1) as f64 * next + last
    }
}

/// Standard deviations that a Gaussian error exceeds with a probability of less than 2^-144.
const REACH: f64 = 14.0;

/// Returns the variance of TUniform(b).
fn t_uniform(bound_log: u32) -> f64 {
    (2_f64.powi(2 * bound_log as i32 + 1) + 1.0) / 6.0
}

/// Returns the variance of the rounding of a body of a bootstrapping key.
fn rounding() -> f64 {
    4_f64.powi(Rounded::BITS as i32) / 12.0
}

/// Returns the mean square of a balanced digit.
fn digit(d: Decomposition) -> f64 {
    (2_f64.powi(2 * d.base_log as i32) + 2.0) / 12.0
}

/// Returns the mean square of the remainder of a decomposition.
fn unreached(d: Decomposition) -> f64 {
    2_f64.powi(2 * (64 - (d.base_log * d.levels) as i32)) / 12.0
}

/// Returns an upper bound on the Gaussian tail: `Q(z) < exp(-z^2/2) / (z sqrt(2 pi))` for positive `z`, and never above 1.
fn tail(z: f64) -> f64 {
    if z <= 0.0 {
        return 1.0;
    }
    ((-z * z / 2.0).exp() / (z * (2.0 * std::f64::consts::PI).sqrt())).min(1.0)
}

#[cfg(test)]
mod documented;

#[cfg(test)]
mod tests {
    use super::*;
    use tfhe::core_crypto::commons::noise_formulas as reference;
    use tfhe::core_crypto::prelude::GlweDimension;

    const TORUS: f64 = 18_446_744_073_709_551_616.0;

    fn model(p: &Parameters, outcomes: usize, range: VoteRange) -> CiphertextNoise<'_> {
        CiphertextNoise::new(p, Layout::new(p, outcomes, range).expect("in range"), range)
    }

    fn assert_close(what: &str, ours: f64, theirs: f64, tolerance: f64) {
        assert!((ours / theirs - 1.0).abs() < tolerance, "{what}: ours 2^{}, tfhe's 2^{}", ours.log2(), theirs.log2());
    }

    #[test]
    fn bootstrap_variances_agree_with_tfhe() {
        for p in Parameters::ALL {
            for d in [p.bootstrap, p.select] {
                let theirs = reference::lwe_programmable_bootstrap::pbs_variance_132_bits_security_tuniform_fft_mul(
                    p.small_dimension(),
                    GlweDimension(1),
                    p.ring(),
                    d.base(),
                    d.level_count(),
                    53.0,
                    TORUS,
                );
                // tfhe rotates by one key bit a step, with one key, which multiplies the remainder if the bit is 1. Its keys are not
                // rounded, and its transform is another.
                let (n, model) = (p.lwe_dimension as f64, model(&p, 10, VoteRange::new(250, 0)));
                let rounding = 2.0 * d.levels as f64 * model.ring() * digit(d) * rounding();
                let product = model.product(d) - model.fourier(d) + model.fourier_of_tfhe(d) - rounding;
                let ours = n * (product + model.remainder(d) / 2.0);
                assert_close("bootstrap by single bits", ours, theirs.0 * TORUS * TORUS, 0.02);
            }
        }
    }

    #[test]
    fn key_switch_and_modulus_switch_variances_agree_with_tfhe() {
        let p = Parameters::TOURNAMENT_128;
        let model = model(&p, 10, VoteRange::new(250, 0));
        let key_switch = reference::lwe_keyswitch::keyswitch_additive_variance_132_bits_security_tuniform(
            p.big_dimension(),
            p.small_dimension(),
            p.key_switch.base(),
            p.key_switch.level_count(),
            TORUS,
            TORUS,
        );
        assert_close("key switch", model.key_switch(), key_switch.0 * TORUS * TORUS, 0.02);
        let switch =
            reference::centered_mean_shifted_modulus_switch::centered_binary_shifted_modulus_switch_additive_variance(
                p.small_dimension(),
                TORUS,
                4096.0,
            );
        assert_close("modulus switch", model.modulus_switch(), switch.0 * TORUS * TORUS, 0.001);
    }

    #[test]
    fn every_set_keeps_the_promise_at_the_ends_of_its_range() {
        let [narrow, wide] = Parameters::ALL;
        for (p, outcomes, range) in [
            (narrow, 2, VoteRange::new(2, 0)),
            (narrow, 100, VoteRange::new(2544, 0)),
            (wide, 128, VoteRange::new(5000, 12_500)),
        ] {
            let model = model(&p, outcomes, range);
            for circuit in ExactCircuit::ALL {
                let guarantee = model.guarantee(circuit);
                assert!(guarantee.query_log2 < -128.0, "{circuit:?}, {outcomes} outcomes: {guarantee:?}");
                assert!(guarantee.query_log2 >= guarantee.comparison_log2);
                assert!(guarantee.distance_log2 < -40.0, "{circuit:?}, {outcomes} outcomes: {guarantee:?}");
            }
        }
    }

    #[test]
    fn the_distance_of_an_opener_is_that_of_shifted_uniform_words() {
        // Total variation and largest ratio by enumeration: a word with error `e` against one without, on a small torus.
        let (length, reach) = (64_i64, 9_i64);
        let uniform = |shift: i64, widened: i64, x: i64| {
            let is_inside = (-length / 2 - widened..length / 2 + widened).contains(&(x - shift));
            f64::from(u8::from(is_inside)) / (length + 2 * widened) as f64
        };
        for e in -reach..=reach {
            let points = -2 * length..2 * length;
            let distance: f64 = points.clone().map(|x| (uniform(e, 0, x) - uniform(0, 0, x)).abs()).sum::<f64>() / 2.0;
            assert!((distance - e.unsigned_abs() as f64 / length as f64).abs() < 1e-12, "{e}");
            let ratio = points.map(|x| match uniform(e, 0, x) {
                0.0 => 0.0,
                real => real / uniform(0, reach, x),
            });
            assert!((ratio.fold(0.0, f64::max) - (1.0 + 2.0 * reach as f64 / length as f64)).abs() < 1e-12, "{e}");
        }
        // The mean of |e| by quadrature, of a Gaussian of deviation 1.
        let step = 1e-3;
        let density = |x: f64| (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
        let mean: f64 = (0..10_000).map(|i| (f64::from(i) + 0.5) * step).map(|x| 2.0 * x * density(x) * step).sum();
        for (p, range) in
            [(Parameters::TOURNAMENT_128, VoteRange::new(250, 513)), (Parameters::WIDE_128, VoteRange::new(5000, 500))]
        {
            for (outcomes, digits) in [(10, 1.0), (100, 2.0)] {
                let model = model(&p, outcomes, range);
                let deviation = (model.bootstrap(p.select) + model.re_randomisation()).sqrt();
                let joint = model.joint_guarantee(ExactCircuit::Tournament);
                let expected = (digits * mean * deviation / 2_f64.powi(58)).log2();
                assert!((joint.distance_log2 - expected).abs() < 1e-5, "{joint:?} {expected}");
                let excess = (digits * 28.0 * deviation / 2_f64.powi(58)).log2();
                assert!((joint.excess_log2 - excess).abs() < 1e-3, "{joint:?} {excess}");
                // The margin is so wide that the joint opening does not change the failure bound.
                let alone = model.guarantee(ExactCircuit::Tournament).query_log2;
                assert!(joint.margin > 1000.0 && (joint.query_log2 - alone).abs() < 1e-9, "{joint:?} {alone}");
                let values = [joint.query_log2, joint.margin, joint.distance_log2, joint.excess_log2];
                assert!(values.iter().all(|value| value.is_finite()));
            }
        }
        // The bound of the reach.
        assert!((2.0 * tail(REACH)).log2() < -144.0);
        // One more bit of flooding would meet the next digit.
        let wide = Parameters { part_flooding_log: 58, ..Parameters::TOURNAMENT_128 };
        let margin = model(&wide, 10, VoteRange::new(250, 0)).joint_guarantee(ExactCircuit::Tournament).margin;
        assert!(margin <= 0.0, "{margin}");
    }

    #[test]
    fn a_wider_range_or_less_precision_would_fail() {
        // The bound is not a constant: it depends on both ends of the range, the gaps between scales, and every kind of
        // noise.
        let p = Parameters::TOURNAMENT_128;
        let range = VoteRange::new(250, 1147);
        let layout = Layout::new(&p, 10, range).expect("in range");
        let comparison = |p: Parameters, range: VoteRange| {
            CiphertextNoise::new(&p, layout, range).guarantee(ExactCircuit::Tournament).comparison_log2
        };
        assert!(comparison(p, range) < -128.0);
        assert!(comparison(p, VoteRange::new(250, 1200)) > -100.0);
        assert!(comparison(Parameters { select: Decomposition { base_log: 12, levels: 2 }, ..p }, range) > -100.0);
        assert!(comparison(Parameters { key_switch: Decomposition { base_log: 4, levels: 3 }, ..p }, range) > -100.0);
        assert!(comparison(Parameters { trace: Decomposition { base_log: 8, levels: 3 }, ..p }, range) > -100.0);
        let narrow = Layout::new(&p, 10, VoteRange::new(100, 0)).expect("two scales");
        let gap = CiphertextNoise::new(&p, narrow, range).guarantee(ExactCircuit::Tournament).comparison_log2;
        assert!(gap > -100.0);
    }
}
