//! The external product of a GGSW ciphertext (a matrix of ring ciphertexts) and a ring ciphertext, and the blind
//! rotation built from it.

use rayon::prelude::*;

use super::fourier::{
    BLOCK, BLOCKS, Digit, Fourier, N, Points, Scratch, VECTORS, Values, get, point, points, product, put,
    root_of_unity, to_torus, transform,
};
use super::lanes::{Eight, LANES, Lanes, Vectorised, dispatch, lanes_of};
use crate::parameters::Decomposition;

/// Keys that a blind rotation reads for two bits `b, c` of the small key: encryptions of `b (1 - c)`, `(1 - b) c` and `b c`.
pub(crate) const KEYS_PER_PAIR: usize = 3;

/// Transformed GGSW ciphertexts with one mask polynomial, in steps of `keys` ciphertexts that are used together. A ciphertext has
/// one row for each level of the decomposition and each polynomial of a ring ciphertext; each row has two polynomials.
pub(crate) struct GgswList {
    decomposition: Decomposition,
    keys: usize,
    /// By step, vector, ciphertext of the step, row, column: operands of one product are contiguous. One allocation, so that the operating
    /// system can use large pages.
    points: Vec<Points>,
}

impl GgswList {
    /// Transforms the ciphertexts of each of `steps` steps, which `fill` writes: level by level from the last to the first, one row for the
    /// mask and one for the body, each with mask and body. Runs on rayon's current pool.
    pub(crate) fn new(d: Decomposition, keys: usize, steps: usize, fill: impl Fn(usize, &mut [u64]) + Sync) -> Self {
        let fourier = Fourier::new();
        let columns = keys * 4 * d.levels;
        let mut points = vec![[Eight::ZERO; 2]; steps * columns * VECTORS];
        points.par_chunks_exact_mut(columns * VECTORS).enumerate().for_each_init(
            || vec![0; columns * N],
            |words, (step, points)| {
                fill(step, words);
                for (column, words) in words.chunks_exact(N).enumerate() {
                    let values = transform(&fourier, words);
                    points.iter_mut().skip(column).step_by(columns).zip(values).for_each(|(to, from)| *to = from);
                }
            },
        );
        Self { decomposition: d, keys, points }
    }

    /// Returns the size in memory, in bytes.
    pub(crate) fn size(&self) -> usize {
        size_of_val(self.points.as_slice())
    }

    /// Returns the steps.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[Points]> {
        self.points.chunks_exact(self.keys * 4 * self.decomposition.levels * VECTORS)
    }
}

/// The working memory of external products.
pub(super) struct ExternalProduct {
    fourier: Fourier,
    /// Transformed digits of the input, by level and polynomial. The transformed product replaces the first two.
    digits: Vec<Values>,
    scratch: Box<Scratch>,
    /// For each key of a pair, the values of `X^exponent - 1`.
    monomials: [Monomial; KEYS_PER_PAIR],
    roots: Roots,
}

impl ExternalProduct {
    /// Prepares products for decompositions of up to `levels` levels.
    pub(super) fn new(levels: usize) -> Self {
        Self {
            fourier: Fourier::new(),
            digits: vec![Values::ZERO; 2 * levels],
            scratch: Box::new(Scratch::ZERO),
            monomials: [Monomial::ZERO; KEYS_PER_PAIR],
            roots: Roots::new(),
        }
    }

    /// Adds the product of a ciphertext of `list` and a ring ciphertext to `output`.
    pub(super) fn add(&mut self, output: &mut [u64], list: &GgswList, ggsw: &[Points], input: &[u64]) {
        let d = list.decomposition;
        match d.levels {
            5 => dispatch(Addition::<5> { product: self, output, d, ggsw, input }),
            6 => dispatch(Addition::<6> { product: self, output, d, ggsw, input }),
            levels => unreachable!("no parameter set has {levels} levels"),
        }
    }

