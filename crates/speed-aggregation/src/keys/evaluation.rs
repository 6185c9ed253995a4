//! The server's key: a compact form for storage and transfer, and an expanded form for computation.

use std::sync::Arc;

use super::public::PublicKey;
use super::seeded::{Rounded, Seeded, trace_rotations};
use super::stream::Stream;
use crate::circuit::{GgswList, KEYS_PER_PAIR, KeySwitchKey};
use crate::codec::{Decode, DecodeError, ENVELOPE, FixedLength, Reader, encode_in_order, in_envelope};
use crate::getters::debug_as;
use crate::ids::KeyId;
use crate::parameters::{Decomposition, Parameters};

/// The server's key as it is stored and sent. Seeds replace the masks, so it takes 103 MB (parameters of up to 2544
/// votes) where the [`EvaluationKey`] takes 320 MB.
pub struct SeededEvaluationKey {
    pub(crate) public: PublicKey,
    pub(crate) parts: SeededParts,
}

/// The parts of an evaluation key, each an encryption of one secret key under another.
pub(crate) struct SeededParts {
    /// Big key to small key, before every bootstrap.
    pub(crate) key_switch: Seeded,
    /// The bootstrapping key of comparisons: one level, fast, coarse.
    pub(crate) bootstrap: Seeded<Rounded>,
    /// The bootstrapping key that selects wide values and writes answers: more levels, fine.
    pub(crate) select: Seeded<Rounded>,
    /// The rotations of the ring key, for packing.
    pub(crate) trace: Seeded,
}

/// Returns the number of ciphertexts of a bootstrapping key: three for each pair of bits of the small key.
fn bootstrap_ciphertexts(p: &Parameters) -> usize {
    p.lwe_dimension / 2 * KEYS_PER_PAIR
}

/// Returns the numbers of bodies of the four parts, in the order of the file.
fn body_counts(p: &Parameters) -> [usize; 4] {
    let bootstrap = |d: Decomposition| bootstrap_ciphertexts(p) * d.levels * 2 * p.polynomial_size;
    [
        p.polynomial_size * p.key_switch.levels,
        bootstrap(p.bootstrap),
        bootstrap(p.select),
        trace_rotations(p).count() * p.trace.levels * p.polynomial_size,
    ]
}

impl SeededEvaluationKey {
    /// Returns the identifier of the key set.
    pub fn id(&self) -> KeyId {
        self.public.id
    }

    /// Returns the public key.
    pub fn public_key(&self) -> &PublicKey {
        &self.public
    }

    /// Returns the number of bytes of the file of a key of these parameters.
    pub fn file_size(parameters: &Parameters) -> usize {
        let word = size_of::<u64>();
        let words = [word, Rounded::BYTES, Rounded::BYTES, word];
        let parts = body_counts(parameters).into_iter().zip(words).map(|(bodies, word)| u128::LENGTH + bodies * word);
        ENVELOPE + PublicKey::content_size(parameters) + parts.sum::<usize>()
    }

    /// Expands the key into its computational form. Takes about half a core-second, in parallel on rayon's current pool.
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

encode_in_order!(SeededEvaluationKey: public, parts);

impl Decode for SeededEvaluationKey {
    fn decode(reader: &mut Reader<'_>, (): ()) -> Result<Self, DecodeError> {
        let public: PublicKey = reader.read()?;
        let parts = reader.read_with(public.parameters())?;
        Ok(Self { public, parts })
    }
}

in_envelope!(SeededEvaluationKey, EvaluationKey, "evaluation key");

encode_in_order!(SeededParts: key_switch, bootstrap, select, trace);

/// The parameter is the parameter set, which determines the lengths of the parts.
impl Decode<&Parameters> for SeededParts {
    fn decode(reader: &mut Reader<'_>, parameters: &Parameters) -> Result<Self, DecodeError> {
        let [key_switch, bootstrap, select, trace] = body_counts(parameters);
        Ok(Self {
            key_switch: reader.read_with(key_switch)?,
            bootstrap: reader.read_with(bootstrap)?,
            select: reader.read_with(select)?,
            trace: reader.read_with(trace)?,
        })
    }
}

debug_as!(SeededEvaluationKey, this => "SeededEvaluationKey({}, {})", this.public.id, this.public.parameters.name);

/// The server's key: it can sum, compare and select on ciphertexts, but not decrypt. It contains the public key, with
/// which the server re-randomises its answers. Cloning is cheap because the keys are shared.
#[derive(Clone)]
pub struct EvaluationKey {
    pub(crate) public: PublicKey,
    pub(crate) parts: Arc<EvaluationParts>,
}

/// [`SeededParts`] in the forms used by the circuits: an integer matrix, and Fourier transforms.
pub(crate) struct EvaluationParts {
    pub(crate) key_switch: KeySwitchKey,
    pub(crate) bootstrap: GgswList,
    pub(crate) select: GgswList,
    pub(crate) trace: GgswList,
}

impl EvaluationKey {
    /// Returns the identifier of the key set.
    pub fn id(&self) -> KeyId {
        self.public.id
    }

    /// Returns the parameter set.
    pub(crate) fn parameters(&self) -> &Parameters {
        &self.public.parameters
    }

    /// Returns the public key of the same key set.
    pub fn public_key(&self) -> &PublicKey {
        &self.public
    }

    /// Returns the size of the key in memory, in bytes.
    pub fn size(&self) -> usize {
        let parts = &self.parts;
        parts.key_switch.size() + parts.bootstrap.size() + parts.select.size() + parts.trace.size() + self.public.size()
    }
}

debug_as!(EvaluationKey, this => "EvaluationKey({}, {})", this.public.id, this.public.parameters.name);

/// Expands and transforms a bootstrapping key.
fn expand_bootstrap_key(p: &Parameters, d: Decomposition, seeded: Seeded<Rounded>) -> GgswList {
    let (n, rows) = (p.polynomial_size, KEYS_PER_PAIR * 2 * d.levels);
    let (masks, Rounded(bodies)) = (Stream::new(seeded.seed), seeded.bodies);
    GgswList::new(d, KEYS_PER_PAIR, p.lwe_dimension / 2, |pair, words| {
        for (number, ciphertext) in (pair * rows..).zip(words.chunks_exact_mut(2 * n)) {
            let (mask, body) = ciphertext.split_at_mut(n);
            masks.uniform(number * n, mask);
            body.iter_mut().zip(&bodies[number * n..]).for_each(|(word, bytes)| *word = Rounded::word(*bytes));
        }
    })
}

/// Expands, for each automorphism of the trace, the key that switches a ciphertext under the rotated key back to the
/// ring key: an encryption in GGSW form whose mask rows hold the rotated key and whose body rows are plain.
fn expand_trace_key(p: &Parameters, seeded: Seeded) -> GgswList {
    let (n, d) = (p.polynomial_size, p.trace);
    let masks = Stream::new(seeded.seed);
    GgswList::new(d, 1, trace_rotations(p).count(), |rotation, words| {
        for (row, level) in words.chunks_exact_mut(4 * n).enumerate() {
            let number = rotation * d.levels + row;
            let (mask, rest) = level.split_at_mut(n);
            masks.uniform(number * n, mask);
            rest[..n].copy_from_slice(&seeded.bodies[number * n..][..n]);
            // The row of the body, without noise, is the level's weight. Levels go from the last to the first.
            rest[n..].fill(0);
            rest[2 * n] = d.weight(row);
        }
    })
}
