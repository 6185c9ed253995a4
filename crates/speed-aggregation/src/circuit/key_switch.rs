//! Key switching, from the big key to the small one, as an integer matrix product.

use rayon::prelude::*;
use tfhe::core_crypto::prelude::*;

use super::lwe::Lwe;
use crate::keys::{Seeded, Stream};
use crate::parameters::Parameters;

/// The key switching key: one row for each mask element of the input and each digit of its decomposition, one column
/// for each word of the output.
///
/// Words are rounded to multiples of `2^32`; the rounding error is far below their noise of at least `2^44`. So `f64`
/// holds all products without rounding: digits are at most 4 in absolute value, rounded words are below `2^31`, and a
/// sum of 12,288 products is below `2^47`. A fast `f64` routine can therefore compute the matrix product, and the
/// result does not depend on the order of summation.
pub(crate) struct KeySwitchKey {
    rows: Vec<i32>,
}

/// log2 of the weight of one unit of a rounded word.
const ROUNDING_LOG: u32 = 32;

/// Rows converted to `f64` at a time: 1.9 MB, which fit a core's cache.
const BLOCK: usize = 256;

impl KeySwitchKey {
    pub(crate) fn expand(p: &Parameters, seeded: Seeded) -> Self {
        let n = p.lwe_dimension;
        let masks = Stream::new(seeded.seed);
        let half = 1 << (ROUNDING_LOG - 1);
        let round = |word: u64| (word.wrapping_add(half) >> ROUNDING_LOG) as u32 as i32;
        let mut rows = vec![0; seeded.bodies.len() * (n + 1)];
        rows.par_chunks_exact_mut(n + 1).zip(&seeded.bodies).enumerate().for_each_init(
            || vec![0; n],
            |mask, (number, (row, body))| {
                masks.uniform(number * n, mask);
                row.iter_mut().zip(mask.iter().chain([body])).for_each(|(word, &exact)| *word = round(exact));
            },
        );
        Self { rows }
    }

    /// Returns the size in memory, in bytes.
    pub(crate) fn size(&self) -> usize {
        size_of_val(self.rows.as_slice())
    }

    /// Switches the inputs to the small key.
    pub(super) fn switch(&self, p: &Parameters, inputs: &[Lwe]) -> Vec<Lwe> {
        let size = p.small_dimension().to_lwe_size();
        let columns = size.0;
        let inner = p.polynomial_size * p.key_switch.levels;
        let digits = digits(p, inputs);
        let mut sums = vec![0.0; inputs.len() * columns];
        let mut block = vec![0.0; BLOCK * columns];
        for (first, rows) in (0..inner).step_by(BLOCK).zip(self.rows.chunks(BLOCK * columns)) {
            for (value, word) in block.iter_mut().zip(rows) {
                *value = f64::from(*word);
            }
            add_product(&mut sums, &block[..rows.len()], &digits, columns, first, inner);
        }
        let switched = inputs.iter().zip(sums.chunks_exact(columns)).map(|(input, sums)| {
            let mut words: Vec<u64> = sums.iter().map(|&sum| ((-sum) as i64 as u64) << ROUNDING_LOG).collect();
            words[columns - 1] = words[columns - 1].wrapping_add(*input.get_body().data);
            LweCiphertext::from_container(words, CiphertextModulus::new_native())
        });
        switched.collect()
    }
}

/// Returns the digits of all mask elements, one input after another, in the order of the key's rows.
fn digits(p: &Parameters, inputs: &[Lwe]) -> Vec<f64> {
    let decomposer = SignedDecomposer::new(p.key_switch.base(), p.key_switch.level_count());
    let mut digits = Vec::with_capacity(inputs.len() * p.polynomial_size * p.key_switch.levels);
    for word in inputs.iter().flat_map(|input| &input.as_ref()[..p.polynomial_size]) {
        let terms = decomposer.decompose(decomposer.closest_representable(*word));
        digits.extend(terms.map(|term| term.value().cast_signed() as f64));
    }
    digits
}

/// Computes `sums += block^T digits` for the rows `first..` of the key that `block` holds: one column of `sums` and of
/// `digits` is one input. `inner` is the length of a column of `digits`.
fn add_product(sums: &mut [f64], block: &[f64], digits: &[f64], columns: usize, first: usize, inner: usize) {
    let (rows, inputs) = (block.len() / columns, sums.len() / columns);
    assert!(digits.len() == inputs * inner && first + rows <= inner, "matrices that do not fit");
    let stride = |length: usize| isize::try_from(length).expect("a slice has at most isize::MAX elements");
    // SAFETY: by the assertion, every index of the three column-major matrices lies in its slice, and the exclusive
    // borrow of `sums` means that it does not overlap the operands.
    unsafe {
        gemm::gemm(
            columns,
            inputs,
            rows,
            sums.as_mut_ptr(),
            stride(columns),
            1,
            true,
            block.as_ptr(),
            stride(columns),
            1,
            digits.as_ptr().add(first),
            stride(inner),
            1,
            1.0,
            1.0,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_product_is_the_sum_by_definition() {
        let (columns, inputs, inner) = (7, 3, 10);
        let value = |i: usize| f64::from((i * 37 % 23) as u32) - 11.0;
        let key: Vec<f64> = (0..inner * columns).map(value).collect();
        let digits: Vec<f64> = (0..inputs * inner).map(|i| value(i + 5)).collect();
        let mut sums = vec![0.0; inputs * columns];
        for first in [0, 4, 8] {
            let rows = first..inner.min(first + 4);
            add_product(&mut sums, &key[rows.start * columns..rows.end * columns], &digits, columns, first, inner);
        }
        for input in 0..inputs {
            for column in 0..columns {
                let expected: f64 = (0..inner).map(|i| key[i * columns + column] * digits[input * inner + i]).sum();
                assert_eq!(sums[input * columns + column], expected);
            }
        }
    }
}
