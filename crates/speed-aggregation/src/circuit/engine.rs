//! Key switches, packings and bootstraps in batches, and the linear algebra between them.
//!
//! Keys are large (60 MB to 200 MB) and every operation reads one from end to end: memory, not arithmetic, sets the
//! pace. So each operation takes a batch and reads its key once for up to [`BATCH`] ciphertexts.

use tfhe::core_crypto::algorithms::slice_algorithms::slice_wrapping_sub_scalar_mul_assign;
use tfhe::core_crypto::fft_impl::fft64::crypto::bootstrap::batch_blind_rotate_assign_scratch;
use tfhe::core_crypto::prelude::*;

use crate::keys::{EvaluationKey, EvaluationParts};
use crate::parameters::{Decomposition, Parameters};
use crate::range::Encoding;

/// A ciphertext under the big or the small key.
pub(crate) type Lwe = LweCiphertextOwned<u64>;
/// A ring ciphertext: a look-up table.
pub(crate) type Glwe = GlweCiphertextOwned<u64>;

/// Ciphertexts that go through a bootstrapping key together: 64 kB of accumulators each, which fit a core's cache.
const BATCH: usize = 16;

/// Which bootstrapping key: fast and coarse, or slow and fine.
#[derive(Clone, Copy)]
pub(crate) enum Precision {
    Coarse,
    Fine,
}

/// What a thread needs to evaluate circuits.
pub(crate) struct Engine<'a> {
    pub(super) p: &'a Parameters,
    pub(super) encoding: Encoding,
    keys: &'a EvaluationParts,
    fft: Fft,
    buffers: ComputationBuffers,
}

impl<'a> Engine<'a> {
    pub(crate) fn new(key: &'a EvaluationKey, encoding: Encoding) -> Self {
        let p = key.parameters();
        let fft = Fft::new(p.ring());
        let mut buffers = ComputationBuffers::new();
        let need =
            batch_blind_rotate_assign_scratch::<u64>(GlweSize(2), p.ring(), CiphertextCount(BATCH), fft.as_view());
        buffers.resize(need.unaligned_bytes_required());
        Self { p, encoding, keys: &key.parts, fft, buffers }
    }

    /// From the big key to the small one.
    pub(crate) fn key_switch(&self, inputs: &[Lwe]) -> Vec<Lwe> {
        let size = self.p.small_dimension().to_lwe_size();
        let mut outputs = vec![LweCiphertext::new(0, size, CiphertextModulus::new_native()); inputs.len()];
        for (output, input) in outputs.iter_mut().zip(inputs) {
            *output.get_mut_body().data = *input.get_body().data;
        }
        subtract_digits(self.keys.key_switch.as_ref(), self.p.key_switch, inputs, &mut outputs);
        outputs
    }

    /// Ring ciphertexts whose constant coefficients are the inputs.
    pub(super) fn pack(&self, inputs: &[Lwe]) -> Vec<Glwe> {
        let mut outputs = vec![table(self.p, |_| 0); inputs.len()];
        for (output, input) in outputs.iter_mut().zip(inputs) {
            output.get_mut_body().as_mut()[0] = *input.get_body().data;
        }
        subtract_digits(self.keys.packing.as_ref(), self.p.packing, inputs, &mut outputs);
        outputs
    }

    /// Reads each table at the phase of its input (small key). Entry `i` of a table stands for phases from `i` to
    /// `i + 1` buckets, and its negative for the opposite half-circle. The outputs are under the big key.
    pub(super) fn bootstrap(&mut self, inputs: &[Lwe], tables: &[Glwe], precision: Precision) -> Vec<Lwe> {
        let key = match precision {
            Precision::Coarse => &self.keys.bootstrap,
            Precision::Fine => &self.keys.select,
        };
        let mut outputs = Vec::with_capacity(inputs.len());
        for (inputs, tables) in inputs.chunks(BATCH).zip(tables.chunks(BATCH)) {
            let switched: Vec<Switched> = inputs.iter().map(|input| Switched::new(self.p, input)).collect();
            let words = tables.iter().flat_map(|table| table.as_ref()).copied().collect::<Vec<u64>>();
            let mut turned =
                GlweCiphertextList::from_container(words, GlweSize(2), self.p.ring(), CiphertextModulus::new_native());
            key.as_view().batch_blind_rotate_assign(
                turned.as_mut_view(),
                &switched,
                self.fft.as_view(),
                self.buffers.stack(),
            );
            for table in turned.iter() {
                let mut output = self.zero();
                extract_lwe_sample_from_glwe_ciphertext(&table, &mut output, MonomialDegree(0));
                outputs.push(output);
            }
        }
        outputs
    }

