//! The external product of a GGSW ciphertext (a matrix of ring ciphertexts) and a ring ciphertext, and the blind
//! rotation built from it.

use aligned_vec::{AVec, avec};
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;
use tfhe_fft::c64;

use super::fourier::{Block, Fourier, LANES};
use crate::parameters::Decomposition;

/// Fourier-transformed GGSW ciphertexts with one mask polynomial. A ciphertext has one row for each polynomial of a
/// ring ciphertext and each level of the decomposition; each row has two polynomials.
pub(crate) struct GgswList {
    decomposition: Decomposition,
    n: usize,
    /// By ciphertext, block, row, column: operands of one product are contiguous.
    blocks: Vec<Block>,
}

impl GgswList {
    /// Transforms ciphertexts from tfhe's order: level by level from the last to the first, one row for the mask and
    /// one for the body, each with mask and body. Runs on rayon's current pool.
    pub(crate) fn new(n: usize, decomposition: Decomposition, words: &[u64]) -> Self {
        let columns_each = 4 * decomposition.levels;
        let transform = |fourier: &mut Fourier, words: &[u64]| -> Vec<Block> {
            let columns: Vec<Vec<Block>> = words.chunks_exact(n).map(|words| fourier.transform(words)).collect();
            (0..n / 2 / LANES).flat_map(|block| columns.iter().map(move |column| column[block])).collect()
        };
        let ciphertexts = words.par_chunks_exact(columns_each * n).map_init(|| Fourier::new(n), transform);
        let blocks = ciphertexts.flatten_iter().collect();
        Self { decomposition, n, blocks }
    }

    /// Returns the size in memory, in bytes.
    pub(crate) fn size(&self) -> usize {
        size_of_val(self.blocks.as_slice())
    }

    /// Returns the ciphertexts.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[Block]> {
        self.blocks.chunks_exact(2 * self.decomposition.levels * self.n / LANES)
    }
}

/// The working memory of external products. Work proceeds one polynomial at a time, so that the output of one pass is
/// still in the innermost cache when the next pass reads it.
pub(super) struct ExternalProduct {
    n: usize,
    fourier: Fourier,
    /// Transformed digits of the input, by polynomial and level.
    digits: AVec<c64>,
    products: AVec<c64>,
    difference: AVec<u64>,
}

impl ExternalProduct {
    /// Prepares products for polynomials with `n` coefficients and decompositions of up to `levels` levels.
    pub(super) fn new(n: usize, levels: usize) -> Self {
        let fourier = Fourier::new(n);
        let (digits, products) = (fourier.buffer(2 * levels), fourier.buffer(2));
        Self { n, fourier, digits, products, difference: avec![0; n] }
    }

    /// Adds the product of a ciphertext of `list` and a ring ciphertext to `output`.
    pub(super) fn add(&mut self, output: &mut [u64], list: &GgswList, ggsw: &[Block], input: &[u64]) {
        let half = list.decomposition.levels * self.n / 2;
        for (polynomial, digits) in input.chunks_exact(self.n).zip(self.digits.chunks_exact_mut(half)) {
            self.fourier.decompose(polynomial, list.decomposition, digits);
        }
        self.add_product_of_digits(output, list, ggsw);
    }

    /// Rotates each table to the phase of its input: multiplies it by `X^-phase`, where the phase is
    /// `body - mask * key` for the key whose bits `list` encrypts. Reads every ciphertext of the list once for all
    /// tables.
    pub(super) fn blind_rotate(&mut self, tables: &mut [AVec<u64>], inputs: &[Rotation], list: &GgswList) {
        Arch::new().dispatch(BlindRotation { product: self, tables, inputs, list });
    }

