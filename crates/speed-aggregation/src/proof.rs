//! Zero-knowledge proofs that a message is well formed (feature `proofs`), against teachers that deviate from the
//! protocol.
//!
//! The proofs of a message state that each of its bodies encrypts, under the public key and with noise within its bound, a
//! value in its party's range ([`Round::proof_range_of`]). So a teacher can shift a count by at most
//! [`Round::largest_move`] votes, whereas without a proof it can send any torus element. The proofs do **not** state that
//! the value is a vote plus an honestly drawn share of noise: a dishonest teacher can still use the complete range.
//!
//! One proof covers `2^b` consecutive values, for the `b` of the [`ProofKey`]. It is about the encryption of the value less
//! the smallest of them, a constant that teacher and server subtract from the bodies. If the range has fewer than `2^b`
//! values, each list has two proofs: of the `2^b` values from the range's least value on, and of the `2^b` values up to
//! its largest. **Both proofs are about the same integer**, because decryption is unique. Each proof shows that the phase of
//! a body under the student's key is `v 2^u + e` with `v` in its range and, for the noise bounds of the proof,
//! `|e| < 2^30`, which is less than half a vote, `2^(u - 1)`. So both proofs show the same `v` modulo `2^(64 - u)`. The two
//! ranges together span fewer than `2^(b + 1)` values, and a proof key has `b < 64 - u`, so the values are equal as
//! integers, and this integer is in both ranges. docs/protocol.md ("Values and noise") has the bounds in full.
//!
//! The two proofs of a list use the random vectors of one encryption, but each draws its own blinding factors.
//!
//! The proofs are those of tfhe-rs (Libert: Vector Commitments with Proofs of Smallness,
//! <https://eprint.iacr.org/2023/800>). They are sound against anyone who does not know the trapdoor of the
//! [`ProofKey`]. Its generator knows the trapdoor, so the student or a third party must generate the key, never a
//! teacher.

mod generation;
mod points;

use std::collections::BTreeSet;
use std::fmt::Display;
use std::sync::Mutex;

use bincode::Options as _;
use speed_core::{Digest, EntropyError, Randomness, printable};
use tfhe::conformance::ParameterSetConformant as _;
use tfhe::core_crypto::algorithms::slice_algorithms::{
    slice_semi_reverse_negacyclic_convolution, slice_wrapping_add_assign,
};
use tfhe::core_crypto::commons::math::random::{DefaultRandomGenerator, RandomGenerator, Seeder as _};
use tfhe::core_crypto::prelude::*;
use tfhe::safe_serialization::{DeserializationConfig, safe_serialize};
use tfhe::zk::{
    CompactPkeCrs, CompactPkeProof, CompactPkeProofConformanceParams, CompactPkeZkScheme, Compressible, ZkComputeLoad,
    ZkPkeV2SupportedHashConfig,
};
use zeroize::Zeroizing;

use crate::codec::{Content, Kind, Limits, encode_in_order, in_order, open};
use crate::encoding::{Encoding, EncodingError};
use crate::getters::{debug_as, messages_of};
use crate::ids::RoundId;
use crate::keys::PublicKey;
use crate::message::Message;
use crate::parameters::Parameters;
use crate::random::seeder;
use crate::round::Round;
use crate::server::ServerError;
use crate::teacher::{Teacher, TeacherError};
use generation::Shape;

/// Returns the shape of the reference string for proofs of this many values of `range_log` bits, encoded in `bits`.
fn shape(parameters: &Parameters, values: usize, bits: u32, range_log: u32) -> Result<Shape, String> {
    let (dimension, values, noise, modulus, plaintexts) = CompactPkeCrs::prepare_crs_parameters(
        parameters.big_dimension(),
        LweCiphertextCount(values),
        TUniform::<u64>::new(parameters.glwe_noise_log),
        CiphertextModulus::<u64>::new_native(),
        1_u64 << bits,
        CompactPkeZkScheme::V2,
    )
    .map_err(|error| error.to_string())?;
    let (dimension, values, padding) = (dimension.0, values.0, u64::from(bits - range_log));
    Ok(Shape { dimension, values, noise, modulus, plaintexts, padding })
}

/// The encoded proof keys whose points this process found to be in their groups or generated itself. The check takes about a core-second, and
/// a program with several roles or teachers reads the same key several times.
static CHECKED: Mutex<BTreeSet<Digest>> = Mutex::new(BTreeSet::new());

