//! Products of polynomials modulo `X^N + 1` through the Fourier transform, for `N = 2048`.
//!
//! A real polynomial `p` becomes the `N/2` complex numbers `p_j + i p_(j + N/2)`, whose values at the points `w^(1 + 4k)` with
//! `w = exp(i pi / N)` are the values of `p` there; the values at the other roots of `X^N + 1` are their conjugates. The
//! polynomial is reduced modulo `Y^128 - c` for eight constants `c` at once (one radix-8 step), then modulo `Y^16 - c`, `Y^8 - c` and
//! `Y - c`. So the usual multiplication by `w^j` before the transform is part of its steps. Real and imaginary parts are kept apart, in
//! vectors of eight numbers.

use super::lanes::{Eight, LANES, Lanes, Vectorised, dispatch};
use crate::parameters::Decomposition;

/// Number of coefficients of a polynomial.
pub(super) const N: usize = 2048;
/// Number of values of a transformed polynomial.
const POINTS: usize = N / 2;
/// Number of vectors of values.
pub(super) const VECTORS: usize = POINTS / LANES;
/// Number of blocks: one for each root of the first step.
pub(super) const BLOCKS: usize = 8;
/// Number of vectors of a block.
pub(super) const BLOCK: usize = VECTORS / BLOCKS;

/// A transformed polynomial: its values, in an order that only products of values of the same place depend on.
#[derive(Clone)]
pub(super) struct Values {
    pub(super) re: [Eight; VECTORS],
    pub(super) im: [Eight; VECTORS],
}

impl Values {
    pub(super) const ZERO: Self = Self { re: [Eight::ZERO; VECTORS], im: [Eight::ZERO; VECTORS] };
}

/// Working memory of a transform: both halves of a block, each with real and imaginary parts.
pub(super) struct Scratch(pub(super) [[[Eight; 8]; 2]; 2]);

impl Scratch {
    pub(super) const ZERO: Self = Self([[[Eight::ZERO; 8]; 2]; 2]);
}

/// A complex constant.
#[derive(Clone, Copy)]
struct Constant {
    re: f64,
    im: f64,
}

impl Constant {
    /// Returns `exp(2 pi i turns)` for an exact number of turns below 1.
    fn of_turns(turns: f64) -> Self {
        let [re, im] = root_of_unity(turns);
        Self { re, im }
    }
}

/// Returns `exp(2 pi i turns)` for an exact number of turns, from 0 to below 1. The angle is reduced to an eighth of a turn, because the
/// rounding of a larger angle would be the largest error of a transform.
pub(super) fn root_of_unity(turns: f64) -> [f64; 2] {
    let octant = (8.0 * turns).floor();
    let rest = turns - octant / 8.0;
    let octant = octant as usize % 8;
    let angle = |turns: f64| std::f64::consts::TAU * turns;
    let [re, im] = match octant % 2 {
        0 => [angle(rest).cos(), angle(rest).sin()],
        _ => [angle(0.125 - rest).sin(), angle(0.125 - rest).cos()],
    };
    match octant / 2 {
        0 => [re, im],
        1 => [-im, re],
        2 => [-re, -im],
        _ => [im, -re],
    }
}

/// The constants of the transform.
pub(super) struct Fourier {
    /// First step: by element.
    first: [Constant; 8],
    /// Second step: by block and element.
    second: [[Constant; 8]; 8],
    /// Third step, of radix 2: by block and place in it.
    third: [[Constant; 8]; 8],
    /// Last step: by block, half and element; vectors over the places in a block.
    last: Box<[[[Points; 8]; 2]; 8]>,
}

