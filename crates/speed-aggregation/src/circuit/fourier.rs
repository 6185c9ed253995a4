//! Products of polynomials modulo `X^N + 1` through the Fourier transform.
//!
//! A real polynomial `p` becomes `N/2` complex numbers `(p_j + i p_(j + N/2)) w^j` with `w = exp(i pi / N)`, whose
//! discrete Fourier transform gives the values of `p` at half of the roots of `X^N + 1`; the other half are their
//! conjugates. The transform itself is tfhe-fft's. Decomposition, twist and conversion are one pass each, in plain
//! loops over slices that the compiler vectorises.

use aligned_vec::{AVec, avec};
use dyn_stack::{PodBuffer, PodStack};
use tfhe_fft::c64;
use tfhe_fft::ordered::FftAlgo;
use tfhe_fft::unordered::{Method, Plan};

use crate::parameters::Decomposition;

/// Number of complex numbers that are multiplied together.
pub(super) const LANES: usize = 4;

/// [`LANES`] complex numbers.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct Block(pub(super) [c64; LANES]);

pub(super) struct Fourier {
    plan: Plan,
    /// Real and imaginary parts of `w^j`.
    twist: (Vec<f64>, Vec<f64>),
    scratch: PodBuffer,
}

impl Fourier {
    /// Prepares transforms of polynomials with `n` coefficients.
    pub(super) fn new(n: usize) -> Self {
        // The algorithm is fixed: the fastest one by measurement would round differently from run to run.
        let plan = Plan::new(n / 2, Method::UserProvided { base_algo: FftAlgo::Dif4, base_n: n / 2 });
        let angle = |j: usize| std::f64::consts::PI * j as f64 / n as f64;
        let twist = ((0..n / 2).map(|j| angle(j).cos()).collect(), (0..n / 2).map(|j| angle(j).sin()).collect());
        let scratch = PodBuffer::new(plan.fft_scratch());
        Self { plan, twist, scratch }
    }

    /// Allocates a buffer for `polynomials` transformed polynomials.
    pub(super) fn buffer(&self, polynomials: usize) -> AVec<c64> {
        avec![c64::default(); polynomials * self.plan.fft_size()]
    }

    #[inline(always)]
    fn forward(&mut self, values: &mut [c64]) {
        self.plan.fwd(values, PodStack::new(&mut self.scratch));
    }

    /// Returns the transform of a polynomial over the torus, as fractions of a turn.
    pub(super) fn transform(&mut self, polynomial: &[u64]) -> Vec<Block> {
        let fraction = |x: u64| x.cast_signed() as f64 * 2_f64.powi(-64);
        let (low, high) = polynomial.split_at(polynomial.len() / 2);
        let mut values = self.buffer(1);
        for (j, value) in values.iter_mut().enumerate() {
            let (re, im) = (fraction(low[j]), fraction(high[j]));
            let (cos, sin) = (self.twist.0[j], self.twist.1[j]);
            *value = c64::new(re * cos - im * sin, re * sin + im * cos);
        }
        self.forward(&mut values);
        values.as_chunks().0.iter().copied().map(Block).collect()
    }

    /// Decomposes a polynomial into digits, the least significant level first, and transforms each level.
    #[inline(always)]
    pub(super) fn decompose(&mut self, polynomial: &[u64], d: Decomposition, levels: &mut [c64]) {
        let half = polynomial.len() / 2;
        let (low, high) = polynomial.split_at(half);
        for (level, output) in levels.chunks_exact_mut(half).enumerate() {
            let digit = Digit::new(d, level);
            let (cos, sin) = (&self.twist.0[..half], &self.twist.1[..half]);
            let output = &mut output[..half];
            for j in 0..half {
                let (re, im) = (digit.extract(low[j]), digit.extract(high[j]));
                output[j].re = re.mul_add(cos[j], -(im * sin[j]));
                output[j].im = re.mul_add(sin[j], im * cos[j]);
            }
            self.forward(output);
        }
    }