    /// Rotates each table to the phase of its input: multiplies it by `X^-phase`, where the phase is
    /// `body - mask * key` for the key whose pairs of bits `list` encrypts. Reads every ciphertext of the list once for all
    /// tables.
    ///
    /// For two bits `b, c` and mask elements `x, y`, the factor `X^(b x + c y)` is
    /// `1 + b (1 - c) (X^x - 1) + (1 - b) c (X^y - 1) + b c (X^(x + y) - 1)`, so a pair costs one external product.
    pub(super) fn blind_rotate(&mut self, tables: &mut [Vec<u64>], inputs: &[Rotation], list: &GgswList) {
        for (table, input) in tables.iter_mut().zip(inputs) {
            for polynomial in table.chunks_exact_mut(N) {
                turn(polynomial, 2 * N - input.body);
            }
        }
        match list.decomposition.levels {
            1 => dispatch(BlindRotation::<1> { product: self, tables, inputs, list }),
            2 => dispatch(BlindRotation::<2> { product: self, tables, inputs, list }),
            3 => dispatch(BlindRotation::<3> { product: self, tables, inputs, list }),
            levels => unreachable!("no parameter set has {levels} levels"),
        }
    }

    /// Decomposes a ring ciphertext, and begins the transforms of its digits.
    #[inline(always)]
    fn begin<const LEVELS: usize, L: Lanes>(&mut self, l: L, d: Decomposition, input: &[u64]) {
        for (polynomial, words) in input.chunks_exact(N).enumerate() {
            let (words, _) = words.as_chunks::<LANES>();
            for level in 0..LEVELS {
                let digit = Digit::new(d, level);
                let values = &mut self.digits[2 * level + polynomial];
                self.fourier.begin(
                    l,
                    #[inline(always)]
                    |k, part| {
                        let words = &words[k][lanes_of::<L>(part)];
                        l.each(
                            #[inline(always)]
                            |lane| digit.extract(words[lane]),
                        )
                    },
                    values,
                );
            }
        }
    }

    /// Completes the transforms of the digits in a block.
    #[inline(always)]
    fn finish_block<const LEVELS: usize, L: Lanes>(&mut self, l: L, block: usize) {
        for values in &mut self.digits[..2 * LEVELS] {
            self.fourier.finish_block(l, block, values, &mut self.scratch);
        }
    }

    /// Adds the product to a ring ciphertext.
    #[inline(always)]
    fn end<L: Lanes>(&mut self, l: L, output: &mut [u64]) {
        for (values, words) in self.digits.iter().zip(output.chunks_exact_mut(N)) {
            let (words, _) = words.as_chunks_mut::<LANES>();
            self.fourier.end(
                l,
                values,
                #[inline(always)]
                |k, part, numbers| {
                    for (word, turns) in words[k][lanes_of::<L>(part)].iter_mut().zip(l.numbers(numbers).as_ref()) {
                        *word = word.wrapping_add(to_torus(*turns));
                    }
                },
            );
        }
    }
}

/// A product with one ciphertext.
struct Addition<'a, const LEVELS: usize> {
    product: &'a mut ExternalProduct,
    output: &'a mut [u64],
    d: Decomposition,
    ggsw: &'a [Points],
    input: &'a [u64],
}

impl<const LEVELS: usize> Vectorised for Addition<'_, LEVELS> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) {
        let Self { product, output, d, ggsw, input } = self;
        product.begin::<LEVELS, L>(l, d, input);
        for block in 0..BLOCKS {
            product.finish_block::<LEVELS, L>(l, block);
            for place in block * BLOCK..(block + 1) * BLOCK {
                let (matrix, _) = ggsw[4 * LEVELS * place..][..4 * LEVELS].as_chunks::<2>();
                for part in 0..L::PARTS {
                    let mut sums = [Sum::zero(l); 2];
                    for (digits, row) in product.digits[..2 * LEVELS].iter().zip(matrix) {
                        let digit = get(l, digits, place, part);
                        for (sum, key) in sums.iter_mut().zip(row) {
                            sum.add_product(l, digit, points(l, key, part));
                        }
                    }
                    for (values, sum) in product.digits.iter_mut().zip(sums) {
                        put(l, values, place, part, sum.value(l));
                    }
                }
            }
            for values in &mut product.digits[..2] {
                product.fourier.turn_block_back(l, block, values, &mut product.scratch);
            }
        }
        product.end(l, output);
    }
}

