//! Exact products with a secret key modulo `X^N + 1` and `2^64`, for the generation of keys.

use zeroize::Zeroize as _;

use super::fourier::{
    BLOCKS, Fourier, INTEGERS, N, Scratch, Transform, VECTORS, Values, convert, get, integer, product, put,
};
use super::lanes::{Eight, LANES, Lanes, Vectorised, dispatch, lanes_of};

/// Bits of each limb of a word.
const LIMB: u32 = 22;
/// Number of limbs, the last of 20 bits.
const LIMBS: u32 = 3;

/// A polynomial with coefficients 0 and 1, ready for products with others, which are computed in three limbs.
///
/// Each limb's product is exact. A limb has coefficients up to `2^21` in absolute value, so its 2-norm is at most `2^26.5`, that of the
/// binary polynomial at most `2^5.5`, and no coefficient of their product exceeds `2^32`. A transform has three steps of radix 8 and one of radix 2,
/// together as deep as eleven of radix 2. It errs by at most `100 u`, `u = 2^-53`, of the 2-norm (Higham, Accuracy and Stability of Numerical
/// Algorithms, theorem 24.2, for constants with an error of `3 u`). By Cauchy and Schwarz the errors of both transforms and of their
/// product come to `2^(26.5 + 5.5) * 203 u < 2^-13` in a coefficient, and the transform back of a product whose 2-norm is at most
/// `2^(32 + 5.5)` adds `2^37.5 * 100 u < 2^-8`: far less than one half, so that rounding finds the integer.
pub(crate) struct BinaryPolynomial {
    fourier: Fourier,
    values: Box<Values>,
}

impl BinaryPolynomial {
    /// Transforms a polynomial with coefficients 0 and 1.
    pub(crate) fn new(bits: &[u64]) -> Self {
        let (fourier, mut values) = (Fourier::new(), Box::new(Values::ZERO));
        let (mut coefficients, mut scratch) = ([Eight::ZERO; N / LANES], Scratch::ZERO);
        // The factor of a transform there and back is a power of two, so it does not round.
        convert(&mut coefficients, bits, |word| word as f64 / (N / 2) as f64);
        dispatch(Transform {
            fourier: &fourier,
            coefficients: &coefficients,
            values: &mut values,
            scratch: &mut scratch,
        });
        wipe(&mut coefficients);
        scratch.wipe();
        Self { fourier, values }
    }

    /// Adds the product with `polynomial` to `sum`.
    pub(crate) fn add_product(&self, polynomial: &[u64], sum: &mut [u64]) {
        let (sum, _) = sum.as_chunks_mut::<LANES>();
        let (mut coefficients, mut values, mut scratch) = ([Eight::ZERO; N / LANES], Values::ZERO, Scratch::ZERO);
        for limb in 0..LIMBS {
            convert(&mut coefficients, polynomial, |word| balanced(word, limb) as f64);
            dispatch(Transform {
                fourier: &self.fourier,
                coefficients: &coefficients,
                values: &mut values,
                scratch: &mut scratch,
            });
            dispatch(Back { key: self, values: &mut values, scratch: &mut scratch, shift: limb * LIMB, sum });
        }
        // With the polynomial, which is public, these numbers give the bits.
        wipe(&mut values.re);
        wipe(&mut values.im);
        scratch.wipe();
    }
}

impl Scratch {
    fn wipe(&mut self) {
        self.0.as_flattened_mut().iter_mut().for_each(|numbers| wipe(numbers));
    }
}

impl Drop for BinaryPolynomial {
    fn drop(&mut self) {
        wipe(&mut self.values.re);
        wipe(&mut self.values.im);
    }
}

fn wipe(numbers: &mut [Eight]) {
    numbers.iter_mut().for_each(|eight| eight.0.zeroize());
}