fn remember(digest: Digest) {
    if let Ok(mut checked) = CHECKED.lock() {
        checked.insert(digest);
    }
}

/// The public common reference string of proofs, with which teachers prove and the server checks.
pub struct ProofKey {
    parameters: Parameters,
    unit_log: u32,
    range_log: u32,
    crs: CompactPkeCrs,
    /// The encoded key. The round's file names it by its digest.
    bytes: Vec<u8>,
}

impl ProofKey {
    /// The largest number of values that one proof covers: those under one mask.
    pub(crate) const MAX_VALUES: usize = Message::VALUES_PER_MASK;
    /// The number of bytes of the largest proof key.
    pub const MAX_BYTES: usize = 16 << 20;

    /// Generates a key for rounds of this shape, for values in [`Round::proof_range`]. Takes about as long as a proof for a
    /// thousand values.
    ///
    /// # Errors
    /// If the round has no encoding, the range is wider than the encoding's, or the operating system provides no
    /// randomness.
    pub fn generate(parameters: &Parameters, round: &Round, randomness: &Randomness) -> Result<Self, ProofError> {
        let range_log = round.proof_range().bits();
        let layout = Encoding::of_round(parameters, round)?.layout();
        let bits = u64::BITS - layout.unit().trailing_zeros();
        check_range(range_log, bits)?;
        let mut seeder = seeder(randomness, "proof key", u64::from(range_log), parameters.name.as_bytes())?;
        let mut generator = RandomGenerator::<DefaultRandomGenerator>::new(seeder.seed());
        let shape = shape(parameters, values_of_a_proof(round), bits, range_log).map_err(ProofError::generate)?;
        let crs = CompactPkeCrs::PkeV2(generation::generate(shape, &mut generator));
        let mut words = Vec::new();
        safe_serialize(&crs, &mut words, Self::MAX_BYTES as u64).map_err(ProofError::generate)?;
        let (parameters, unit_log) = (*parameters, u64::BITS - bits);
        let values = crs.max_num_messages().0;
        let header = Header { parameters, unit_log: unit_log as usize, range_log: range_log as usize, values };
        let bytes = Sealed { header, crs: &words }.seal();
        remember(Digest::of(&bytes));
        Ok(Self { parameters, unit_log, range_log, crs, bytes })
    }

    /// Returns SHA-256 of the encoded bytes, by which a round names its proof key.
    pub fn digest(&self) -> Digest {
        Digest::of(&self.bytes)
    }

    /// Returns the number of bits of a value's range.
    pub fn range_log(&self) -> u32 {
        self.range_log
    }