/// A blind rotation of tables that are already turned by the bodies of the inputs.
struct BlindRotation<'a, const LEVELS: usize> {
    product: &'a mut ExternalProduct,
    tables: &'a mut [Vec<u64>],
    inputs: &'a [Rotation],
    list: &'a GgswList,
}

impl<const LEVELS: usize> Vectorised for BlindRotation<'_, LEVELS> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) {
        let Self { product, tables, inputs, list } = self;
        for (pair, keys) in list.iter().enumerate() {
            for (table, input) in tables.iter_mut().zip(inputs) {
                let (x, y) = (input.mask[2 * pair], input.mask[2 * pair + 1]);
                for (monomial, exponent) in product.monomials.iter_mut().zip([x, y, x + y]) {
                    monomial.set(&product.roots, exponent);
                }
                product.begin::<LEVELS, L>(l, list.decomposition, table);
                for block in 0..BLOCKS {
                    product.finish_block::<LEVELS, L>(l, block);
                    product.multiply_block::<LEVELS, L>(l, block, keys);
                    for values in &mut product.digits[..2] {
                        product.fourier.turn_block_back(l, block, values, &mut product.scratch);
                    }
                }
                product.end(l, table);
            }
        }
    }
}

impl ExternalProduct {
    /// Multiplies the digits in a block by the keys of a pair, each times its monomial less 1.
    #[inline(always)]
    fn multiply_block<const LEVELS: usize, L: Lanes>(&mut self, l: L, block: usize, keys: &[Points]) {
        for vector in 0..BLOCK {
            let place = block * BLOCK + vector;
            let each = 4 * LEVELS;
            let keys = &keys[KEYS_PER_PAIR * each * place..][..KEYS_PER_PAIR * each];
            for part in 0..L::PARTS {
                let m0 = self.monomials[0].less_one(l, block, vector, part);
                let m1 = self.monomials[1].less_one(l, block, vector, part);
                let m2 = self.monomials[2].less_one(l, block, vector, part);
                // One column after the other, because sixteen registers do not hold the sums of both.
                let mut results = [(l.splat(0.0), l.splat(0.0)); 2];
                for (column, result) in results.iter_mut().enumerate() {
                    let mut sum = Sum::zero(l);
                    for (row, digits) in self.digits[..2 * LEVELS].iter().enumerate() {
                        let at = 2 * row + column;
                        let mut key = product(l, m0, points(l, &keys[at], part));
                        key = add_product(l, key, m1, points(l, &keys[each + at], part));
                        key = add_product(l, key, m2, points(l, &keys[2 * each + at], part));
                        sum.add_product(l, get(l, digits, place, part), key);
                    }
                    *result = sum.value(l);
                }
                for (values, result) in self.digits.iter_mut().zip(results) {
                    put(l, values, place, part, result);
                }
            }
        }
    }
}

/// Returns `sum + a b`.
#[inline(always)]
fn add_product<L: Lanes>(l: L, sum: (L::V, L::V), a: (L::V, L::V), b: (L::V, L::V)) -> (L::V, L::V) {
    let re = l.neg_mul_add(a.1, b.1, l.mul_add(a.0, b.0, sum.0));
    let im = l.mul_add(a.1, b.0, l.mul_add(a.0, b.1, sum.1));
    (re, im)
}

/// A sum of complex products `a b`, kept as the sums of the four real products, so that additions do not wait for each other.
#[derive(Clone, Copy)]
struct Sum<V> {
    real: (V, V),
    imaginary: (V, V),
}