impl Fourier {
    /// Prepares the transform.
    pub(super) fn new() -> Self {
        // A radix-8 step at the root exp(2 pi i turns) multiplies element t by exp(2 pi i turns t / 8) and continues at the eight roots
        // (turns + k) / 8.
        let root = |turns: f64, t: usize| Constant::of_turns(turns / 8.0 * t as f64);
        let of_block = |block: usize| (0.25 + block as f64) / 8.0;
        let of_place = |block: usize, place: usize| (of_block(block) + place as f64) / 8.0;
        let of_half = |block: usize, place: usize, half: usize| (of_place(block, place) + half as f64) / 2.0;
        let last = |block: usize, half: usize, t: usize| {
            let constants: [Constant; LANES] = std::array::from_fn(|place| root(of_half(block, place, half), t));
            [Eight(constants.map(|c| c.re)), Eight(constants.map(|c| c.im))]
        };
        use std::array::from_fn;
        Self {
            first: from_fn(|t| root(0.25, t)),
            second: from_fn(|block| from_fn(|t| root(of_block(block), t))),
            third: from_fn(|block| from_fn(|place| Constant::of_turns(of_place(block, place) / 2.0))),
            last: Box::new(from_fn(|block| from_fn(|half| from_fn(|t| last(block, half, t))))),
        }
    }

    /// Transforms the polynomial whose coefficients, a part of eight at a time, `coefficients` returns for a place and a part. The first of
    /// two halves; [`Self::finish_block`] is the second.
    #[inline(always)]
    pub(super) fn begin<L: Lanes>(&self, l: L, coefficients: impl Fn(usize, usize) -> L::V, values: &mut Values) {
        for j in 0..BLOCK {
            for part in 0..L::PARTS {
                step(
                    l,
                    values,
                    #[inline(always)]
                    |_, k| {
                        let number = (coefficients(k * BLOCK + j, part), coefficients(VECTORS + k * BLOCK + j, part));
                        turned(l, number, k, &self.first)
                    },
                    #[inline(always)]
                    |values, k, number| put(l, values, j + BLOCK * k, part, number),
                );
            }
        }
    }

    /// Completes the values of one of [`BLOCKS`] blocks: vectors `block * BLOCK` to `(block + 1) * BLOCK`.
    #[inline(always)]
    pub(super) fn finish_block<L: Lanes>(&self, l: L, block: usize, values: &mut Values, scratch: &mut Scratch) {
        let base = block * BLOCK;
        let Scratch(halves) = scratch;
        for part in 0..L::PARTS {
            for j in 0..2 {
                step(
                    l,
                    values,
                    #[inline(always)]
                    |values, k| turned(l, get(l, values, base + j + 2 * k, part), k, &self.second[block]),
                    #[inline(always)]
                    |values, k, number| put(l, values, base + j + 2 * k, part, number),
                );
            }
            let [sums, differences] = &mut *halves;
            for k in 0..8 {
                let (ur, ui) = get(l, values, base + 2 * k, part);
                let v = get(l, values, base + 2 * k + 1, part);
                let (vr, vi) = product(l, v, constant(l, self.third[block][k]));
                l.store(l.add(ur, vr), &mut sums[0][k], part);
                l.store(l.add(ui, vi), &mut sums[1][k], part);
                l.store(l.sub(ur, vr), &mut differences[0][k], part);
                l.store(l.sub(ui, vi), &mut differences[1][k], part);
            }
        }
        for (half, [re, im]) in halves.iter().enumerate() {
            for part in 0..L::PARTS {
                let (x, y) = (l.load_transposed(re, part), l.load_transposed(im, part));
                step(
                    l,
                    values,
                    #[inline(always)]
                    |_, k| match k {
                        0 => (x[0], y[0]),
                        _ => product(l, (x[k], y[k]), points(l, &self.last[block][half][k], part)),
                    },
                    #[inline(always)]
                    |values, k, number| put(l, values, base + 8 * half + k, part, number),
                );
            }
        }
    }

    /// Completes the transform back of values whose blocks [`Self::turn_block_back`] has prepared, up to the factor [`POINTS`]: calls
    /// `coefficients` with the place, the part and the values of eight coefficients.
    #[inline(always)]
    pub(super) fn end<L: Lanes>(&self, l: L, values: &Values, mut coefficients: impl FnMut(usize, usize, L::V)) {
        for j in 0..BLOCK {
            for part in 0..L::PARTS {
                inverse_step(
                    l,
                    &mut coefficients,
                    #[inline(always)]
                    |_, k| get(l, values, j + BLOCK * k, part),
                    #[inline(always)]
                    |coefficients, k, number| {
                        let (x, y) = turned_back(l, number, k, &self.first);
                        coefficients(k * BLOCK + j, part, x);
                        coefficients(VECTORS + k * BLOCK + j, part, y);
                    },
                );
            }
        }
    }