    #[inline(always)]
    fn rotate_all(&mut self, tables: &mut [AVec<u64>], inputs: &[Rotation], list: &GgswList) {
        let n = self.n;
        for (table, input) in tables.iter_mut().zip(inputs) {
            for polynomial in table.chunks_exact_mut(n) {
                turn(polynomial, 2 * n - input.body, &mut self.difference, |turned, _| turned);
                polynomial.copy_from_slice(&self.difference);
            }
        }
        let half = list.decomposition.levels * n / 2;
        for (position, ggsw) in list.iter().enumerate() {
            for (table, input) in tables.iter_mut().zip(inputs) {
                let exponent = input.mask[position];
                if exponent != 0 {
                    for (polynomial, digits) in table.chunks_exact(n).zip(self.digits.chunks_exact_mut(half)) {
                        turn(polynomial, exponent, &mut self.difference, u64::wrapping_sub);
                        self.fourier.decompose(&self.difference, list.decomposition, digits);
                    }
                    self.add_product_of_digits(table, list, ggsw);
                }
            }
        }
    }

    #[inline(always)]
    fn add_product_of_digits(&mut self, output: &mut [u64], list: &GgswList, ggsw: &[Block]) {
        match list.decomposition.levels {
            1 => multiply::<1>(&self.digits, ggsw, &mut self.products),
            2 => multiply::<2>(&self.digits, ggsw, &mut self.products),
            3 => multiply::<3>(&self.digits, ggsw, &mut self.products),
            5 => multiply::<5>(&self.digits, ggsw, &mut self.products),
            6 => multiply::<6>(&self.digits, ggsw, &mut self.products),
            levels => unreachable!("no parameter set has {levels} levels"),
        }
        for (values, polynomial) in self.products.chunks_exact_mut(self.n / 2).zip(output.chunks_exact_mut(self.n)) {
            self.fourier.add_to(values, polynomial);
        }
    }
}

/// A blind rotation, compiled for each vector instruction set that a processor may have. The results are bit-identical.
struct BlindRotation<'a> {
    product: &'a mut ExternalProduct,
    tables: &'a mut [AVec<u64>],
    inputs: &'a [Rotation],
    list: &'a GgswList,
}

impl WithSimd for BlindRotation<'_> {
    type Output = ();

    // Inline everything: a separate function would be compiled for the baseline target features.
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { product, tables, inputs, list } = self;
        product.rotate_all(tables, inputs, list);
    }
}

/// The input of a blind rotation, each element rounded to one of `2N` buckets.
pub(super) struct Rotation {
    pub(super) mask: Vec<usize>,
    pub(super) body: usize,
}

/// Computes `X^exponent * input` modulo `X^N + 1` (exponents up to `2N`) and writes `combine(turned, input)` of all
/// coefficients to `output`.
#[inline(always)]
fn turn(input: &[u64], exponent: usize, output: &mut [u64], combine: impl Fn(u64, u64) -> u64) {
    let n = input.len();
    let shift = exponent % n;
    let (kept, carried) = input.split_at(n - shift);
    // Each wrap-around X^N = -1 flips the sign: once more for the coefficients that are carried over the end.
    let combine_all = |output: &mut [u64], turned: &[u64], input: &[u64], negative: bool| {
        let pairs = output.iter_mut().zip(turned.iter().zip(input));
        if negative {
            pairs.for_each(|(output, (turned, input))| *output = combine(turned.wrapping_neg(), *input));
        } else {
            pairs.for_each(|(output, (turned, input))| *output = combine(*turned, *input));
        }
    };
    let negative = exponent / n % 2 == 1;
    let ((low, high), (low_input, high_input)) = (output.split_at_mut(shift), input.split_at(shift));
    combine_all(low, carried, low_input, !negative);
    combine_all(high, kept, high_input, negative);
}