impl<V: Copy> Sum<V> {
    #[inline(always)]
    fn zero<L: Lanes<V = V>>(l: L) -> Self {
        let zero = l.splat(0.0);
        Self { real: (zero, zero), imaginary: (zero, zero) }
    }

    #[inline(always)]
    fn add_product<L: Lanes<V = V>>(&mut self, l: L, a: (V, V), b: (V, V)) {
        self.real = (l.mul_add(a.0, b.0, self.real.0), l.mul_add(a.1, b.1, self.real.1));
        self.imaginary = (l.mul_add(a.0, b.1, self.imaginary.0), l.mul_add(a.1, b.0, self.imaginary.1));
    }

    #[inline(always)]
    fn value<L: Lanes<V = V>>(&self, l: L) -> (V, V) {
        (l.sub(self.real.0, self.real.1), l.add(self.imaginary.0, self.imaginary.1))
    }
}

/// The roots of unity `exp(i pi k / N)`, `2N` of them, as real and imaginary parts.
struct Roots(Vec<[f64; 2]>);

impl Roots {
    fn new() -> Self {
        Self((0..2 * N).map(|k| root_of_unity(k as f64 / (2 * N) as f64)).collect())
    }
}

/// The values of a power of `X` at all points, as products of a value for block and lane and one for the vector, because the
/// [number of a point](point) is a sum.
#[derive(Clone)]
struct Monomial {
    re: [Eight; BLOCKS],
    im: [Eight; BLOCKS],
    vectors: [[f64; 2]; BLOCK],
}

impl Monomial {
    const ZERO: Self = Self { re: [Eight::ZERO; BLOCKS], im: [Eight::ZERO; BLOCKS], vectors: [[0.0; 2]; BLOCK] };

    /// Becomes `X^exponent`.
    #[inline(always)]
    fn set(&mut self, roots: &Roots, exponent: usize) {
        for block in 0..BLOCKS {
            for lane in 0..LANES {
                let [re, im] = roots.0[exponent * (1 + 4 * point(block, 0, lane)) % (2 * N)];
                self.re[block].0[lane] = re;
                self.im[block].0[lane] = im;
            }
        }
        for (vector, value) in self.vectors.iter_mut().enumerate() {
            *value = roots.0[exponent * 4 * point(0, vector, 0) % (2 * N)];
        }
    }

    /// Returns the values less 1 of a part of a vector of points.
    #[inline(always)]
    fn less_one<L: Lanes>(&self, l: L, block: usize, vector: usize, part: usize) -> (L::V, L::V) {
        let (re, im) = (l.load(&self.re[block], part), l.load(&self.im[block], part));
        let (cos, sin) = (l.splat(self.vectors[vector][0]), l.splat(self.vectors[vector][1]));
        (l.mul_sub(re, cos, l.mul_add(im, sin, l.splat(1.0))), l.mul_add(re, sin, l.mul(im, cos)))
    }
}

/// The input of a blind rotation, each element rounded to one of `2N` buckets.
pub(super) struct Rotation {
    pub(super) mask: Vec<usize>,
    pub(super) body: usize,
}

/// Multiplies a polynomial by `X^exponent` modulo `X^N + 1` (exponents up to `2N`).
fn turn(polynomial: &mut [u64], exponent: usize) {
    let n = polynomial.len();
    let shift = exponent % n;
    polynomial.rotate_right(shift);
    // Each wrap-around X^N = -1 flips the sign: once more for the coefficients that are carried over the end.
    let (carried, kept) = polynomial.split_at_mut(shift);
    let flipped = if exponent / n % 2 == 1 { kept } else { carried };
    flipped.iter_mut().for_each(|x| *x = x.wrapping_neg());
}

#[cfg(test)]
mod tests {
    use rand::RngExt;
    use speed_core::random::{Stream, Streams};

    use super::super::lanes::{Plain, With};
    use super::*;
    use crate::ciphertext_noise::CiphertextNoise;
    use crate::layout::Layout;
    use crate::parameters::Parameters;
    use crate::range::VoteRange;