    /// The first half of the transform back, for one block.
    #[inline(always)]
    pub(super) fn turn_block_back<L: Lanes>(&self, l: L, block: usize, values: &mut Values, scratch: &mut Scratch) {
        let base = block * BLOCK;
        let Scratch(halves) = scratch;
        for (half, [re, im]) in halves.iter_mut().enumerate() {
            for part in 0..L::PARTS {
                let mut columns = ([l.splat(0.0); 8], [l.splat(0.0); 8]);
                inverse_step(
                    l,
                    &mut columns,
                    #[inline(always)]
                    |_, k| get(l, values, base + 8 * half + k, part),
                    #[inline(always)]
                    |(x, y), k, number| {
                        (x[k], y[k]) = match k {
                            0 => number,
                            _ => product_with_conjugate(l, number, points(l, &self.last[block][half][k], part)),
                        }
                    },
                );
                l.store_transposed(columns.0, re, part);
                l.store_transposed(columns.1, im, part);
            }
        }
        let [a, b] = &*halves;
        for part in 0..L::PARTS {
            for k in 0..8 {
                let (ar, ai) = (l.load(&a[0][k], part), l.load(&a[1][k], part));
                let (br, bi) = (l.load(&b[0][k], part), l.load(&b[1][k], part));
                let difference = (l.sub(ar, br), l.sub(ai, bi));
                put(l, values, base + 2 * k, part, (l.add(ar, br), l.add(ai, bi)));
                let turned = product_with_conjugate(l, difference, constant(l, self.third[block][k]));
                put(l, values, base + 2 * k + 1, part, turned);
            }
            for j in 0..2 {
                inverse_step(
                    l,
                    values,
                    #[inline(always)]
                    |values, k| get(l, values, base + j + 2 * k, part),
                    #[inline(always)]
                    |values, k, number| {
                        put(l, values, base + j + 2 * k, part, turned_back(l, number, k, &self.second[block]));
                    },
                );
            }
        }
    }
}

/// Returns the number `k` of the point `exp(i pi (1 + 4 k) / N)` at a place of [`Values`].
pub(super) const fn point(block: usize, vector: usize, lane: usize) -> usize {
    block + 8 * lane + 64 * (vector / 8) + 128 * (vector % 8)
}

/// A complex number in each lane: real and imaginary parts.
pub(super) type Complex<L> = (<L as Lanes>::V, <L as Lanes>::V);

/// Loads a part of a vector.
#[inline(always)]
pub(super) fn get<L: Lanes>(l: L, values: &Values, place: usize, part: usize) -> Complex<L> {
    (l.load(&values.re[place], part), l.load(&values.im[place], part))
}

/// Stores a part of a vector.
#[inline(always)]
pub(super) fn put<L: Lanes>(l: L, values: &mut Values, place: usize, part: usize, (re, im): Complex<L>) {
    l.store(re, &mut values.re[place], part);
    l.store(im, &mut values.im[place], part);
}

#[inline(always)]
fn constant<L: Lanes>(l: L, c: Constant) -> Complex<L> {
    (l.splat(c.re), l.splat(c.im))
}

#[inline(always)]
pub(super) fn points<L: Lanes>(l: L, [re, im]: &Points, part: usize) -> Complex<L> {
    (l.load(re, part), l.load(im, part))
}

#[inline(always)]
pub(super) fn product<L: Lanes>(l: L, (ar, ai): Complex<L>, (br, bi): Complex<L>) -> Complex<L> {
    (l.mul_sub(ar, br, l.mul(ai, bi)), l.mul_add(ar, bi, l.mul(ai, br)))
}

#[inline(always)]
fn product_with_conjugate<L: Lanes>(l: L, (ar, ai): Complex<L>, (br, bi): Complex<L>) -> Complex<L> {
    (l.mul_add(ar, br, l.mul(ai, bi)), l.mul_sub(ai, br, l.mul(ar, bi)))
}