    /// Adds the polynomial with this transform to one over the torus. The contents of `values` are unspecified
    /// afterwards.
    #[inline(always)]
    pub(super) fn add_to(&mut self, values: &mut [c64], polynomial: &mut [u64]) {
        self.plan.inv(values, PodStack::new(&mut self.scratch));
        let half = polynomial.len() / 2;
        let scale = 1.0 / half as f64;
        let (low, high) = polynomial.split_at_mut(half);
        let (low, high, values) = (&mut low[..half], &mut high[..half], &values[..half]);
        let (cos, sin) = (&self.twist.0[..half], &self.twist.1[..half]);
        for j in 0..half {
            let (z, cos, sin) = (values[j], cos[j] * scale, sin[j] * scale);
            low[j] = low[j].wrapping_add(to_torus(z.re.mul_add(cos, z.im * sin)));
            high[j] = high[j].wrapping_add(to_torus(z.im.mul_add(cos, -(z.re * sin))));
        }
    }
}

/// Returns a number of turns on the torus, rounded to multiples of `2^12`, far below the rounding of the transform.
#[inline(always)]
fn to_torus(turns: f64) -> u64 {
    // Adding 1.5 * 2^52 to a number below 2^51 leaves its integer part in the low bits of the mantissa.
    const MAGIC: f64 = 6_755_399_441_055_744.0;
    let fraction = turns - turns.round_ties_even();
    fraction.mul_add(2_f64.powi(52), MAGIC).to_bits().wrapping_sub(MAGIC.to_bits()) << 12
}

/// One balanced digit of the leading `levels * base_log` bits of a torus element.
#[derive(Clone, Copy)]
struct Digit {
    /// Rounds off the bits that the digits do not reach, and carries half a base from each level below into the next.
    rounding: u64,
    /// The number of bits above the digit.
    above: u32,
    /// The number of bits outside the digit.
    rest: u32,
}

impl Digit {
    /// Returns a digit; level 0 is the least significant.
    fn new(d: Decomposition, level: usize) -> Self {
        let end = |level: usize| 64 - d.base_log * (d.levels - level);
        let rounding = (0..=level).map(|below| 1_u64 << (end(below) - 1)).sum();
        Self { rounding, above: 64 - end(level + 1) as u32, rest: 64 - d.base_log as u32 }
    }

    #[inline(always)]
    fn extract(self, word: u64) -> f64 {
        let raised = word.wrapping_add(self.rounding) << self.above;
        (raised.cast_signed() >> self.rest) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_balanced_and_sum_to_the_rounded_word() {
        for (base_log, levels) in [(23, 1), (15, 2), (12, 3), (8, 5), (7, 6), (3, 5)] {
            let d = Decomposition { base_log, levels };
            let mut word = 0x9e37_79b9_7f4a_7c15_u64;
            for _ in 0..1000 {
                word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let mut sum = 0_u64;
                for level in 0..levels {
                    let digit = Digit::new(d, level).extract(word);
                    assert!(digit.abs() <= 2_f64.powi(base_log as i32 - 1), "{d:?}: digit {digit}");
                    let weight = 64 - base_log * (levels - level);
                    sum = sum.wrapping_add((digit as i64).cast_unsigned() << weight);
                }
                let error = sum.wrapping_sub(word).cast_signed().unsigned_abs();
                assert!(error <= 1 << (63 - base_log * levels), "{d:?}: word {word:x}, error {error:x}");
            }
        }
    }

    #[test]
    fn turns_become_torus_elements() {
        for (turns, expected) in
            [(0.25, 1 << 62), (-0.25, 3 << 62), (1000.5, 1 << 63), (-7.0, 0), (3.0 + 2_f64.powi(-40), 1 << 24)]
        {
            assert_eq!(to_torus(turns), expected, "{turns}");
        }
    }
}