    #[test]
    fn a_turn_is_a_product_with_a_power_of_x() {
        let input: Vec<u64> = (1..=8).collect();
        for exponent in 0..=16 {
            // The definition, one step at a time.
            let mut expected = input.clone();
            for _ in 0..exponent {
                expected.rotate_right(1);
                expected[0] = expected[0].wrapping_neg();
            }
            let mut turned = input.clone();
            turn(&mut turned, exponent);
            assert_eq!(turned, expected, "exponent {exponent}");
        }
    }

    /// GGSW ciphertexts of bits, without noise or mask.
    fn plain(d: Decomposition, bits: &[u64]) -> Vec<u64> {
        let ggsw = |bit: &u64| {
            let mut words = vec![0; 4 * d.levels * N];
            for (level, matrix) in words.chunks_exact_mut(4 * N).enumerate() {
                let weight = bit * d.weight(level);
                matrix[0] = weight;
                matrix[3 * N] = weight;
            }
            words
        };
        bits.iter().flat_map(ggsw).collect()
    }

    /// Transforms ciphertexts of one step.
    fn list(d: Decomposition, ciphertexts: &[u64]) -> GgswList {
        GgswList::new(d, KEYS_PER_PAIR, 1, |_, words| words.copy_from_slice(ciphertexts))
    }

    fn ciphertext() -> Vec<u64> {
        (0..2 * N as u64).map(|i| (i + 3).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect()
    }

    fn assert_near(found: &[u64], expected: &[u64], bound: u64) {
        for (found, expected) in found.iter().zip(expected) {
            let error = found.wrapping_sub(*expected).cast_signed().unsigned_abs();
            assert!(error < bound, "off by {error}");
        }
    }

    #[test]
    fn a_pair_of_bits_turns_by_the_sum_of_its_exponents() {
        for (b, c) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            for d in [(23, 1), (15, 2), (12, 3)].map(|(base_log, levels)| Decomposition { base_log, levels }) {
                let list = list(d, &plain(d, &[b * (1 - c), (1 - b) * c, b * c]));
                let rotation = Rotation { mask: vec![1234, 3999], body: 77 };
                let mut tables = vec![ciphertext()];
                ExternalProduct::new(3).blind_rotate(&mut tables, &[rotation], &list);
                let mut expected = ciphertext();
                let exponent = (2 * N - 77 + b as usize * 1234 + c as usize * 3999) % (2 * N);
                expected.chunks_exact_mut(N).for_each(|polynomial| turn(polynomial, exponent));
                // Digits leave 64 - base_log * levels bits, and the transform rounds.
                assert_near(&tables[0], &expected, 1 << (66 - d.base_log * d.levels));
            }
        }
    }

    /// Computes the polynomial product modulo `X^N + 1` and `2^64`.
    fn exact_product(a: &[u64], b: &[u64]) -> Vec<u64> {
        let mut product = vec![0_u64; 2 * N];
        for (i, a) in a.iter().enumerate() {
            product[i..i + N].iter_mut().zip(b).for_each(|(sum, b)| *sum = sum.wrapping_add(a.wrapping_mul(*b)));
        }
        let (low, high) = product.split_at(N);
        low.iter().zip(high).map(|(low, high)| low.wrapping_sub(*high)).collect()
    }