    /// Returns the encoded bytes.
    pub fn to_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Reads a proof key.
    ///
    /// # Errors
    /// If the bytes are not exactly one well-formed proof key of this version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ProofError> {
        let mut reader = open(bytes, Sealed::KIND).map_err(decode)?;
        let Header { parameters, unit_log, range_log, values } = reader.read().map_err(decode)?;
        let (unit_log, range_log) = (unit_log as u32, range_log as u32);
        let bits = u64::BITS - unit_log;
        check_range(range_log, bits)?;
        let expected = shape(&parameters, values, bits, range_log).map_err(decode)?;
        let config = DeserializationConfig::new(Self::MAX_BYTES as u64).disable_conformance();
        let mut rest = reader.rest();
        let crs = config.deserialize_from(&mut rest).map_err(decode)?;
        if !rest.is_empty() {
            return Err(decode(format!("{} bytes after the reference string", rest.len())));
        }
        let CompactPkeCrs::PkeV2(params) = &crs else { return Err(decode("a reference string of another scheme")) };
        let found = Shape {
            dimension: params.d,
            values: params.k,
            noise: params.B_inf,
            modulus: params.q,
            plaintexts: params.t,
            padding: params.msbs_zero_padding_bit_count,
        };
        if found != expected || !params.has_valid_params() {
            return Err(decode("a reference string of other parameters"));
        }
        let digest = Digest::of(bytes);
        let checked = CHECKED.lock().is_ok_and(|checked| checked.contains(&digest));
        if !checked && !points::are_valid(params, digest).map_err(decode)? {
            return Err(decode("a reference string with points outside their groups"));
        }
        remember(digest);
        Ok(Self { parameters, unit_log, range_log, crs, bytes: bytes.to_vec() })
    }

    /// Checks a message's proofs under the public key and for the round.
    ///
    /// # Errors
    /// If the proofs are not valid for this message.
    pub fn verify(&self, key: &PublicKey, round: &Round, message: &Message, proofs: &Proofs) -> Result<(), ProofError> {
        self.check(&key.parameters, round)?;
        let (teacher, id) = (message.teacher(), round.id(key.id()));
        let invalid = || ProofError::Invalid { teacher };
        let (lists, starts) = (lists(message.list()), round.proof_range_of(teacher).starts());
        if message.round() != id
            || message.list().lwe_ciphertext_count().0 != round.values()
            || lists.len() * starts.len() != proofs.0.len()
        {
            return Err(invalid());
        }
        let places = lists.iter().enumerate().flat_map(|list| starts.clone().enumerate().map(move |part| (list, part)));
        for (((place, list), (part, start)), proof) in places.zip(&proofs.0) {
            if !self.is_valid(key, list, start, proof, &metadata(id, teacher, place, part)) {
                return Err(invalid());
            }
        }
        Ok(())
    }

    /// Returns whether a proof shows that the values of a list are the `2^b` from `start` on.
    fn is_valid(
        &self,
        key: &PublicKey,
        list: &LweCompactCiphertextListOwned<u64>,
        start: i64,
        proof: &CompactPkeProof,
        metadata: &[u8],
    ) -> bool {
        proof.is_conformant(&form())
            && verify_lwe_compact_ciphertext_list(&self.less(start, list), &key.key, proof, &self.crs, metadata)
                .is_valid()
    }

    /// Encrypts values under one mask, and proves that they are among the `2^b` from each of `starts` on. `metadata` is
    /// that of each proof.
    fn encrypt_and_prove(
        &self,
        key: &PublicKey,
        values: &[i64],
        starts: impl Iterator<Item = i64>,
        metadata: impl Fn(usize) -> Vec<u8>,
        generator: &mut RandomGenerator<DefaultRandomGenerator>,
    ) -> (LweCompactCiphertextListOwned<u64>, Vec<CompactPkeProof>) {
        let witness = Witness::draw(key, values.len(), generator);
        // Values are wiped when they go out of scope, because votes and noise are the teacher's secret.
        let from = |start: i64| {
            Zeroizing::new(values.iter().map(|value| value.wrapping_sub(start).cast_unsigned()).collect::<Vec<_>>())
        };
        let encoded = Zeroizing::new(from(0).iter().map(|value| value << self.unit_log).collect::<Vec<_>>());
        let list = witness.encrypt(key, &encoded);
        let proofs = starts.enumerate().map(|(part, start)| {
            // The blinding factors of a proof are derived from its seed. Equal seeds would give two proofs equal factors.
            let mut seed = [0; 16];
            seed.iter_mut().for_each(|byte| *byte = generator.generate_next());
            self.crs.prove(
                &key.key,
                &*from(start),
                &self.less(start, &list),
                &witness.binary,
                &witness.mask_noise,
                &witness.body_noise,
                &metadata(part),
                ZkComputeLoad::Proof,
                seed,
            )
        });
        let proofs = proofs.collect();
        (list, proofs)
    }

    /// Checks that this is a proof key for a round: the one that the round names, if it names one, for the round's
    /// encoding under the parameters of its encryption key, and for the range of its values.
    ///
    /// # Errors
    /// The error states the expected and the found.
    pub fn check(&self, parameters: &Parameters, round: &Round) -> Result<(), ProofError> {
        if let Some(expected) = round.proofs().filter(|expected| *expected != self.digest()) {
            return Err(ProofError::other_key(expected, self.digest()));
        }
        let expected = round.proof_range().bits();
        if self.range_log != expected {
            // Such a key would either let a teacher send more or refuse honest values.
            return Err(ProofError::Other(format!(
                "a proof key for values of {} bits, but the values of this round have {expected} bits: the student must create \
                 the round and its proof key again",
                self.range_log
            )));
        }
        let unit_log = Encoding::of_round(parameters, round)?.layout().unit().trailing_zeros();
        let ours = (self.parameters.name(), self.unit_log, self.crs.max_num_messages().0);
        let asked = (parameters.name(), unit_log, values_of_a_proof(round));
        if (asked.0, asked.1) != (ours.0, ours.1) || asked.2 > ours.2 {
            let words = |(name, unit_log, values)| format!("{name} with units of 2^{unit_log} and {values} values");
            let text = format!("the proof key is for {}, the round has {}", words(ours), words(asked));
            return Err(ProofError::Other(text));
        }
        Ok(())
    }

    /// Returns a list with every value less `start`.
    fn less(&self, start: i64, list: &LweCompactCiphertextListOwned<u64>) -> LweCompactCiphertextListOwned<u64> {
        let (mut list, count) = (list.clone(), list.lwe_ciphertext_count().0);
        let (words, constant) = (list.as_mut(), start.cast_unsigned() << self.unit_log);
        let bodies = words.len() - count;
        words[bodies..].iter_mut().for_each(|body| *body = body.wrapping_sub(constant));
        list
    }
}

