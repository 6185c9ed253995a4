//! Key switches and bootstraps in batches, and the linear algebra between them.
//!
//! Keys are large (40 MB to 180 MB) and every operation reads all of one, so memory bandwidth, not arithmetic, would
//! limit the speed. Each operation therefore takes a batch and reads its key once for many ciphertexts.

use std::time::Instant;

use tfhe::core_crypto::prelude::*;

use super::external_product::{ExternalProduct, Rotation};
use super::lwe::{Glwe, Lwe, add_constant};
use super::work::Work;
use crate::keys::{EvaluationKey, EvaluationParts};
use crate::layout::Layout;
use crate::parameters::Parameters;

/// The number of ciphertexts that pass through a bootstrapping key together: 64 kB of accumulators each, which fit a
/// core's cache.
const BATCH: usize = 16;

/// A choice of bootstrapping key: fast and coarse, or slow and fine.
#[derive(Clone, Copy)]
pub(crate) enum Precision {
    Coarse,
    Fine,
}

/// The state of a thread that evaluates circuits.
pub(crate) struct Engine<'a> {
    pub(super) p: &'a Parameters,
    pub(super) layout: Layout,
    pub(super) keys: &'a EvaluationParts,
    pub(super) products: ExternalProduct,
    /// The operations performed so far.
    pub(crate) work: Work,
}

impl<'a> Engine<'a> {
    pub(crate) fn new(key: &'a EvaluationKey, layout: Layout) -> Self {
        let p = key.parameters();
        let levels = p.bootstrap.levels.max(p.select.levels).max(p.trace.levels);
        let products = ExternalProduct::new(levels);
        Self { p, layout, keys: &key.parts, products, work: Work::default() }
    }

    /// Switches ciphertexts from the big key to the small one.
    pub(crate) fn key_switch(&mut self, inputs: &[Lwe]) -> Vec<Lwe> {
        let start = Instant::now();
        let outputs = self.keys.key_switch.switch(self.p, inputs);
        self.work.key_switches.record(inputs.len(), start);
        outputs
    }

    /// Reads each table at the phase of its input (small key). Entry `i` of a table stands for phases from `i` to
    /// `i + 1` buckets, and its negative for the opposite half-circle. The outputs are under the big key.
    pub(super) fn bootstrap(&mut self, inputs: &[Lwe], tables: &[Glwe], precision: Precision) -> Vec<Lwe> {
        self.bootstrap_at(inputs, tables, precision, [0]).into_iter().map(|[output]| output).collect()
    }

    /// Bootstraps like [`Self::bootstrap`], but reads each table in several places, at the given offsets (in entries)
    /// after the phase.
    pub(super) fn bootstrap_at<const PLACES: usize>(
        &mut self,
        inputs: &[Lwe],
        tables: &[Glwe],
        precision: Precision,
        places: [usize; PLACES],
    ) -> Vec<[Lwe; PLACES]> {
        let start = Instant::now();
        let (key, work) = match precision {
            Precision::Coarse => (&self.keys.bootstrap, &mut self.work.coarse_bootstraps),
            Precision::Fine => (&self.keys.select, &mut self.work.fine_bootstraps),
        };
        let mut outputs = Vec::with_capacity(inputs.len());
        for (inputs, tables) in inputs.chunks(BATCH).zip(tables.chunks(BATCH)) {
            let rotations: Vec<Rotation> = inputs.iter().map(|input| rounded(self.p, input)).collect();
            let mut turned: Vec<Vec<u64>> = tables.iter().map(|table| table.as_ref().to_vec()).collect();
            self.products.blind_rotate(&mut turned, &rotations, key);
            for words in &turned {
                let table =
                    GlweCiphertext::from_container(words.as_slice(), self.p.ring(), CiphertextModulus::new_native());
                outputs.push(places.map(|place| {
                    let size = self.p.big_dimension().to_lwe_size();
                    let mut output = LweCiphertext::new(0, size, CiphertextModulus::new_native());
                    extract_lwe_sample_from_glwe_ciphertext(&table, &mut output, MonomialDegree(place));
                    output
                }));
            }
        }
        work.record(inputs.len(), start);
        outputs
    }

    /// Returns a trivial encryption of a torus element under the big key.
    pub(crate) fn constant(&self, value: u64) -> Lwe {
        let mut output = LweCiphertext::new(0, self.p.big_dimension().to_lwe_size(), CiphertextModulus::new_native());
        add_constant(&mut output, value);
        output
    }
}

/// Returns the input of a bootstrap, rounded to buckets by the centred modulus switch. Also subtracts half a bucket, so
/// that an exact phase lies between two entries.
pub(super) fn rounded(p: &Parameters, input: &Lwe) -> Rotation {
    let switched = lwe_ciphertext_centered_binary_modulus_switch::<u64, usize, _>(
        input.as_view(),
        CiphertextModulusLog(p.bucket_count_log()),
    );
    Rotation { mask: switched.mask().collect(), body: switched.body() }
}