    /// Rotates a random ciphertext by a pair of random keys, and adds the same product in integers.
    fn rotated_and_exact(d: Decomposition, stream: &mut Stream) -> [Vec<u64>; 2] {
        let each = 4 * d.levels * N;
        let keys: Vec<u64> = (0..KEYS_PER_PAIR * each).map(|_| stream.random()).collect();
        let input: Vec<u64> = (0..2 * N).map(|_| stream.random()).collect();
        let mask: Vec<usize> = (0..2).map(|_| stream.random_range(0..2 * N)).collect();
        let exponents = [mask[0], mask[1], mask[0] + mask[1]];
        let mut exact = input.clone();
        for row in 0..2 * d.levels {
            let digit = Digit::new(d, row / 2);
            let digits: Vec<u64> =
                input[row % 2 * N..][..N].iter().map(|word| (digit.extract(*word) as i64) as u64).collect();
            for column in 0..2 {
                let mut bundle = vec![0_u64; N];
                for (key, exponent) in exponents.iter().enumerate() {
                    let key = &keys[key * each + (2 * row + column) * N..][..N];
                    let mut turned = key.to_vec();
                    turn(&mut turned, exponent % (2 * N));
                    let less = turned.iter().zip(key).map(|(turned, key)| turned.wrapping_sub(*key));
                    bundle.iter_mut().zip(less).for_each(|(sum, term)| *sum = sum.wrapping_add(term));
                }
                let product = exact_product(&digits, &bundle);
                exact[column * N..][..N].iter_mut().zip(product).for_each(|(sum, term)| *sum = sum.wrapping_add(term));
            }
        }
        let list = list(d, &keys);
        let mut tables = vec![input];
        ExternalProduct::new(3).blind_rotate(&mut tables, &[Rotation { mask, body: 0 }], &list);
        [tables.remove(0), exact]
    }

    #[test]
    fn rounding_of_the_transform_follows_the_formula() {
        let mut stream = Streams::new(5).stream("rounding", 0);
        for d in [(23, 1), (15, 2), (12, 3)].map(|(base_log, levels)| Decomposition { base_log, levels }) {
            let errors: Vec<f64> = (0..6)
                .flat_map(|_| {
                    let [rotated, exact] = rotated_and_exact(d, &mut stream);
                    rotated
                        .into_iter()
                        .zip(exact)
                        .map(|(a, b)| a.wrapping_sub(b).cast_signed() as f64)
                        .collect::<Vec<_>>()
                })
                .collect();
            let variance = errors.iter().map(|error| error * error).sum::<f64>() / errors.len() as f64;
            // The phase error is that of the body less the mask's times binary key bits, half of them 1.
            let phase = variance * (1.0 + N as f64 / 2.0);
            let p = Parameters::TOURNAMENT_128;
            let range = VoteRange::new(250, 0);
            let model = CiphertextNoise::new(&p, Layout::new(&p, 10, range).expect("in range"), range);
            // Three keys, each times X^a - 1.
            let ratio = phase / (6.0 * model.fourier(d));
            assert!((0.94..1.02).contains(&ratio), "{d:?}: {ratio} of the formula");
        }
    }

    #[test]
    fn every_kind_of_vectors_gives_the_same_bits() {
        let d = Decomposition { base_log: 15, levels: 2 };
        let keys: Vec<u64> =
            (0..KEYS_PER_PAIR * 8 * N).map(|i| (i as u64 + 9).wrapping_mul(0xd134_2543_de82_ef95)).collect();
        let list = list(d, &keys);
        let inputs = [Rotation { mask: vec![17, 4000], body: 0 }, Rotation { mask: vec![0, 2049], body: 0 }];
        let rotated = |run: &dyn Fn(BlindRotation<'_, 2>)| {
            let (mut product, mut tables) = (ExternalProduct::new(2), vec![ciphertext(), ciphertext()]);
            run(BlindRotation { product: &mut product, tables: &mut tables, inputs: &inputs, list: &list });
            tables
        };
        let plain = rotated(&|work| work.run(Plain));
        #[cfg(target_arch = "x86_64")]
        {
            if let Some(lanes) = pulp::x86::V3::try_new() {
                assert!(plain == rotated(&|work| pulp::Simd::vectorize(lanes, With { lanes, work })), "256 bits");
            }
            if let Some(lanes) = pulp::x86::V4::try_new() {
                assert!(plain == rotated(&|work| pulp::Simd::vectorize(lanes, With { lanes, work })), "512 bits");
            }
        }
        assert!(plain == rotated(&|work| dispatch(work)));
    }
}
