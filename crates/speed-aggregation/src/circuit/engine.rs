//! Bootstraps and key switches with one set of buffers, and the linear algebra between them.

use tfhe::core_crypto::prelude::*;

use crate::keys::{EvaluationKey, EvaluationParts};
use crate::parameters::Parameters;
use crate::range::Encoding;

/// A ciphertext under the big or the small key.
pub(crate) type Lwe = LweCiphertextOwned<u64>;
/// A ring ciphertext: a look-up table.
pub(crate) type Glwe = GlweCiphertextOwned<u64>;

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
    pub(super) keys: &'a EvaluationParts,
    /// Look-up tables of the three scales, finest first.
    pub(super) signs: [Glwe; 3],
    fft: Fft,
    buffers: ComputationBuffers,
}

impl<'a> Engine<'a> {
    pub(crate) fn new(key: &'a EvaluationKey, encoding: Encoding) -> Self {
        let p = key.parameters();
        let fft = Fft::new(p.ring());
        let mut buffers = ComputationBuffers::new();
        let need = blind_rotate_assign_mem_optimized_requirement::<u64>(GlweSize(2), p.ring(), fft.as_view());
        buffers.resize(need.unaligned_bytes_required());
        Self { p, encoding, keys: &key.parts, signs: super::compare::sign_tables(p), fft, buffers }
    }

    /// From the big key to the small one.
    pub(crate) fn key_switch(&self, input: &Lwe) -> Lwe {
        let mut output = LweCiphertext::new(0, self.p.small_dimension().to_lwe_size(), CiphertextModulus::new_native());
        keyswitch_lwe_ciphertext(&self.keys.key_switch, input, &mut output);
        output
    }

    /// Reads `table` at the phase of `input` (small key). Entry `i` of the table stands for phases from `i` to `i + 1`
    /// buckets, and its negative for the opposite half-circle. The output is under the big key.
    pub(super) fn bootstrap(&mut self, input: &Lwe, mut table: Glwe, precision: Precision) -> Lwe {
        let key = match precision {
            Precision::Coarse => &self.keys.bootstrap,
            Precision::Fine => &self.keys.select,
        };
        let switched = lwe_ciphertext_centered_binary_modulus_switch::<u64, usize, _>(
            input.as_view(),
            CiphertextModulusLog(self.p.bucket_count_log()),
        );
        blind_rotate_assign_mem_optimized(&switched, &mut table, key, self.fft.as_view(), self.buffers.stack());
        let mut output = self.zero();
        extract_lwe_sample_from_glwe_ciphertext(&table, &mut output, MonomialDegree(0));
        output
    }

    /// A trivial encryption of zero under the big key.
    pub(super) fn zero(&self) -> Lwe {
        LweCiphertext::new(0, self.p.big_dimension().to_lwe_size(), CiphertextModulus::new_native())
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

pub(crate) fn subtract(from: &mut Lwe, other: &Lwe) {
    for (a, b) in from.as_mut().iter_mut().zip(other.as_ref()) {
        *a = a.wrapping_sub(*b);
    }
}

pub(crate) fn add_constant(to: &mut Lwe, constant: u64) {
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
