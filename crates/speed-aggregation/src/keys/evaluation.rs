//! The server's key: compact as it travels, and expanded as it computes.

use std::sync::Arc;

use tfhe::core_crypto::commons::math::random::{CompressionSeed, Seed};
use tfhe::core_crypto::prelude::*;

use super::{KeyId, PublicKey};
use crate::circuit::{GgswList, KeySwitchKey, expand_trace_key};
use crate::codec::{DecodeError, Kind, Reader, Writer};
use crate::parameters::{Decomposition, Parameters};

/// The server's key as it is stored and sent: masks are replaced by the seeds that they grow from, so it takes 94 MB
/// (parameters of up to 2544 votes) where the [`EvaluationKey`] takes 230 MB.
///
/// On the wire (between envelope and checksum): the public key as in its own file, then for each of key switch,
/// bootstrap, select and trace the seed (16 bytes) and the bodies (words of 8 bytes).
pub struct SeededEvaluationKey {
    pub(crate) public: PublicKey,
    pub(crate) parts: SeededParts,
}

/// The parts of an evaluation key, each an encryption of one secret key under another.
pub(crate) struct SeededParts {
    /// Big key to small key, before every bootstrap.
    pub(crate) key_switch: Seeded,
    /// The bootstrapping key of comparisons: one level, fast, coarse.
    pub(crate) bootstrap: Seeded,
    /// The bootstrapping key that selects wide values and writes answers: more levels, fine.
    pub(crate) select: Seeded,
    /// The rotations of the ring key, for packing.
    pub(crate) trace: Seeded,
}

/// Bodies of ciphertexts, and the seed of their masks.
pub(crate) struct Seeded {
    pub(crate) seed: u128,
    pub(crate) bodies: Vec<u64>,
}

impl Seeded {
    pub(crate) fn compression_seed(&self) -> CompressionSeed {
        CompressionSeed::from(Seed(self.seed))
    }

    fn write(&self, writer: &mut Writer) {
        writer.bytes(&self.seed.to_le_bytes());
        writer.words(&self.bodies);
    }

    fn read(reader: &mut Reader<'_>, bodies: usize) -> Result<Self, DecodeError> {
        Ok(Self { seed: u128::from_le_bytes(reader.array()?), bodies: reader.take_words(bodies)? })
    }
}

/// Numbers of bodies of the four parts, in the order of the file.
fn body_counts(p: &Parameters) -> [usize; 4] {
    let bootstrap = |d: Decomposition| p.lwe_dimension * d.levels * 2 * p.polynomial_size;
    [
        p.polynomial_size * p.key_switch.levels,
        bootstrap(p.bootstrap),
        bootstrap(p.select),
        trace_rotations(p).count() * p.trace.levels * p.polynomial_size,
    ]
}

/// The exponents `t` of the automorphisms `X -> X^t` that packing applies, in order: `2^k + 1` up to `N + 1`.
pub(crate) fn trace_rotations(p: &Parameters) -> impl Iterator<Item = usize> {
    (1..=p.polynomial_size.trailing_zeros()).map(|k| (1 << k) + 1)
}

impl SeededEvaluationKey {
    /// The identifier of the key set.
    #[must_use]
    pub fn id(&self) -> KeyId {
        self.public.id
    }

    /// The bytes of the key's file.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let p = &self.public.parameters;
        let size = 4 + self.public.size() + 4 * 16 + 8 * body_counts(p).iter().sum::<usize>();
        let mut writer = Writer::new(Kind::EvaluationKey, size);
        self.public.write(&mut writer);
        let SeededParts { key_switch, bootstrap, select, trace } = &self.parts;
        for part in [key_switch, bootstrap, select, trace] {
            part.write(&mut writer);
        }
        writer.finish()
    }

    /// Reads an evaluation key. Memory is bounded by the length of `bytes`.
    ///
    /// # Errors
    /// If the bytes are not exactly one well-formed evaluation key of this version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes, Kind::EvaluationKey)?;
        let public = PublicKey::read(&mut reader)?;
        let [key_switch, bootstrap, select, trace] = body_counts(&public.parameters);
        let parts = SeededParts {
            key_switch: Seeded::read(&mut reader, key_switch)?,
            bootstrap: Seeded::read(&mut reader, bootstrap)?,
            select: Seeded::read(&mut reader, select)?,
            trace: Seeded::read(&mut reader, trace)?,
        };
        reader.end()?;
        Ok(Self { public, parts })
    }

    /// The key in the form that computes. Takes about a core-second, in parallel on rayon's current pool.
    #[must_use]
    pub fn expand(self) -> EvaluationKey {
        let p = self.public.parameters;
        let SeededParts { key_switch, bootstrap, select, trace } = self.parts;
        let parts = EvaluationParts {
            key_switch: KeySwitchKey::expand(&p, key_switch),
            bootstrap: expand_bootstrap_key(&p, p.bootstrap, bootstrap),
            select: expand_bootstrap_key(&p, p.select, select),
            trace: expand_trace_key(&p, trace),
        };
        EvaluationKey { public: self.public, parts: Arc::new(parts) }
    }
}

impl std::fmt::Debug for SeededEvaluationKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SeededEvaluationKey({}, {})", self.public.id, self.public.parameters.name)
    }
}

/// The server's key: sums, compares and selects on ciphertexts, and decrypts nothing. It contains the public key, with
/// which the server re-randomises its answers. Cloning is cheap (the keys are shared).
#[derive(Clone)]
pub struct EvaluationKey {
    pub(crate) public: PublicKey,
    pub(crate) parts: Arc<EvaluationParts>,
}

/// [`SeededParts`] in the forms in which they are used: an integer matrix, and Fourier transforms.
pub(crate) struct EvaluationParts {
    pub(crate) key_switch: KeySwitchKey,
    pub(crate) bootstrap: GgswList,
    pub(crate) select: GgswList,
    pub(crate) trace: GgswList,
}

impl EvaluationKey {
    /// The identifier of the key set.
    #[must_use]
    pub fn id(&self) -> KeyId {
        self.public.id
    }

    /// The parameter set.
    #[must_use]
    pub fn parameters(&self) -> &Parameters {
        &self.public.parameters
    }

    /// The public key of the same key set.
    #[must_use]
    pub fn public_key(&self) -> &PublicKey {
        &self.public
    }

    /// Size of the key in memory, in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        let parts = &self.parts;
        parts.key_switch.size() + parts.bootstrap.size() + parts.select.size() + parts.trace.size() + self.public.size()
    }
}

impl std::fmt::Debug for EvaluationKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EvaluationKey({}, {})", self.public.id, self.public.parameters.name)
    }
}

/// A bootstrapping key, transformed.
fn expand_bootstrap_key(p: &Parameters, d: Decomposition, seeded: Seeded) -> GgswList {
    let seed = seeded.compression_seed();
    let key = SeededLweBootstrapKey::from_container(
        seeded.bodies,
        GlweSize(2),
        p.ring(),
        d.base(),
        d.level_count(),
        seed,
        CiphertextModulus::new_native(),
    )
    .par_decompress_into_lwe_bootstrap_key();
    GgswList::new(p.polynomial_size, d, key.as_ref())
}