/// Multiplies element `k`, unless it is the first, by its constant.
#[inline(always)]
fn turned<L: Lanes>(l: L, number: Complex<L>, k: usize, constants: &[Constant; 8]) -> Complex<L> {
    if k == 0 { number } else { product(l, number, constant(l, constants[k])) }
}

/// Multiplies element `k`, unless it is the first, by the conjugate of its constant.
#[inline(always)]
fn turned_back<L: Lanes>(l: L, number: Complex<L>, k: usize, constants: &[Constant; 8]) -> Complex<L> {
    if k == 0 { number } else { product_with_conjugate(l, number, constant(l, constants[k])) }
}

/// Computes `b_k = sum over t of a_t w^(k t)` with `w = exp(2 pi i / 8)`: `input` returns an element `a_t`, and `output` gets each `b_k`.
///
/// Elements are read as late and written as early as possible, because only sixteen registers of 256 bits exist: at most eight complex
/// numbers are between them.
#[inline(always)]
fn step<L: Lanes, C>(
    l: L,
    context: &mut C,
    input: impl Fn(&C, usize) -> Complex<L>,
    output: impl Fn(&mut C, usize, Complex<L>),
) {
    let ((s0r, s0i), (d0r, d0i)) = sum_and_difference(l, input(context, 0), input(context, 4));
    let ((s2r, s2i), (d2r, d2i)) = sum_and_difference(l, input(context, 2), input(context, 6));
    let (t0r, t0i, t2r, t2i) = (l.add(s0r, s2r), l.add(s0i, s2i), l.sub(s0r, s2r), l.sub(s0i, s2i));
    let (u0r, u0i, u2r, u2i) = (l.sub(d0r, d2i), l.add(d0i, d2r), l.add(d0r, d2i), l.sub(d0i, d2r));
    let ((s1r, s1i), (d1r, d1i)) = sum_and_difference(l, input(context, 1), input(context, 5));
    let ((s3r, s3i), (d3r, d3i)) = sum_and_difference(l, input(context, 3), input(context, 7));
    let (t1r, t1i, t3r, t3i) = (l.add(s1r, s3r), l.add(s1i, s3i), l.sub(s1r, s3r), l.sub(s1i, s3i));
    output(context, 0, (l.add(t0r, t1r), l.add(t0i, t1i)));
    output(context, 4, (l.sub(t0r, t1r), l.sub(t0i, t1i)));
    output(context, 2, (l.sub(t2r, t3i), l.add(t2i, t3r)));
    output(context, 6, (l.add(t2r, t3i), l.sub(t2i, t3r)));
    // Odd elements: w x = ((x - y) + i (x + y)) / sqrt 2 and w^3 x = (-(x + y) + i (x - y)) / sqrt 2; the factor is applied last.
    let h = l.splat(std::f64::consts::FRAC_1_SQRT_2);
    let (e1r, e1i, e3r, e3i) = (l.sub(d1r, d1i), l.add(d1r, d1i), l.add(d3r, d3i), l.sub(d3r, d3i));
    let (v1r, v1i, v3r, v3i) = (l.sub(e1r, e3r), l.add(e1i, e3i), l.add(e1r, e3r), l.sub(e1i, e3i));
    output(context, 1, (l.mul_add(h, v1r, u0r), l.mul_add(h, v1i, u0i)));
    output(context, 5, (l.neg_mul_add(h, v1r, u0r), l.neg_mul_add(h, v1i, u0i)));
    output(context, 3, (l.neg_mul_add(h, v3i, u2r), l.mul_add(h, v3r, u2i)));
    output(context, 7, (l.mul_add(h, v3i, u2r), l.neg_mul_add(h, v3r, u2i)));
}

#[inline(always)]
fn sum_and_difference<L: Lanes>(l: L, (ar, ai): Complex<L>, (br, bi): Complex<L>) -> (Complex<L>, Complex<L>) {
    ((l.add(ar, br), l.add(ai, bi)), (l.sub(ar, br), l.sub(ai, bi)))
}