/// Returns the product of a vector of digits and a matrix, in the Fourier domain: for each point, the sum over rows.
#[inline(always)]
fn multiply<const LEVELS: usize>(digits: &[c64], ggsw: &[Block], products: &mut [c64]) {
    let size = products.len() / 2;
    let (masks, bodies) = products.split_at_mut(size);
    let outputs = masks.as_chunks_mut::<LANES>().0.iter_mut().zip(bodies.as_chunks_mut::<LANES>().0);
    // Digits are ordered by polynomial and level, rows by level and polynomial.
    let rows: [[&[[c64; LANES]]; 2]; LEVELS] = std::array::from_fn(|level| {
        std::array::from_fn(|polynomial| digits[(polynomial * LEVELS + level) * size..][..size].as_chunks().0)
    });
    for ((block, matrix), (mask, body)) in ggsw.chunks_exact(4 * LEVELS).enumerate().zip(outputs) {
        let (mut masks, mut bodies) = (Sum::ZERO, Sum::ZERO);
        for (row, columns) in rows.as_flattened().iter().zip(matrix.as_chunks::<2>().0) {
            let digits = &row[block];
            masks.add_product(digits, &columns[0]);
            bodies.add_product(digits, &columns[1]);
        }
        *mask = masks.value();
        *body = bodies.value();
    }
}

/// A sum of complex products `a b`, kept as the two sums of `re(a) b` and of `im(a) b`, so that elements are reordered
/// only once, at the end.
struct Sum([f64; 2 * LANES], [f64; 2 * LANES]);

impl Sum {
    const ZERO: Self = Self([0.0; 2 * LANES], [0.0; 2 * LANES]);

    #[inline(always)]
    fn add_product(&mut self, a: &[c64; LANES], b: &Block) {
        for (((real, imaginary), a), b) in
            self.0.as_chunks_mut::<2>().0.iter_mut().zip(self.1.as_chunks_mut::<2>().0).zip(a).zip(&b.0)
        {
            real[0] = a.re.mul_add(b.re, real[0]);
            real[1] = a.re.mul_add(b.im, real[1]);
            imaginary[0] = a.im.mul_add(b.re, imaginary[0]);
            imaginary[1] = a.im.mul_add(b.im, imaginary[1]);
        }
    }

    #[inline(always)]
    fn value(&self) -> [c64; LANES] {
        std::array::from_fn(|k| c64::new(self.0[2 * k] - self.1[2 * k + 1], self.0[2 * k + 1] + self.1[2 * k]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_a_product_with_a_power_of_x() {
        let n = 8;
        let input: Vec<u64> = (1..=8).collect();
        let mut turned = vec![0; n];
        for exponent in 0..=2 * n {
            // The definition, one step at a time.
            let mut expected = input.clone();
            for _ in 0..exponent {
                expected.rotate_right(1);
                expected[0] = expected[0].wrapping_neg();
            }
            turn(&input, exponent, &mut turned, |turned, _| turned);
            assert_eq!(turned, expected, "exponent {exponent}");
            turn(&input, exponent, &mut turned, u64::wrapping_sub);
            let less: Vec<u64> = expected.iter().zip(&input).map(|(a, b)| a.wrapping_sub(*b)).collect();
            assert_eq!(turned, less, "exponent {exponent}");
        }
    }

    #[test]
    fn an_external_product_with_plain_weights_gives_the_input_back() {
        // A GGSW ciphertext of 1 without noise or mask: the product with it is the input, except for the part that
        // digits do not reach and the rounding of the transform.
        let (n, decomposition) = (64, Decomposition { base_log: 12, levels: 3 });
        let mut words = vec![0; 2 * decomposition.levels * 2 * n];
        for (level, matrix) in words.chunks_exact_mut(4 * n).enumerate() {
            let weight = 1 << (64 - decomposition.base_log * (decomposition.levels - level));
            matrix[0] = weight;
            matrix[3 * n] = weight;
        }
        let list = GgswList::new(n, decomposition, &words);
        let input: Vec<u64> = (0..2 * n as u64).map(|i| (i + 3).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        let mut output = input.clone();
        ExternalProduct::new(n, 3).add(&mut output, &list, list.iter().next().expect("one ciphertext"), &input);
        for (output, input) in output.iter().zip(&input) {
            let error = output.wrapping_sub(input.wrapping_mul(2)).cast_signed().unsigned_abs();
            assert!(error < 1 << 28, "off by {error}");
        }
    }
}