debug_as!(ProofKey, this => "ProofKey({}, {} bits)", this.parameters.name(), this.range_log);

/// The part of a proof key before its reference string.
struct Header {
    parameters: Parameters,
    unit_log: usize,
    range_log: usize,
    values: usize,
}

in_order!(Header:
    parameters,
    unit_log = Limits { field: "unit", min: 1, max: 63 },
    range_log = Limits { field: "bits of a value", min: 1, max: 63 },
    values = Limits { field: "values of a proof", min: 1, max: ProofKey::MAX_VALUES },
);

/// A proof key in its encoded form.
struct Sealed<'a> {
    header: Header,
    crs: &'a [u8],
}

encode_in_order!(Sealed<'_>: header, crs);

impl Content for Sealed<'_> {
    const KIND: Kind = Kind::ProofKey;
}

fn check_range(range_log: u32, bits: u32) -> Result<(), ProofError> {
    if (1..bits).contains(&range_log) {
        return Ok(());
    }
    let max = bits - 1;
    Err(ProofError::Other(format!("a range of {range_log} bits, expected 1 to {max} for this encoding")))
}

/// Returns the largest number of values of a round's message that one proof covers.
fn values_of_a_proof(round: &Round) -> usize {
    round.values().min(ProofKey::MAX_VALUES)
}

/// Splits a list into lists that have one mask each.
fn lists(list: &LweCompactCiphertextListOwned<u64>) -> Vec<LweCompactCiphertextListOwned<u64>> {
    let (masks, bodies) = list.as_ref().split_at(list.as_ref().len() - list.lwe_ciphertext_count().0);
    let parts = masks.chunks_exact(list.lwe_size().to_lwe_dimension().0).zip(bodies.chunks(ProofKey::MAX_VALUES));
    parts
        .map(|(mask, bodies)| {
            let count = LweCiphertextCount(bodies.len());
            LweCompactCiphertextList::from_container(
                [mask, bodies].concat(),
                list.lwe_size(),
                count,
                list.ciphertext_modulus(),
            )
        })
        .collect()
}

/// Joins lists of one mask each, the inverse of [`lists`].
fn join(lists: &[LweCompactCiphertextListOwned<u64>], size: LweSize) -> LweCompactCiphertextListOwned<u64> {
    let dimension = size.to_lwe_dimension().0;
    let part = |part: fn(&[u64], usize) -> &[u64]| lists.iter().flat_map(move |list| part(list.as_ref(), dimension));
    let words: Vec<u64> =
        part(|words, masks| &words[..masks]).chain(part(|words, masks| &words[masks..])).copied().collect();
    let count = LweCiphertextCount(lists.iter().map(|list| list.lwe_ciphertext_count().0).sum());
    LweCompactCiphertextList::from_container(words, size, count, CiphertextModulus::new_native())
}

/// The random vectors of the encryption of one list. They are wiped when they go out of scope, because they open the
/// list.
struct Witness {
    /// The bits that select the parts of the public key.
    binary: Zeroizing<Vec<u64>>,
    /// The ciphertext noise of the mask.
    mask_noise: Zeroizing<Vec<u64>>,
    /// The ciphertext noise of the bodies.
    body_noise: Zeroizing<Vec<u64>>,
}

impl Witness {
    /// Draws the vectors for `count` values under `key`.
    fn draw(key: &PublicKey, count: usize, generator: &mut RandomGenerator<DefaultRandomGenerator>) -> Self {
        let dimension = key.parameters.polynomial_size;
        let noise = TUniform::<u64>::new(key.parameters.glwe_noise_log);
        let mut witness = Self {
            binary: Zeroizing::new(vec![0; dimension]),
            mask_noise: Zeroizing::new(vec![0; dimension]),
            body_noise: Zeroizing::new(vec![0; count]),
        };
        generator.fill_slice_with_random_uniform_binary_bits(&mut witness.binary);
        generator.fill_slice_with_random_from_distribution(&mut witness.mask_noise, noise);
        generator.fill_slice_with_random_from_distribution(&mut witness.body_noise, noise);
        witness
    }