/// Computes `a_t = sum over k of b_k w^(-k t)`: the step with real and imaginary parts exchanged.
#[inline(always)]
fn inverse_step<L: Lanes, C>(
    l: L,
    context: &mut C,
    input: impl Fn(&C, usize) -> Complex<L>,
    output: impl Fn(&mut C, usize, Complex<L>),
) {
    step(
        l,
        context,
        #[inline(always)]
        |context: &C, k| {
            let (re, im) = input(context, k);
            (im, re)
        },
        #[inline(always)]
        |context, k, (im, re)| output(context, k, (re, im)),
    );
}

/// Eight values of a transformed polynomial: real and imaginary parts.
pub(super) type Points = [Eight; 2];

/// Returns the transform of a polynomial over the torus, as fractions of a turn, divided by the factor that a transform there and back
/// has.
pub(super) fn transform(fourier: &Fourier, polynomial: &[u64]) -> [Points; VECTORS] {
    // Both factors are powers of two, so no digit is lost.
    let scale = 2_f64.powi(-64) / POINTS as f64;
    let (mut coefficients, mut values) = ([Eight::ZERO; N / LANES], Values::ZERO);
    convert(&mut coefficients, polynomial, |word| word.cast_signed() as f64 * scale);
    let mut scratch = Scratch::ZERO;
    dispatch(Transform { fourier, coefficients: &coefficients, values: &mut values, scratch: &mut scratch });
    std::array::from_fn(|vector| [values.re[vector], values.im[vector]])
}

/// Converts the coefficients of a polynomial.
pub(super) fn convert(coefficients: &mut Coefficients, polynomial: &[u64], number: impl Fn(u64) -> f64) {
    let (words, _) = polynomial.as_chunks::<LANES>();
    for (eight, words) in coefficients.iter_mut().zip(words) {
        *eight = Eight::each(|lane| number(words[lane]));
    }
}

/// The coefficients of a polynomial.
pub(super) type Coefficients = [Eight; N / LANES];

/// A transform.
pub(super) struct Transform<'a> {
    pub(super) fourier: &'a Fourier,
    pub(super) coefficients: &'a Coefficients,
    pub(super) values: &'a mut Values,
    pub(super) scratch: &'a mut Scratch,
}

impl Vectorised for Transform<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) {
        let Self { fourier, coefficients, values, scratch } = self;
        fourier.begin(
            l,
            #[inline(always)]
            |k, part| l.load(&coefficients[k], part),
            values,
        );
        for block in 0..BLOCKS {
            fourier.finish_block(l, block, values, scratch);
        }
    }
}

/// `1.5 * 2^52`: added to a number below `2^51`, it leaves the nearest integer in the low bits of the mantissa ([`integer`]).
pub(super) const INTEGERS: f64 = 6_755_399_441_055_744.0;

/// Returns the integer `n` of `INTEGERS + n`.
#[inline(always)]
pub(super) fn integer(raised: f64) -> u64 {
    raised.to_bits().wrapping_sub(INTEGERS.to_bits())
}

/// Returns a number of turns on the torus, rounded to multiples of `2^12`, far below the rounding of the transform.
#[inline(always)]
pub(super) fn to_torus(turns: f64) -> u64 {
    let fraction = turns - turns.round_ties_even();
    integer(fraction.mul_add(2_f64.powi(52), INTEGERS)) << 12
}

/// One balanced digit of the leading `levels * base_log` bits of a torus element.
#[derive(Clone, Copy)]
pub(super) struct Digit {
    /// Rounds off the bits that the digits do not reach, carries half a base from each level below into the next, and adds half a base to
    /// the digit, so that it has no sign.
    rounding: u64,
    /// The number of bits below the digit.
    below: u32,
    /// The bits of the digit.
    mask: u64,
    /// `2^52` and half a base.
    raised: f64,
}

