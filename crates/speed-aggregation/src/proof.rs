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

mod error;
mod generation;
mod points;
mod proofs;
mod witness;

use std::collections::BTreeSet;
use std::sync::Mutex;

use speed_core::{Digest, Randomness};
use tfhe::conformance::ParameterSetConformant as _;
use tfhe::core_crypto::commons::math::random::{DefaultRandomGenerator, RandomGenerator, Seeder as _};
use tfhe::core_crypto::prelude::*;
use tfhe::safe_serialization::{DeserializationConfig, safe_serialize};
use tfhe::zk::{CompactPkeCrs, CompactPkeProof, CompactPkeZkScheme, ZkComputeLoad};
use zeroize::Zeroizing;

use crate::codec::{Content, Decode, DecodeError, Encode, Kind, Limits, Reader, Writer, encode_in_order, open};
use crate::encoding::Encoding;
use crate::getters::debug_as;
use crate::ids::RoundId;
use crate::keys::PublicKey;
use crate::message::Message;
use crate::parameters::Parameters;
use crate::random::seeder;
use crate::round::Round;
use crate::teacher::Teacher;

use error::decode;

pub use error::ProofError;
use generation::Shape;
pub use proofs::Proofs;
use witness::Witness;

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
        let header =
            Header { parameters: *parameters, unit_log: u64::BITS - bits, range_log, values: crs.max_num_messages().0 };
        let bytes = Sealed { header, crs: &words }.seal();
        remember(Digest::of(&bytes));
        Ok(Self { parameters: *parameters, unit_log: u64::BITS - bits, range_log, crs, bytes })
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
        proof.is_conformant(&proofs::form())
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
    unit_log: u32,
    range_log: u32,
    values: usize,
}

impl Encode for Header {
    fn encode(&self, writer: &mut Writer) {
        self.parameters.encode(writer);
        (self.unit_log as usize).encode(writer);
        (self.range_log as usize).encode(writer);
        self.values.encode(writer);
    }
}

impl Decode for Header {
    fn decode(reader: &mut Reader<'_>, (): ()) -> Result<Self, DecodeError> {
        let parameters = reader.read()?;
        let bits = |field| Limits { field, min: 1, max: 63 };
        let unit_log: usize = reader.read_with(bits("unit"))?;
        let range_log: usize = reader.read_with(bits("bits of a value"))?;
        let values = reader.read_with(Limits { field: "values of a proof", min: 1, max: ProofKey::MAX_VALUES })?;
        Ok(Self { parameters, unit_log: unit_log as u32, range_log: range_log as u32, values })
    }
}

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