    /// Encrypts torus elements under one mask: the encryption of
    /// `encrypt_lwe_compact_ciphertext_list_with_compact_public_key`, which keeps its random vectors to itself.
    fn encrypt(&self, key: &PublicKey, encoded: &[u64]) -> LweCompactCiphertextListOwned<u64> {
        let dimension = key.parameters.big_dimension();
        let mut list = LweCompactCiphertextList::new(
            0,
            dimension.to_lwe_size(),
            LweCiphertextCount(encoded.len()),
            CiphertextModulus::new_native(),
        );
        let (key_mask, key_body) = key.key.get_mask_and_body();
        let (mask, bodies) = list.as_mut().split_at_mut(dimension.0);
        slice_semi_reverse_negacyclic_convolution(mask, key_mask.as_ref(), &self.binary);
        slice_wrapping_add_assign(mask, &self.mask_noise);
        let mut product = Zeroizing::new(vec![0; dimension.0]);
        slice_semi_reverse_negacyclic_convolution(&mut product, key_body.as_ref(), &self.binary);
        let values = encoded.iter().zip(self.body_noise.iter()).zip(product.iter().rev());
        bodies.iter_mut().zip(values).for_each(|(body, ((value, noise), product))| {
            *body = value.wrapping_add(*noise).wrapping_add(*product);
        });
        list
    }
}

impl Teacher {
    /// Encrypts as [`Self::answer`] does, with a proof that the message is well formed. Computes the variant of the
    /// proof that is slower to make and faster to check.
    ///
    /// # Errors
    /// The errors of [`Self::answer`], and if the proof key is not for this round.
    pub fn answer_with_proof(
        &self,
        key: &PublicKey,
        round: &Round,
        values: &[i64],
        proof_key: &ProofKey,
        randomness: &Randomness,
    ) -> Result<(Message, Proofs), ProofError> {
        proof_key.check(&key.parameters, round)?;
        let range = round.proof_range_of(self.index);
        self.check(round, values, (range.least(), range.most()))?;
        let id = round.id(key.id());
        let mut seeder = seeder(randomness, "answer with proof", self.index as u64, id.as_bytes())?;
        let mut generator = RandomGenerator::<DefaultRandomGenerator>::new(seeder.seed());
        let (mut lists, mut proofs) = (Vec::new(), Vec::new());
        for (place, values) in values.chunks(ProofKey::MAX_VALUES).enumerate() {
            let metadata = |part| metadata(id, self.index, place, part);
            let (list, parts) = proof_key.encrypt_and_prove(key, values, range.starts(), metadata, &mut generator);
            lists.push(list);
            proofs.extend(parts);
        }
        let size = key.parameters.big_dimension().to_lwe_size();
        Ok((Message::new(key.id(), round, self.index, join(&lists, size)), Proofs(proofs)))
    }
}

/// Binds a proof to its round, teacher, place in the message, and part of the range.
fn metadata(round: RoundId, teacher: usize, place: usize, part: usize) -> Vec<u8> {
    let numbers = [teacher, place, part].map(|number| (number as u64).to_le_bytes());
    [b"speed/proof/v4".as_slice(), round.as_bytes(), &numbers.concat()].concat()
}

/// The proofs that a message is well formed: for each mask one or two ([`ProofRange::proofs`](crate::encoding::ProofRange::proofs)).
#[derive(Clone, Debug)]
pub struct Proofs(Vec<CompactPkeProof>);

/// The first bytes of encoded proofs: the version of the encoding.
/// With a new version, a server must check the messages in its registry again: an update during a round would otherwise count
/// proofs that verifiers of the new version refuse.
const VERSION: &[u8; 8] = b"proofs/4";

/// Returns how a proof is encoded: integers have a fixed length, and no bytes follow the proof.
fn options() -> impl bincode::Options {
    bincode::DefaultOptions::new().with_fixint_encoding().with_limit(Proofs::BYTES as u64)
}

/// Returns the form of the proofs that [`ProofKey`] makes: other hashes, and proofs that shift work to
/// the server, are refused.
fn form() -> CompactPkeProofConformanceParams {
    CompactPkeProofConformanceParams::new(CompactPkeZkScheme::V2)
        .forbid_hash_config(ZkPkeV2SupportedHashConfig::V0_4_0)
        .forbid_hash_config(ZkPkeV2SupportedHashConfig::V0_7_0)
        .forbid_compute_load(ZkComputeLoad::Verify)
}