    /// A trivial encryption of zero under the big key.
    pub(super) fn zero(&self) -> Lwe {
        LweCiphertext::new(0, self.p.big_dimension().to_lwe_size(), CiphertextModulus::new_native())
    }
}

/// An input of a bootstrap, rounded to buckets.
pub(super) struct Switched {
    pub(super) mask: Vec<usize>,
    pub(super) body: usize,
    log_modulus: CiphertextModulusLog,
}

impl Switched {
    /// The centred modulus switch. It also subtracts half a bucket, so that an exact phase lies between two entries.
    pub(super) fn new(p: &Parameters, input: &Lwe) -> Self {
        let log_modulus = CiphertextModulusLog(p.bucket_count_log());
        let lazy = lwe_ciphertext_centered_binary_modulus_switch::<u64, usize, _>(input.as_view(), log_modulus);
        // Collected, because a batch looks up mask elements by position.
        Self { mask: lazy.mask().collect(), body: lazy.body(), log_modulus }
    }
}

impl ModulusSwitchedLweCiphertext<usize> for Switched {
    fn log_modulus(&self) -> CiphertextModulusLog {
        self.log_modulus
    }

    fn lwe_dimension(&self) -> LweDimension {
        LweDimension(self.mask.len())
    }

    fn body(&self) -> usize {
        self.body
    }

    fn mask(&self) -> impl ExactSizeIterator<Item = usize> + '_ {
        self.mask.iter().copied()
    }
}

/// The inner part of a key switch and of a packing: for every input, `output -= digit * row` over all digits of all mask
/// elements. `key` holds a block for each mask element, with one row for each digit. (tfhe's own functions do the same
/// for one input at a time.)
fn subtract_digits<T: AsMut<[u64]>>(key: &[u64], decomposition: Decomposition, inputs: &[Lwe], outputs: &mut [T]) {
    let decomposer = SignedDecomposer::new(decomposition.base(), decomposition.level_count());
    let Some(row) = outputs.first_mut().map(|output| output.as_mut().len()) else { return };
    for (position, block) in key.chunks_exact(row * decomposition.levels).enumerate() {
        for (input, output) in inputs.iter().zip(&mut *outputs) {
            let digits = decomposer.decompose(decomposer.closest_representable(input.as_ref()[position]));
            for (row, digit) in block.chunks_exact(row).zip(digits) {
                slice_wrapping_sub_scalar_mul_assign(output.as_mut(), row, digit.value());
            }
        }
    }
}

/// A look-up table in clear: `entry(i)` for `i` in `0..N`.
pub(super) fn table(p: &Parameters, entry: impl Fn(usize) -> u64) -> Glwe {
    let mut table = GlweCiphertext::new(0, GlweSize(2), p.ring(), CiphertextModulus::new_native());
    for (i, coefficient) in table.get_mut_body().as_mut().iter_mut().enumerate() {
        *coefficient = entry(i);
    }
    table
}

pub(crate) fn add(to: &mut Lwe, other: &Lwe) {
    for (a, b) in to.as_mut().iter_mut().zip(other.as_ref()) {
        *a = a.wrapping_add(*b);
    }
}

pub(super) fn subtract(from: &mut Lwe, other: &Lwe) {
    for (a, b) in from.as_mut().iter_mut().zip(other.as_ref()) {
        *a = a.wrapping_sub(*b);
    }
}

pub(super) fn add_constant(to: &mut Lwe, constant: u64) {
    let body = to.get_mut_body().data;
    *body = body.wrapping_add(constant);
}

pub(super) fn difference(a: &Lwe, b: &Lwe) -> Lwe {
    let mut output = a.clone();
    subtract(&mut output, b);
    output
}

pub(super) fn scaled(input: &Lwe, factor: u64) -> Lwe {
    let mut output = input.clone();
    for word in output.as_mut() {
        *word = word.wrapping_mul(factor);
    }
    output
}