/// Returns a limb of a word, from `-2^21` to `2^21 - 1`: limbs times `2^(22 limb)` add up to the word modulo `2^64`.
#[inline(always)]
fn balanced(word: u64, limb: u32) -> i64 {
    // Half a base in each limb below carries into the next.
    const HALVES: [u64; 3] = [1 << 21, (1 << 21) + (1 << 43), (1 << 21) + (1 << 43)];
    let raised = word.wrapping_add(HALVES[limb as usize]) >> (limb * LIMB);
    if limb + 1 == LIMBS {
        // The last limb has 20 bits with a sign. A carry out of it is a multiple of 2^64.
        return (raised << 44).cast_signed() >> 44;
    }
    (raised & ((1 << LIMB) - 1)).cast_signed() - (1 << (LIMB - 1))
}

struct Back<'a> {
    key: &'a BinaryPolynomial,
    values: &'a mut Values,
    scratch: &'a mut Scratch,
    shift: u32,
    sum: &'a mut [[u64; LANES]],
}

impl Vectorised for Back<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) {
        let Self { key, values, scratch, shift, sum } = self;
        for place in 0..VECTORS {
            for part in 0..L::PARTS {
                let number = product(l, get(l, values, place, part), get(l, &key.values, place, part));
                put(l, values, place, part, number);
            }
        }
        for block in 0..BLOCKS {
            key.fourier.turn_block_back(l, block, values, scratch);
        }
        key.fourier.end(
            l,
            values,
            #[inline(always)]
            |k, part, coefficients| {
                let raised = l.numbers(l.add(coefficients, l.splat(INTEGERS)));
                for (sum, raised) in sum[k][lanes_of::<L>(part)].iter_mut().zip(raised.as_ref()) {
                    *sum = sum.wrapping_add(integer(*raised) << shift);
                }
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt as _;
    use speed_core::random::Streams;
    use tfhe::core_crypto::algorithms::polynomial_algorithms::polynomial_karatsuba_wrapping_mul;
    use tfhe::core_crypto::prelude::Polynomial;

    use super::*;

    fn by_tfhe(a: &[u64], b: &[u64]) -> Vec<u64> {
        let polynomial = |words: &[u64]| Polynomial::from_container(words.to_vec());
        let mut product = polynomial(&vec![0; N]);
        polynomial_karatsuba_wrapping_mul(&mut product, &polynomial(a), &polynomial(b));
        product.into_container()
    }

    #[test]
    fn limbs_add_up_to_the_word() {
        let mut stream = Streams::new(5).stream("limbs", 0);
        for word in [0, 1, u64::MAX, 1 << 63, (1 << 63) - 1, (1 << 21) - 1, 1 << 21, 1 << 43, (1 << 43) - 1]
            .into_iter()
            .chain((0..1000).map(|_| stream.random()))
        {
            let limbs = (0..LIMBS).map(|limb| balanced(word, limb));
            assert!(limbs.clone().all(|limb| (-(1 << 21)..1 << 21).contains(&limb)), "{word:x}");
            let sum =
                limbs.zip(0..).fold(0, |sum: u64, (limb, i)| sum.wrapping_add(limb.cast_unsigned() << (i * LIMB)));
            assert_eq!(sum, word, "{word:x}");
        }
    }

    #[test]
    fn products_are_exact_also_with_the_largest_sums() {
        let mut stream = Streams::new(5).stream("products", 0);
        let mut random = |bits: bool| (0..N).map(|_| stream.random::<u64>() >> if bits { 63 } else { 0 }).collect();
        // Every limb at its lowest or near its highest, and all bits 1: no product has larger coefficients.
        let lowest = (1_u64 << 63).wrapping_sub((1 << 21) + (1 << 43));
        let polynomials: [Vec<u64>; 5] =
            [random(false), random(false), vec![lowest; N], vec![!lowest; N], vec![u64::MAX; N]];
        for key in [random(true), vec![1; N], vec![0; N]] {
            let prepared = BinaryPolynomial::new(&key);
            for polynomial in &polynomials {
                let mut sum: Vec<u64> = (0..N as u64).collect();
                prepared.add_product(polynomial, &mut sum);
                let expected =
                    by_tfhe(polynomial, &key).into_iter().zip(0..).map(|(p, i): (u64, u64)| p.wrapping_add(i));
                assert_eq!(sum, expected.collect::<Vec<_>>());
            }
        }
    }
}