impl Proofs {
    /// The number of bytes of one proof. A proof of points at infinity would be shorter, and take much more memory than
    /// bytes.
    pub const BYTES: usize = 1_222;

    /// Returns the encoded bytes: the version (8 bytes), and for each proof its length (4 bytes) and the encoding of its
    /// compressed points.
    ///
    /// # Errors
    /// If a proof does not have [`Self::BYTES`].
    pub fn to_bytes(&self) -> Result<Vec<u8>, ProofError> {
        let failed =
            |error: &dyn Display| ProofError::Other(format!("cannot encode a proof in {} bytes: {error}", Self::BYTES));
        let mut bytes = VERSION.to_vec();
        for proof in &self.0 {
            let CompactPkeProof::PkeV2(proof) = proof else {
                return Err(failed(&"a proof of another scheme"));
            };
            let one = options().serialize(&proof.compress()).map_err(|error| failed(&error))?;
            if one.len() != Self::BYTES {
                return Err(failed(&format_args!("{} bytes", one.len())));
            }
            bytes.extend_from_slice(&(one.len() as u32).to_le_bytes());
            bytes.extend_from_slice(&one);
        }
        Ok(bytes)
    }

    /// Reads proofs without verifying them; [`ProofKey::verify`] does that.
    ///
    /// # Errors
    /// If the bytes are not proofs of this version and of the scheme in use.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ProofError> {
        let form = form();
        let other = || {
            let shown = |bytes: &[u8]| printable(&String::from_utf8_lossy(bytes));
            let found = shown(&bytes[..bytes.len().min(VERSION.len())]);
            decode(format!("expected version {}, found {found}", shown(VERSION)))
        };
        let mut bytes = bytes.strip_prefix(VERSION).ok_or_else(other)?;
        let mut proofs = Vec::new();
        while !bytes.is_empty() {
            let (length, rest) = bytes.split_first_chunk::<4>().ok_or_else(|| decode("a length that was cut off"))?;
            let length = u32::from_le_bytes(*length) as usize;
            if length != Self::BYTES {
                return Err(decode(format!("a proof of {length} bytes, expected {}", Self::BYTES)));
            }
            let (one, rest) = rest.split_at_checked(length).ok_or_else(|| decode("a proof that was cut off"))?;
            let compressed = options().deserialize(one).map_err(decode)?;
            let proof = Compressible::uncompress(compressed).map(CompactPkeProof::PkeV2);
            let proof = proof.map_err(decode)?;
            if !proof.is_conformant(&form) {
                return Err(decode("a proof of another form, or a point that is not in its group"));
            }
            proofs.push(proof);
            bytes = rest;
        }
        Ok(Self(proofs))
    }
}

/// The reason why a proof cannot be made or is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the fields")]
#[non_exhaustive]
pub enum ProofError {
    /// The proof is not valid for this message, teacher and round.
    #[error("the proof of teacher {teacher} is not valid for its message")]
    Invalid { teacher: usize },
    /// A proof key of another round or none, bytes that are not a proof, a refusal of teacher or server, or a failure of the
    /// system.
    #[error("{0}")]
    Other(String),
}

messages_of!(ProofError, ProofError::Other: TeacherError, ServerError, EncodingError, EntropyError);

impl ProofError {
    /// Returns an error about a proof key that differs from the one that the round names.
    pub fn other_key(expected: Digest, found: Digest) -> Self {
        Self::Other(format!("proof key {found}, expected the round's key {expected}"))
    }

    fn generate(error: impl Display) -> Self {
        Self::Other(format!("cannot generate a proof key: {error}"))
    }
}

/// Describes bytes that are not a proof or a proof key.
fn decode(error: impl Display) -> ProofError {
    ProofError::Other(format!("not a proof: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proofs_of_another_size_are_refused_before_they_are_read() {
        // Eleven points at infinity: 53 bytes that would take about 3000 bytes of memory.
        let mut one = 49u32.to_le_bytes().to_vec();
        one.resize(53, 0);
        let bytes = [VERSION.as_slice(), &one.repeat(100)].concat();
        let error = Proofs::from_bytes(&bytes).expect_err("too short").to_string();
        assert!(error.contains("a proof of 49 bytes, expected 1222"), "{error}");
        let error = Proofs::from_bytes(b"proofs/3").expect_err("another version").to_string();
        assert!(error.contains("expected version proofs/4, found proofs/3"), "{error}");
    }
}
