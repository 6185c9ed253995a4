//! Exact products with a secret key modulo `X^N + 1` and `2^64`, for the generation of keys.

use zeroize::Zeroize as _;

use super::fourier::{
    BLOCK, BLOCKS, Fourier, INTEGERS, N, Scratch, Transform, Values, convert, get, integer, product, put,
};
use super::lanes::{Eight, LANES, Lanes, Vectorised, dispatch, lanes_of};

/// Bits of each of the two limbs of a word.
const LIMB: u32 = 32;

/// A polynomial with coefficients 0 and 1, ready for products with others, which are computed in two limbs.
///
/// The product with a uniform polynomial is exact except with a probability below `2^-170`. A limb has coefficients up to `2^31` in
/// absolute value, so its 2-norm is at most `2^36.5`, and that of the binary polynomial is at most `2^5.5`. A transform has three steps of
/// radix 8 and one of radix 2. With `u = 2^-53`, a step of radix 8 errs by at most `10 u` of the 2-norm: `5 u` by its constants and their
/// products with fused additions (Jeannerod, Kornerup, Louvet and Muller, 2017), and `5 u` by its sums; that of radix 2 by `6 u`. With
/// terms of second order, a transform errs by less than `40 u`. By Cauchy and Schwarz the errors of both transforms and of their product
/// come to less than `2^(36.5 + 5.5) * 83 u < 2^-4` in a coefficient. A coefficient of the product is a sum of up to 2048 uniform numbers
/// of 32 bits and either sign, and exceeds `2^40.5` with a probability below `2^-183` (Hoeffding). Otherwise the 2-norm of the product is
/// at most `2^(40.5 + 5.5)`, and the transform back errs by less than `2^46 * 40 u < 0.32`. The sum is below one half, so that rounding
/// finds the integer.
pub(crate) struct BinaryPolynomial {
    fourier: Fourier,
    values: Box<Values>,
}

/// The working memory of products with a secret polynomial.
pub(crate) struct ProductMemory {
    values: Values,
    scratch: Scratch,
}

impl ProductMemory {
    /// Returns memory in one place, so that no copies stay behind.
    pub(crate) fn new() -> Box<Self> {
        Box::new(Self { values: Values::ZERO, scratch: Scratch::ZERO })
    }
}

/// With the other factors, which are public, these numbers give the bits.
impl Drop for ProductMemory {
    fn drop(&mut self) {
        wipe(&mut self.values.re);
        wipe(&mut self.values.im);
        self.scratch.wipe();
    }
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

    /// Adds the product with `polynomial`, of uniform words, to `sum`.
    pub(crate) fn add_product(&self, polynomial: &[u64], sum: &mut [u64], memory: &mut ProductMemory) {
        dispatch(Addition { key: self, polynomial, sum, memory });
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

/// Returns a limb of a word, from `-2^31` to `2^31 - 1`: limbs times `2^(32 limb)` add up to the word modulo `2^64`. An integer below
/// `2^52` in the mantissa of `2^52` is converted by operations that processors have for vectors.
#[inline(always)]
fn balanced(word: u64, limb: u32) -> f64 {
    // Half a base in the first limb carries into the second. Half a base in both makes them unsigned.
    const HALVES: u64 = (1 << 31) + (1 << 63);
    const RAISED: f64 = ((1_u64 << 52) + (1 << 31)) as f64;
    let unsigned = word.wrapping_add(HALVES) >> (limb * LIMB) & u64::from(u32::MAX);
    f64::from_bits(unsigned | 2_f64.powi(52).to_bits()) - RAISED
}

struct Addition<'a> {
    key: &'a BinaryPolynomial,
    polynomial: &'a [u64],
    sum: &'a mut [u64],
    memory: &'a mut ProductMemory,
}

impl Vectorised for Addition<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) {
        let Self { key: BinaryPolynomial { fourier, values: key }, polynomial, sum, memory } = self;
        let ProductMemory { values, scratch } = memory;
        let ((polynomial, _), (sum, _)) = (polynomial.as_chunks::<LANES>(), sum.as_chunks_mut::<LANES>());
        for limb in 0..2 {
            fourier.begin(
                l,
                #[inline(always)]
                |k, part| {
                    let words = &polynomial[k][lanes_of::<L>(part)];
                    l.each(
                        #[inline(always)]
                        |lane| balanced(words[lane], limb),
                    )
                },
                values,
            );
            for block in 0..BLOCKS {
                fourier.finish_block(l, block, values, scratch);
                for place in block * BLOCK..(block + 1) * BLOCK {
                    for part in 0..L::PARTS {
                        let number = product(l, get(l, values, place, part), get(l, key, place, part));
                        put(l, values, place, part, number);
                    }
                }
                fourier.turn_block_back(l, block, values, scratch);
            }
            fourier.end(
                l,
                values,
                #[inline(always)]
                |k, part, coefficients| {
                    let raised = l.numbers(l.add(coefficients, l.splat(INTEGERS)));
                    for (sum, raised) in sum[k][lanes_of::<L>(part)].iter_mut().zip(raised.as_ref()) {
                        *sum = sum.wrapping_add(integer(*raised) << (limb * LIMB));
                    }
                },
            );
        }
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
    fn products_are_exact_also_with_the_largest_sums() {
        let mut stream = Streams::new(5).stream("products", 0);
        let mut random = |bits: bool| (0..N).map(|_| stream.random::<u64>() >> if bits { 63 } else { 0 }).collect();
        // Every limb at its lowest or near its highest, and all bits 1: no product has larger coefficients.
        let lowest = (1_u64 << 63).wrapping_sub(1 << 31);
        let polynomials: [Vec<u64>; 5] =
            [random(false), random(false), vec![lowest; N], vec![!lowest; N], vec![u64::MAX; N]];
        let mut memory = ProductMemory::new();
        for key in [random(true), vec![1; N], vec![0; N]] {
            let prepared = BinaryPolynomial::new(&key);
            for polynomial in &polynomials {
                let mut sum: Vec<u64> = (0..N as u64).collect();
                prepared.add_product(polynomial, &mut sum, &mut memory);
                let expected =
                    by_tfhe(polynomial, &key).into_iter().zip(0..).map(|(p, i): (u64, u64)| p.wrapping_add(i));
                assert_eq!(sum, expected.collect::<Vec<_>>());
            }
        }
    }
}