impl Digit {
    /// Returns a digit; level 0 is the least significant.
    pub(super) fn new(d: Decomposition, level: usize) -> Self {
        let half_base = |level: usize| 1_u64 << (d.lowest_bit(level) + d.base_log - 1);
        // Half a unit of the lowest digit, and half a base from it to this one.
        let rounding = (0..=level).map(half_base).fold(1 << (d.lowest_bit(0) - 1), u64::wrapping_add);
        let below = d.lowest_bit(level) as u32;
        let base = 1_u64 << d.base_log;
        Self { rounding, below, mask: base - 1, raised: 2_f64.powi(52) + (base / 2) as f64 }
    }

    /// Returns the digit, with operations that processors have for vectors: an integer below `2^52` in the mantissa of `2^52`.
    #[inline(always)]
    pub(super) fn extract(self, word: u64) -> f64 {
        let unsigned = (word.wrapping_add(self.rounding) >> self.below) & self.mask;
        f64::from_bits(unsigned | 2_f64.powi(52).to_bits()) - self.raised
    }
}

#[cfg(test)]
mod tests {
    use super::super::lanes::Plain;
    use super::*;

    /// Values of a polynomial at the points `exp(i pi (1 + 4 k) / N)`, by the definition.
    fn values_by_definition(coefficients: &[f64]) -> Vec<[f64; 2]> {
        let at = |k: usize| {
            let angle = |j: usize| std::f64::consts::PI * ((1 + 4 * k) * j % (2 * N)) as f64 / N as f64;
            let sum = |part: fn(f64) -> f64| coefficients.iter().enumerate().map(|(j, c)| c * part(angle(j))).sum();
            [sum(f64::cos), sum(f64::sin)]
        };
        (0..POINTS).map(at).collect()
    }

    #[test]
    fn values_are_those_of_the_polynomial_and_give_it_back() {
        let coefficients: Vec<f64> = (0..N).map(|i| ((i * 7919) % 1013) as f64 - 500.0).collect();
        let (fourier, mut values) = (Fourier::new(), Box::new(Values::ZERO));
        let (vectors, _) = coefficients.as_chunks::<LANES>();
        fourier.begin(Plain, |k, _| vectors[k], &mut values);
        let mut scratch = Scratch::ZERO;
        (0..BLOCKS).for_each(|block| fourier.finish_block(Plain, block, &mut values, &mut scratch));
        let expected = values_by_definition(&coefficients);
        for block in 0..BLOCKS {
            for vector in 0..BLOCK {
                for lane in 0..LANES {
                    let place = block * BLOCK + vector;
                    let [re, im] = expected[point(block, vector, lane)];
                    assert!(
                        (values.re[place].0[lane] - re).abs() < 1e-6,
                        "block {block}, vector {vector}, lane {lane}"
                    );
                    assert!(
                        (values.im[place].0[lane] - im).abs() < 1e-6,
                        "block {block}, vector {vector}, lane {lane}"
                    );
                }
            }
        }
        (0..BLOCKS).for_each(|block| fourier.turn_block_back(Plain, block, &mut values, &mut scratch));
        let mut back = vec![0.0; N];
        fourier.end(Plain, &values, |k, _, eight| back[LANES * k..][..LANES].copy_from_slice(&eight));
        for (back, coefficient) in back.iter().zip(&coefficients) {
            assert!((back / POINTS as f64 - coefficient).abs() < 1e-9);
        }
    }

    #[test]
    fn digits_are_balanced_and_sum_to_the_rounded_word() {
        for (base_log, levels) in [(23, 1), (15, 2), (12, 3), (8, 5), (7, 6), (3, 5)] {
            let d = Decomposition { base_log, levels };
            let mut random = 0x9e37_79b9_7f4a_7c15_u64;
            let lowest = 1_u64 << (d.lowest_bit(0) - 1);
            let edges = [0, u64::MAX, 1 << 63, (1 << 63) - 1, lowest, lowest - 1, lowest.wrapping_neg()];
            for draw in 0..1000 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let word = edges.get(draw).copied().unwrap_or(random);
                let mut sum = 0_u64;
                for level in 0..levels {
                    let digit = Digit::new(d, level).extract(word);
                    assert!(digit.abs() <= 2_f64.powi(base_log as i32 - 1), "{d:?}: digit {digit}");
                    sum = sum.wrapping_add((digit as i64).cast_unsigned().wrapping_mul(d.weight(level)));
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
